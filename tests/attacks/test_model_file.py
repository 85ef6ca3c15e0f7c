"""Crafted model files are refused with a code and the reason."""

import tracemalloc

import numpy as np
import pytest

from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.schema import MAX_JSON, MAX_STRUCTURE

from ..support.damaged_files import Change, array, frame, meta, sealed, taken_apart, text
from ..support.file_types import model_of, stacked


def told(array_name: str, /, **values: object) -> Change:
    """Change the header entry of an array."""
    return lambda file: file[array_name].told.update(values)


def without(name: str) -> Change:
    """Remove an array."""
    return lambda file: file.entries.remove(file[name])


def padded(name: str, padding: bytes) -> Change:
    """Change the padding after an array."""
    return lambda file: vars(file[name]).update(padding=padding)


ATTACKS: list[tuple[str, Change, str]] = [
    ("places outside", array("unigram.labels", [0, 1, -(10**8), 0, 2], "<i8"), "dtype <i8"),
    ("wider labels", array("unigram.labels", [0, 1, 1, 0, 2], "<u4"), "labels has the dtype <u4"),
    ("labels out of range", array("unigram.labels", [0, 1, 3, 0, 2], "<u2"), "labels are not all"),
    ("previous labels", array("bigram.previous", [1, 4, 2], "<u2"), "are not all below 4"),
    ("no pairs", array("unigram.previous", [0] * 5, "<u2"), "previous has 5 entries"),
    ("no previous labels", array("bigram.previous", [], "<u2"), "labels has 3 entries, not 0"),
    ("a count of nothing", array("unigram.counts", [2, 0, 3], "<u2"), "do not come to 5"),
    ("keys that descend", array("unigram.keys", [9, 3, 11], "<u8"), "unigram.keys do not ascend"),
    (
        "no number",
        array("unigram.values", [0.5, np.nan, 1, 1, 1], "<f4"),
        "unigram.values are not all finite",
    ),
    ("wider weights than told", array("unigram.values", [0.5] * 5, "<f8"), "has the dtype <f8"),
    ("Python objects", told("unigram.keys", dtype="|O"), "has the dtype '|O'"),
    ("a dtype that is no text", told("unigram.labels", dtype=["<u2"]), "which is no text"),
    ("a length below zero", told("unigram.keys", length=-1), "has the length -1"),
    ("a broken length", told("unigram.keys", length=3.0), "which is no whole number"),
    ("a length beyond memory", told("unigram.keys", length=2**60), "'unigram.keys' is cut off"),
    ("a shorter length", told("bigram.values", length=1), "there is something behind"),
    ("an unknown array", told("unigram.keys", name="unigram.key"), "its arrays are"),
    ("an array twice", told("bigram.keys", name="unigram.keys"), "'unigram.keys' is there twice"),
    ("a name that is no text", told("bigram.keys", name=7), "arrays"),
    (
        "less of an array",
        lambda file: file["bigram.keys"].told.pop("dtype"),
        "length: ['dtype']",
    ),
    ("arrays in another order", lambda file: file.entries.reverse(), "its arrays are"),
    ("a missing array", without("bigram.keys"), "its arrays are"),
    ("arrays that are none", frame(others={"arrays": {}}, entries=[]), "not a list"),
    ("something between arrays", padded("unigram.counts", b"\1\0"), "there is something behind"),
    ("bytes left over", frame(rest=bytes(8)), "8 bytes are left over"),
    ("a header beyond the file", frame(longer=2**31), "its header cannot have"),
    ("format 0", frame(version=0), "there is no format 0"),
    ("a key twice", text('"kind"', '"dtype"'), "a key is there twice"),
    ("a key twice, once escaped", text('"kind"', '"\\u0064type"'), "a key is there twice"),
    ("an infinite number", text('"length": 3', '"length": Infinity'), "Infinity is no number"),
    ("something behind JSON", text("}]}", "}]} {}"), "its JSON cannot be read"),
    ("a list", lambda file: vars(file).update(edit=lambda _: "[]"), "than meta, arrays: []"),
    ("more in the header", frame(others={"__metadata__": {}}), "its header"),
    ("meta that is a list", frame(meta=[]), "its header"),
    (
        "a checkpoint",
        frame(meta={"checkpoint": {}, "kinds": {}}),
        "['bounds', 'checkpoint'",
    ),
    ("something else told", meta(more=1), "kind, bounds: ['more']"),
    ("labels that are a text", meta(labels="AÜB"), "it: labels"),
    ("labels that are numbers", meta(labels=[0, 1, 2]), "it: labels"),
    ("half a character", meta(labels=["A", "\ud800", "B"]), "it: labels"),
    ("a label twice", meta(labels=["A", "B", "B"]), "its labels are not distinct"),
    ("fewer labels", meta(labels=["A", "Ü"]), "are not all below 2"),
    ("clusters that are a text", meta(bounds="03"), "bounds"),
    ("broken bounds", meta(bounds=[0, 3.0]), "bounds"),
]


FIRST: list[tuple[str, Change, str]] = [
    ("labels", array("first.unigram.labels", [0, 1, 3, 0, 2], "<u2"), "first.unigram.labels are"),
    ("previous", array("first.bigram.previous", [1, 4, 2], "<u2"), "first.bigram.previous are not"),
    ("missing", without("first.bigram.keys"), "its arrays are"),
    ("names", told("first.unigram.keys", name="second.unigram.keys"), "its arrays are"),
    ("long", told("first.unigram.keys", name="x" * 100_000), ""),
]


@pytest.mark.parametrize(
    ("first", "change", "reason"),
    [
        pytest.param(cases is FIRST, *own, id=name)
        for cases in (ATTACKS, FIRST)
        for name, *own in cases
    ],
)
def test_attacks_are_refused_with_what_is_wrong(first, change, reason):
    """Also in a first-stage model; first: whether the file has one."""
    file = taken_apart((stacked(model_of()) if first else model_of()).to_bytes())
    change(file)
    model = model_of("memm")
    before = model.to_bytes()
    with pytest.raises(SparseCRFError) as caught:
        model.from_bytes(file.to_bytes())
    message = str(caught.value)
    assert message.startswith("[SC314]") and reason in message and len(message) < 1000
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"dtype": "float16"}, "SC310"),
        ({"kind": "semi"}, "SC342"),
        ({"kind": {}}, "SC314"),
        ({"bounds": [0, 3]}, "SC343"),
    ],
)
def test_what_is_told_of_the_model_is_known(values, code):
    file = taken_apart(model_of().to_bytes())
    file.meta.update(values)
    with pytest.raises(SparseCRFError, match=code):
        CRFModel.from_bytes(file.to_bytes())


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 400_000,
        b'{"meta": ' * 100_000,
        b'{"meta": {"labels": [' + b"[]," * MAX_STRUCTURE,
        b'{"meta": ' + b"1" * 100_000,
        b'"' + b'\\"' * 4_000_000,
        b'{"meta": "\\\\", "arrays": [' + b"{}," * MAX_STRUCTURE,
        '{"meta": {}, "arrays": []}'.encode("utf-16-le"),
        b'{"meta": "\xff"}',
        b" " * (MAX_JSON + 8),
    ],
    ids=["lists", "objects", "many", "digits", "quotes", "escapes", "utf-16", "no utf-8", "long"],
)
def test_headers_take_no_more_time_or_memory_than_their_length(header):
    header += b" " * (-len(header) % 8)
    prefix = taken_apart(model_of().to_bytes()).to_bytes()[:12] + len(header).to_bytes(4, "little")
    data = sealed(prefix, header)
    tracemalloc.start()
    try:
        with pytest.raises(SparseCRFError, match="SC314"):
            CRFModel.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(data) + (4 << 20)
    finally:
        tracemalloc.stop()


def test_loading_takes_less_memory_than_the_file():
    file = taken_apart(model_of().to_bytes())
    n = 200_000
    file.put("unigram.keys", np.arange(n, dtype="<u8"))
    file.put("unigram.counts", np.ones(n, "<u2"))
    file.put("unigram.labels", np.zeros(n, "<u2"))
    file.put("unigram.values", np.ones(n, "<f4"))
    data = file.to_bytes()
    tracemalloc.start()
    try:
        assert CRFModel.from_bytes(data).n_active == n + 3
        assert tracemalloc.get_traced_memory()[1] < 2 * len(data)
    finally:
        tracemalloc.stop()


def test_labels_whose_names_fill_a_file_are_refused_when_it_is_written():
    with pytest.raises(SparseCRFError, match="SC317"):
        CRFModel(["x" * (MAX_JSON + 1)]).to_bytes()
    model = CRFModel(
        [f"{i}{'x' * 200}" for i in range(65_000)], kind="maxent", bounds=(0, 9, 65_000)
    )
    assert CRFModel.from_bytes(model.to_bytes()).labels == model.labels
