"""Crafted names, word classes and corpora are refused with a code."""

import gzip
import time
import tracemalloc
from functools import partial

import numpy as np
import pytest

from spacy_sparsecrf.crf.model.edit_weights import _WEIGHT
from spacy_sparsecrf.crf.model.names import Names
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.interop.patterns.macros import _MACRO
from spacy_sparsecrf.interop.text_files import read_lines
from spacy_sparsecrf.pipeline.features.attributes.expressions import find_fault
from spacy_sparsecrf.pipeline.features.classes import unpack
from spacy_sparsecrf.schema import MAX_STRUCTURE, SchemaField, check, parse
from spacy_sparsecrf.tools.cli.tune import _BUDGET

from ..support import file_types as kinds
from ..support.damaged_files import Change, array, frame, meta, text

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
def test_names_are_refused_with_what_is_wrong(data, reason):
    names = Names(data)
    with pytest.warns(SparseCRFWarning, match=rf"SCW601.*({reason})"):
        assert len(names) == 0
    assert names[0xAA] == "0x00000000000000aa"


def test_names_that_grow_a_thousandfold_take_no_memory():
    data = packed(b"00000000000000aa\t" + b"a" * (1 << 27))
    tracemalloc.start()
    try:
        with pytest.warns(SparseCRFWarning, match="too long"):
            len(Names(data))
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_compressed_text_that_grows_a_thousandfold_takes_no_memory(tmp_path, end):
    (tmp_path / "a.gz").write_bytes(packed((b"q" * (1 << 22) + end) * 16))
    tracemalloc.start()
    with pytest.raises(SparseCRFError, match="SC618.*over 20 times as long"):
        for line in read_lines(tmp_path / "a.gz"):
            assert len(line) == 1 << 22
    assert tracemalloc.get_traced_memory()[1] < 1 << 26
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (_WEIGHT.fullmatch, "1" * 16_000 + "x"),
        (_MACRO.match, "%x[" + " " * 16_000),
        (_BUDGET, "1" * 16_000),
        (find_fault, "[" * 4_000),
    ],
)
def test_texts_are_read_in_linear_time(read, text):
    times = []
    for own in (text[: len(text) // 4], text):
        start = time.process_time()
        read(own)
        times.append(time.process_time() - start)
    assert times[1] < 8 * times[0] + 0.1


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
def test_word_classes_are_refused_with_what_is_wrong(change, reason):
    file = kinds.classes()
    change(file)
    with pytest.raises(SparseCRFError, match=f"SC148.*{reason}"):
        unpack(file.to_bytes())


@pytest.mark.parametrize("data", [b"", b"{}", b"\n", b"[" * 100_000 + b"\n"])
def test_what_is_no_file_of_word_classes_is_refused(data):
    with pytest.raises(SparseCRFError, match="SC148"):
        unpack(data)


def test_pieces_are_looked_at_where_they_meet(monkeypatch):
    monkeypatch.setattr("spacy_sparsecrf.schema._PIECE", 2)
    fields = {"a": SchemaField("<i8", "n", rises=True)}
    check({"a": np.arange(7)}, fields, {"n": 7})
    for at in range(1, 7):
        values = np.arange(7)
        values[at] = values[at - 1]
        with pytest.raises(ValueError, match="do not ascend"):
            check({"a": values}, fields, {})
    with pytest.raises(ValueError, match="a has 0 entries, not 5"):
        check({"a": np.zeros(0, np.int64)}, fields, {"n": 5})


def test_json_that_is_mostly_structure_is_refused():
    assert parse(b'["' + b"[" * MAX_STRUCTURE + b'"]') == ["[" * MAX_STRUCTURE]
    with pytest.raises(ValueError, match="too many entries"):
        parse(b"[" + b"[]," * MAX_STRUCTURE + b"[]]")
