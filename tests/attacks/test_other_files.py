"""Crafted checkpoints, names, word classes and corpora are refused with a code."""

import gzip
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.features.classes import unpack
from spacy_sparsecrf.model.names import Names
from spacy_sparsecrf.schema import MAX_STRUCTURE, SchemaField, check, parse

from . import kinds
from .test_model_file import Change, array, frame, meta, text


def kind_of(array_name: str, /, kind: Any) -> Change:
    """Change the type that a checkpoint records for a value."""
    return lambda file: file.meta["kinds"].update({array_name: kind})


def both(*changes: Change) -> Change:
    """Combine several changes."""
    return lambda file: [change(file) for change in changes]


def renamed(old: str, new: str) -> Change:
    """Rename a value of a checkpoint."""

    def change(file: Any) -> None:
        file[old].told["name"] = new
        found = file.meta["kinds"]
        file.meta["kinds"] = {new if name == old else name: found[name] for name in found}

    return change


K = 10**6
COORDINATES, THETA = "0.coordinates", "0.state.theta"


def rows(file: Any) -> None:
    """Increase the rows of `steps`, but not the rows of `changes`, which belong to them."""
    n = file[THETA].told["length"]
    file.put("0.state.steps", np.zeros(5 * n))
    file.meta["kinds"]["0.state.steps"] = ["<f4", [5, n], None]


def changed(name: str, at: int, value: float) -> Change:
    """Replace one number."""

    def change(file: Any) -> None:
        dtype = file[name].told["dtype"]
        values = np.frombuffer(file[name].data, dtype).copy()
        values[at] = value
        file.put(name, values)

    return change


CHECKPOINTS: list[tuple[str, Change, str]] = [
    ("places outside of the weights", changed(COORDINATES, -1, 2**40), "are not all below"),
    ("places that descend", changed(COORDINATES, 1, 0), "do not ascend"),
    ("weights that are no numbers", changed(THETA, 0, np.nan), "theta are not all finite"),
    ("fewer weights", both(array(THETA, [1], "<f8"), kind_of(THETA, ["<f8", [1], None])), "theta"),
    ("more rows of some", rows, "0.state.changes|has . entries|changes"),
    ("a shape that overflows", kind_of(THETA, ["<f8", [2**32, 2**32], None]), "numbers, not those"),
    ("a shape that is a text", kind_of(THETA, ["<f8", "4", None]), "not a list"),
    ("a dtype that is a list", kind_of(THETA, [["<f8"], [4], None]), "which is no text"),
    ("an unknown scalar", kind_of("0.n_idle", ["<i8", [], "eval"]), "is no 'eval'"),
    ("a scalar that is a list", kind_of("0.n_idle", ["<i8", [], ["int"]]), "which is no text"),
    ("a count below zero", changed("0.n_idle", 0, -1), "n_idle is -1"),
    ("a truth value of 7", changed("0.converged", 0, 7), "none of the dtype"),
    ("another name of a state", renamed("0.state.metric", "0.state.gauge"), "it has"),
    ("a part more", renamed("0.n_idle", "1.n_idle"), "it is not of 1 parts"),
    ("no kinds", meta(kinds={}), "does not describe its arrays"),
    ("something told besides", meta(more=1), "it tells"),
    ("another magic", frame(magic=b"\x89NUMPY\r\n"), "none of spacy-sparsecrf"),
]


@pytest.mark.parametrize(
    ("change", "reason"), [pytest.param(*case[1:], id=case[0]) for case in CHECKPOINTS]
)
def test_checkpoints_are_refused_with_what_is_wrong(change: Change, reason: str) -> None:
    sound = kinds.checkpoints("OWLQN")[0]
    change(sound)
    with pytest.raises(SparseCRFError, match=rf"SC318.*checkpoint .*({reason})"):
        kinds.use_checkpoint(sound, sound)


@pytest.mark.parametrize("data", [b"", b"SPCRF", bytes(100), b"[]" * 100])
def test_what_a_power_cut_may_leave_is_no_checkpoint(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "run").write_bytes(data)
    with pytest.raises(SparseCRFError, match=r"SC318.*start over"):
        kinds.run_of("OWLQN").resume(tmp_path / "run")


def test_a_checkpoint_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(SparseCRFError, match="SC318.*directory"):
        kinds.run_of("OWLQN").resume(tmp_path)


LINE = b"00000000000000aa\tlower[0]=a\n"
# mtime=0: test ids must be the same in all processes.
packed = partial(gzip.compress, mtime=0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no gzip", "incorrect header"),
        (packed(LINE)[:-1], "cut off"),
        (packed(LINE) + packed(LINE), "something is behind"),
        (packed(LINE) + b"\0", "something is behind"),
        (packed(LINE * 2), "do not ascend"),
        (packed(b"00000000000000ab\tb\n" + LINE), "do not ascend"),
        (packed(b"aa\tb\n"), "no hash and name"),
        (packed(b" 0000000000000aa\tb\n"), "hexadecimal|size"),
        (packed(b"0x000000000000aa\tb\n"), "hexadecimal"),
        (packed(b"0000_000000000aa\tb\n"), "hexadecimal"),
        (packed(LINE + b"\n"), "no hash and name"),
        (packed(b"00000000000000aa\t\xff\n"), "utf-8"),
    ],
)
def test_names_are_refused_with_what_is_wrong(data: bytes, reason: str) -> None:
    names = Names(data)
    with pytest.warns(SparseCRFWarning, match=rf"SCW601.*({reason})"):
        assert len(names) == 0
    assert names[0xAA] == "0x00000000000000aa"


def test_names_that_grow_a_thousandfold_take_no_memory() -> None:
    data = packed(b"00000000000000aa\t" + b"a" * (1 << 27))
    tracemalloc.start()
    try:
        with pytest.warns(SparseCRFWarning, match="too long"):
            len(Names(data))
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


CLASSES: list[tuple[str, Change, str]] = [
    ("a code out of range", array("codes", [1, 2, 3, 4, 200], "|u1"), "codes are not all below"),
    ("hashes that descend", array("hashes", [5, 4, 3, 2, 1], "<u8"), "lower do not ascend"),
    ("more words than are there", text('"n_words": 5', '"n_words": 2305843009213693'), "cut off"),
    ("more lower-case words", text('"n_lower": 3', '"n_lower": 6'), "entries, not"),
    ("wider codes", text('"code_bytes": 1', '"code_bytes": 8'), "kind of classes"),
    ("a class twice", text('"0110"', '"0111"'), "classes are not distinct"),
    ("half a character", text('"0110"', '"\\ud800"'), "no text"),
    ("no path", text('"0110"', '"012"'), "not of bits"),
    ("no first class", text('""', '"1"'), "first class is not empty"),
    ("another format", text('"format": 1', '"format": 2'), "format 2 is not known"),
    ("a key twice", text('"n_words"', '"n_lower"'), "a key is there twice"),
    ("bytes left over", frame(rest=b"\0"), "not as long as it says"),
    ("lists that are none", meta(lists=[]), "no object"),
]


@pytest.mark.parametrize(
    ("change", "reason"), [pytest.param(*case[1:], id=case[0]) for case in CLASSES]
)
def test_word_classes_are_refused_with_what_is_wrong(change: Change, reason: str) -> None:
    file = kinds.classes()[0]
    change(file)
    with pytest.raises(SparseCRFError, match=f"SC148.*{reason}"):
        unpack(file.to_bytes())


@pytest.mark.parametrize("data", [b"", b"{}", b"\n", b"[" * 100_000 + b"\n"])
def test_what_is_no_file_of_word_classes_is_refused(data: bytes) -> None:
    with pytest.raises(SparseCRFError, match="SC148"):
        unpack(data)


def test_pieces_are_looked_at_where_they_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_sparsecrf.schema._PIECE", 2)
    fields = {"a": SchemaField("<i8", "n", rises=True)}
    assert check({"a": np.arange(7)}, fields, {}) == {"n": 7}
    for at in range(1, 7):
        values = np.arange(7)
        values[at] = values[at - 1]
        with pytest.raises(ValueError, match="do not ascend"):
            check({"a": values}, fields, {})
    cuts = {"a": SchemaField("<i8", "n+1", cuts="m")}
    assert check({"a": np.array([0, 2, 2, 5])}, cuts, {"m": 5}) == {"n": 3, "m": 5}
    with pytest.raises(ValueError, match="a has 0 entries"):
        check({"a": np.zeros(0, np.int64)}, cuts, {"m": 5})


def test_json_that_is_mostly_structure_is_refused() -> None:
    assert parse(b'["' + b"[" * MAX_STRUCTURE + b'"]') == ["[" * MAX_STRUCTURE]
    with pytest.raises(ValueError, match="too many entries"):
        parse(b"[" + b"[]," * MAX_STRUCTURE + b"[]]")
