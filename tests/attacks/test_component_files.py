"""Changed, damaged and exchanged files of a component are refused, and say which file and key."""

import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly

from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.crf.model.names import Names
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.features.classes import WordClasses, pack
from spacy_sparsecrf.pipeline.serialization import NEW_CFG, _hash, parts_of

from ..support.damaged_files import taken_apart
from ..support.saved_models import CONFIGS, MODELS
from ..support.toy import blank_with, examples_of, make_sentences

Json = Any


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """Return the directory of a pipeline whose component has all files."""
    nlp, path = blank_with(**CONFIGS["word_labels"]), tmp_path_factory.mktemp("saved") / "nlp"
    nlp.get_pipe("sparse_crf").from_disk(MODELS / "word_labels", exclude=["vocab"])
    nlp.to_disk(path)
    return path


@pytest.fixture
def part(saved, tmp_path) -> Path:
    """Return the directory of the component in a copy of the pipeline."""
    return Path(shutil.copytree(saved, tmp_path / "nlp")) / "sparse_crf"


def sealed(cfg: dict[str, Json]) -> bytes:
    """Return a `cfg` whose digest fits."""
    own = {key: value for key, value in cfg.items() if key != "digest"}
    return json.dumps({**own, "digest": _hash(json.dumps(own).encode())}).encode()


def refused(part: Path) -> str:
    """Return the message with which the pipeline is refused."""
    with pytest.raises(SparseCRFError) as caught:
        spacy.load(part.parent)
    message = str(caught.value)
    assert len(message) < 1000
    return message


VALUES: list[tuple[str, Json, str]] = [
    ("labels", 5, "it: labels is 5"),
    ("labels", {"DT": 1}, "it: labels"),
    ("labels", [["DT"]], "it: labels has"),
    ("labels", ["NN", "DT", "IN", "JJ", "VB"], "digest does not fit"),
    ("labels", ["DT", "DT", "IN", "JJ", "VB"], "labels are not distinct"),
    ("labels", ["DT", "\ud800", "IN", "JJ", "VB"], "it: labels"),
    ("format", "x", "it: format"),
    ("format", -1, "its format is -1"),
    ("format", None, "it: format"),
    ("format", True, "it: format"),
    ("format", 2.0, "it: format"),
    ("features", [], "it: features"),
    ("features", {"clusters": 3}, "features have clusters"),
    ("features", {"vector_width": 10**9}, "digest does not fit"),
    ("features", "x" * 100_000, "it: features"),
    ("shares", {"x": "y"}, "it: shares: 'x'"),
    ("shares", {"tag": 2.0}, "shares are not from 0 to 1"),
    ("shares", {"tag": float("inf")}, "Infinity is no number"),
    ("shares", {"tag": float("nan")}, "NaN is no number"),
    ("sentences", "no", "it: sentences"),
    ("sentences", True, "digest does not fit"),
    ("templates", "", "digest does not fit"),
    ("scheme", ["BILUO"], "it: scheme"),
    ("clusters", "", "digest does not fit"),
    ("digest", "", "digest does not fit"),
    ("sequences", 7, "['sequences']"),
]


@pytest.mark.parametrize(("key", "value", "reason"), VALUES)
def test_a_changed_value_is_refused_with_its_key(part, key, value, reason):
    cfg = json.loads((part / "cfg").read_text())
    (part / "cfg").write_text(json.dumps({**cfg, key: value}))
    message = refused(part)
    assert message.startswith("[SC219] `cfg` of component 'sparse_crf'") and reason in message


def test_a_missing_value_is_refused_with_its_key(part):
    cfg = json.loads((part / "cfg").read_text())
    for key in cfg:
        (part / "cfg").write_text(json.dumps({k: v for k, v in cfg.items() if k != key}))
        assert f"['{key}']" in refused(part)


CONTENTS: list[Callable[[bytes], bytes]] = [
    lambda cfg: b"",
    lambda cfg: b"[]",
    lambda cfg: b"null",
    lambda cfg: cfg[:-1],
    lambda cfg: cfg + b"{}",
    lambda cfg: b"\xef\xbb\xbf" + cfg,
    lambda cfg: cfg.decode().encode("utf-16"),
    lambda cfg: cfg.replace(b"DT", b"\xff"),
    lambda cfg: cfg.replace(b'"sentences"', b'"scheme"'),
    lambda cfg: cfg.replace(b'"features": {}', b'"features": {"a": ' + b"[" * 10**5),
    lambda cfg: cfg.replace(b'"format": 2', b'"format": 2' + b"0" * 5000),
    lambda cfg: cfg.replace(b"{", b"[" * 2_000_000, 1),
]


@pytest.mark.parametrize("change", CONTENTS)
def test_what_is_no_json_of_a_component_is_refused(part, change):
    (part / "cfg").write_bytes(change((part / "cfg").read_bytes()))
    assert refused(part).startswith("[SC219] `cfg` of component")


@pytest.mark.parametrize("name", ["cfg", "clusters", "model"])
def test_missing_files_and_directories_in_their_place_are_refused(part, name):
    (part / name).unlink()
    code = {"cfg": "SC219.*missing", "clusters": "SC211.*clusters", "model": "SC312"}[name]
    with pytest.raises(SparseCRFError, match=code):
        spacy.load(part.parent)
    (part / name).mkdir()
    with pytest.raises(SparseCRFError, match=code):
        spacy.load(part.parent)


def test_values_that_only_the_digest_allows_are_refused(part):
    """Features check the rest of `cfg`."""
    cfg = json.loads((part / "cfg").read_text())
    model = (part / "model").read_bytes()
    for features in ({"vector_width": 10**9}, {"vector_width": True}, {"clusters": {}}):
        (part / "cfg").write_bytes(data := sealed({**cfg, "features": features}))
        file = taken_apart(model)
        file.meta["cfg"] = json.loads(data)["digest"]
        (part / "model").write_bytes(file.to_bytes())
        assert refused(part)[:7] in ("[SC137]", "[SC219]")


def test_files_of_other_components_are_refused(part):
    """Each is sound, and has the same labels."""
    own = {path.name: path.read_bytes() for path in part.iterdir()}
    others = {
        "clusters": pack({"word_labels": WordClasses.of({"the": "NN"}, False)}),
        "model": (MODELS / "tags" / "model").read_bytes(),
        "cfg": sealed({**json.loads(own["cfg"]), "sentences": True}),
    }
    for name, data in others.items():
        (part / name).write_bytes(data)
        assert refused(part).startswith("[SC211] `cfg` of component 'sparse_crf'")
        (part / name).write_bytes(own[name])
    spacy.load(part.parent)


def test_another_layout_of_the_same_values_and_damaged_names_are_accepted(part):
    cfg = json.loads((part / "cfg").read_text())
    (part / "cfg").write_text(json.dumps(cfg, ensure_ascii=False, indent="\t") + "\n\n")
    (part / "names").write_bytes(b"x")
    pipe = spacy.load(part.parent).get_pipe("sparse_crf")
    assert pipe.cfg["labels"] == cfg["labels"]
    with pytest.warns(SparseCRFWarning, match="SCW601"):
        list(pipe.dump())


@pytest.mark.parametrize("config", ["tags", "entities"])
def test_labels_whose_pairs_take_too_much_memory_are_refused(config, monkeypatch):
    """30,000 labels without weights are a file of 500 kB, and matrices of 29 GB."""
    monkeypatch.setattr("spacy_sparsecrf.crf.memory.available_memory", lambda: 2 << 30)
    pipe: Any = blank_with(**CONFIGS[config]).pipeline[0][1]
    labels = ["O", *(f"U-{i}" for i in range(30_000))]
    own = {**NEW_CFG, "labels": labels}
    data = parts_of(pipe.features, own, CRFModel(labels), Names())
    tracemalloc.start()
    with pytest.raises(SparseCRFError, match="SC222.*30001 labels.*28.8 GB of 2.1 GB"):
        pipe.from_bytes(srsly.msgpack_dumps(data))
    assert tracemalloc.get_traced_memory()[1] < 1 << 26
    tracemalloc.stop()


@pytest.mark.parametrize("key", ["init_weights", "prior"])
def test_weights_to_continue_from_are_checked_as_loaded_ones(part, key):
    prior = {"learning": {"prior": str(part)}} if key == "prior" else {}
    nlp = blank_with(**CONFIGS["word_labels"] | prior)
    given = {"init_weights": part} if key == "init_weights" else {}

    def begin() -> None:
        examples = examples_of(nlp, make_sentences(3, seed=1))
        nlp.get_pipe("sparse_crf").initialize(lambda: examples, nlp=nlp, **given)

    begin()
    sound = (part / "cfg").read_bytes()
    for data, code in ((b"[]", "SC219"), (sound.replace(b"false", b"true"), "SC219")):
        (part / "cfg").write_bytes(data)
        with pytest.raises(SparseCRFError, match=f"{code}.*cfg"):
            begin()
    (part / "cfg").write_bytes(sound)
    (part / "clusters").unlink()
    with pytest.raises(SparseCRFError, match="SC211.*clusters"):
        begin()


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x05", b"\x81\xa3cfg\x05", b"\x91" * 9999])
def test_bytes_that_no_component_wrote_are_refused(data):
    with pytest.raises(SparseCRFError, match="SC219.*sparse_crf"):
        blank_with().get_pipe("sparse_crf").from_bytes(data)


@pytest.mark.parametrize("left_out", ["cfg", "model", "names", "clusters"])
def test_excluded_parts_are_neither_read_nor_compared(saved, left_out):
    pipes = [blank_with(**CONFIGS["word_labels"]).get_pipe("sparse_crf") for _ in range(2)]
    pipes[0].from_disk(saved / "sparse_crf", exclude=["vocab"])
    data = pipes[0].to_bytes(exclude=[left_out])
    pipes[1].from_bytes(data, exclude=[left_out])
    pipes[1].from_bytes(pipes[0].to_bytes())
    pipes[1].from_bytes(data, exclude=[left_out])
    assert pipes[1].to_bytes(exclude=["names"]) == pipes[0].to_bytes(exclude=["names"])
