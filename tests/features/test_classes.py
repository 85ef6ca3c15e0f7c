"""Word classes: lookup of words, sources, and storage in a saved pipeline."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.features.classes import ClassReader, WordClasses, pack, unpack
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.templates import parse_templates

from ..support.feature_cases import check_saved
from ..support.reference_features import after, hash_values
from ..support.toy import ENGLISH, blank_with, examples_of, make_sentences, pickled, train

PATHS = "0110\tla\t9\n0111\tMadrid\t3\n10\tmadrid\t1\n\n11\tsold\n"
NUMBERS = "la 0\nMadrid 17\n"


def brown(tmp_path: Path, text: str = PATHS, **settings: Any) -> dict[str, Any]:
    path = tmp_path / "paths"
    path.write_text(text, encoding="utf8")
    return {"brown": {"path": str(path), **settings}}


def hashes(words: list[str], template: str, clusters: dict[str, Any]) -> list[int]:
    features = Featurizer([f"u:{template}"], clusters=clusters)
    return features([Doc(ENGLISH, words=words)]).hashes[:, 0].tolist()


GOLDEN = {
    'cluster("brown",2)[0]': ["01", "01", "01", "10", "11", 0],
    'cluster("brown")[0]': ["0110", "0110", "0111", "10", "11", 0],
    'cluster("brown",3)[1]': ["011", "011", "10", "11", 0, after(1)],
}


@pytest.mark.parametrize("key", GOLDEN)
def test_golden(tmp_path, key):
    words = ["la", "LA", "Madrid", "MADRID", "Sold", "unknown"]
    expected = [hash_values(key, value) for value in GOLDEN[key]]
    assert hashes(words, key, brown(tmp_path)) == expected


@given(st.dictionaries(st.text("aAbBİ", min_size=1, max_size=3), st.text("01", min_size=1)))
def test_equals_the_reference(words):
    own = unpack(pack({"x": WordClasses.of(words, True)}))["x"]
    kept = {1: {"0"}, 0: {"11"}}
    pruned = own.pruned(kept)
    for word in [*words, *(word.lower() for word in words), *map(str.upper, words), "c"]:
        expected = words.get(word, words.get(word.lower(), ""))
        assert ClassReader(own, 0)(word) == expected
        assert ClassReader(own, 2)(word) == expected[:2]
        is_kept = expected[:1] == "0" or expected == "11"
        assert ClassReader(pruned, 0)(word) == (expected if is_kept else "")


def test_table_of_lookups(tmp_path, monkeypatch):
    plain, path = tmp_path / "classes.json", tmp_path / "classes.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"la": 2, "Sold": 5, ",": 0}).encode()))
    monkeypatch.setattr(type(registry.lookups), "__contains__", lambda _, lang: lang == "en")
    monkeypatch.setattr(type(registry.lookups), "get", lambda _, lang: {"classes": plain})
    # The lowest bit of a number is the first bit of the path.
    found = hashes(["la", "Sold", ","], "cluster(a)[0]", {"a": {"lookups": "classes"}})
    key = 'cluster("a")[0]'
    assert found == [hash_values(key, "010"), hash_values(key, "101"), 0]
    path.write_bytes(gzip.compress(json.dumps({"la": -3.6, "Sold": -20, ",": 0.0}).encode()))
    found = hashes(["la", "Sold", ",", "x"], "cluster(a)[0]", {"a": {"lookups": "classes"}})
    assert found == [*(hash_values(key, n) for n in ("4", "20", "0")), 0]
    with pytest.raises(SparseCRFError, match=r"\[SC145\].*'en' has no table 'others'"):
        hashes(["la"], "cluster(a)[0]", {"a": {"lookups": "others"}})
    for bad in (b'{"la": "x"}', b'{"la": 0.5}', b'["la"]'):
        path.write_bytes(gzip.compress(bad))
        with pytest.raises(SparseCRFError, match=r"\[SC146\].*'classes'"):
            hashes(["la"], "cluster(a)[0]", {"a": {"lookups": "classes"}})


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("01\ta\t1\n012\tb\t1\n", "brown", r"\[SC135\] Line 2 of .*paths.* expected bits"),
        ("01\n", "brown", r"\[SC135\] Line 1 .* expected bits"),
        ("a 1\nb x\n", "word2vec", r"\[SC135\] Line 2 .* expected a word"),
        ("01\ta\t1\n\udcff", "brown", r"\[SC135\] Line 2 .* not UTF-8"),
        ("\n", "brown", r"\[SC136\].*clusters 'brown' is empty"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, text, form, message):
    clusters = brown(tmp_path, "", format=form)
    Path(clusters["brown"]["path"]).write_bytes(text.encode("utf8", "surrogateescape"))
    with pytest.raises(SparseCRFError, match=message):
        hashes(["a"], "cluster(brown)[0]", clusters)


def test_missing_file(tmp_path):
    with pytest.raises(SparseCRFError, match=r"\[SC134\].*no, named in .*'a'"):
        hashes(["a"], "cluster(a)[0]", {"a": {"path": str(tmp_path / "no")}})


@pytest.mark.parametrize(
    "source", ["a", {}, {"path": 1}, {"path": "a", "lookups": "b"}, {"path": "a", "format": "c"}]
)
def test_settings_that_are_not_valid(source):
    with pytest.raises(SparseCRFError, match=r"\[SC140\].*is not valid"):
        Featurizer(["u:cluster(a)[0]"], clusters={"a": source})


def test_the_name_of_learnt_classes_is_refused():
    with pytest.raises(SparseCRFError, match=r"\[SC140\].*word_labels\[0\].*is not valid"):
        Featurizer(["u:word[0]"], clusters={"word_labels[0]": {"path": "a"}})


def test_templates_that_are_not_valid(tmp_path):
    with pytest.raises(SparseCRFError, match=r"\[SC131\] Template 1 .*'b'.*`clusters`.*: 'brown'"):
        hashes(["a"], "cluster(b)[0]", brown(tmp_path))
    with pytest.raises(SparseCRFError, match=r"\[SC147\] Template 1 .*numbers without"):
        hashes(["a"], "cluster(brown,2)[0]", brown(tmp_path, NUMBERS, format="word2vec"))


def test_sets_of_numbered_classes_read_no_bits(tmp_path):
    path = tmp_path / "numbers"
    path.write_text(NUMBERS, encoding="utf8")
    clusters = {key: {"path": str(path), "format": "word2vec"} for key in "ab"}
    both = ["@classes(a)", "@classes(b)"]
    found = {*map(str, parse_templates(both))}
    for name in "ab":
        window = {f'u:cluster("{name}")[{i}]' for i in (-2, -1, 0, 1, 2)}
        assert {*window, f'u:short_shape[0]|cluster("{name}")[1]'} < found
    doc = Doc(ENGLISH, words=["la", "Madrid"])
    assert Featurizer(both, clusters=clusters)([doc]).hashes.shape == (2, len(found))
    with pytest.raises(SparseCRFError, match=r"\[SC147\].*'@clusters\(a\)'.*@classes\(a\)"):
        Featurizer(["@clusters(a)"], clusters=clusters)([doc])


SENTENCES = make_sentences(30, seed=1)
TAGGED = {w: tag for words, tags in SENTENCES for w, tag in zip(words, tags, strict=True)}
PATH_OF = {tag: f"{i + 8:b}" for i, tag in enumerate(sorted(set(TAGGED.values())))}
WORDS = "0000\tnever\t1\n" + "".join(f"{PATH_OF[tag]}\t{w}\t1\n" for w, tag in TAGGED.items())


def trained(tmp_path: Path, l1: float = 0.5, **settings: Any) -> Language:
    templates = ["b:", "u:cluster(brown,4)[0]", "u:cluster(brown,2)[-1]|cluster(brown)[0]"]
    clusters = brown(tmp_path, WORDS, **settings)
    nlp = blank_with(features={"templates": templates, "clusters": clusters}, l1=l1)
    train(nlp, examples_of(nlp, SENTENCES), 3)
    return nlp


def read_by(nlp: Language) -> list[list[int]]:
    docs = [Doc(nlp.vocab, words=[*TAGGED, "The", "never"])]
    found: list[list[int]] = nlp.get_pipe("sparse_crf").features(docs).hashes.tolist()
    return found


def test_saved_pipeline_needs_no_file(tmp_path):
    nlp = trained(tmp_path)
    check_saved(nlp, tmp_path / "paths", read_by, ["cfg", "model", "clusters"])
    assert pickled(nlp.get_pipe("sparse_crf")).features.learnt.keys() == {"clusters"}
    lines = [*nlp.get_pipe("sparse_crf").dump()]
    assert any('cluster("brown",4)[0]=1' in line for line in lines)


def test_classes_of_features_without_names_are_saved_whole(tmp_path):
    component = trained(tmp_path, prune=True).get_pipe("sparse_crf")
    component.to_disk(tmp_path / "saved")
    (tmp_path / "saved" / "names").unlink()
    component.from_disk(tmp_path / "saved")
    with pytest.warns(SparseCRFWarning, match=r"\[SCW211\] [0-9]+ active features have no names"):
        component.to_disk(tmp_path / "again")


def test_classes_that_are_missing(tmp_path):
    features = Featurizer(["u:cluster(brown)[0]"], clusters=brown(tmp_path))
    with pytest.raises(SparseCRFError, match=r"\[SC137\].*'brown' are missing"):
        features.restore({"clusters": unpack(pack({"others": WordClasses.of({"a": "1"}, True)}))})
