"""The formats that can be read: their signs, and their readers."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from ..errors import Errors, SparseCRFError, refused_option
from .annotation_tools import JsonReader, is_json, read_brat
from .column_attributes import IGNORED, WORDS
from .column_choice import read_columns
from .columns import BLANKS, TAB, Row, Sentence, Source, layout_of, lines_of, paragraphs
from .conllu import CONLLU_COLUMNS, read_conllu
from .csv_file import csv_lines
from .other_formats import refuse_other
from .records import Record
from .token_lists import has_lists, read_lists

_FIELD = re.compile(r"((?:\\.|[^\\:])*)(?::(.*))?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Format(str, Enum):
    """Formats of annotated text."""

    columns = "columns"
    csv = "csv"
    tsv = "tsv"
    wapiti = "wapiti"
    crfpp = "crfpp"
    conllu = "conllu"
    crfsuite = "crfsuite"
    jsonl = "jsonl"
    json = "json"
    lists = "lists"
    brat = "brat"


RECORDS = frozenset({Format.jsonl, Format.json, Format.brat})
"""Formats of texts with character spans."""

SEPARATORS = {Format.columns: "", Format.tsv: TAB, Format.wapiti: BLANKS, Format.crfpp: BLANKS}
"""Separators of columns; "" if the lines show it."""

_SUFFIXES = {f".{name}": Format(name) for name in ("conllu", "crfsuite", "jsonl", "json")}
_SUFFIXES |= {".ndjson": Format.jsonl, ".ann": Format.brat}
_JSON = (Format.jsonl, Format.json)


def format_of(path: Path, is_read: bool = True) -> Format:
    """Return a file's format by its name without .gz, or by its first line if that is JSON.

    A directory has the format of brat. JSON may have lists of tokens. Other files have columns, and
    those whose name ends with .csv and whose first line has no tab are CSV. is_read: whether the
    file exists.
    """
    if is_read and path.is_dir():
        return Format.brat
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    kind, line = _SUFFIXES.get(suffix, Format.columns), ""
    if is_read and kind is Format.columns and path.is_file():
        line = next((text for _, text in lines_of(path) if text.strip()), "")
        kind = Format.json if is_json(line) else kind
    if is_read and kind in _JSON and path.is_file() and has_lists(path):
        return Format.lists
    is_csv = suffix == ".csv" and kind is Format.columns and TAB not in line
    return Format.csv if is_csv else kind


def open_source(
    path: Path, kind: Format, columns: Sequence[str] = (), attribute: str = ""
) -> Source[Sentence]:
    """Open a file of sentences.

    columns: attributes of its columns, for CRFsuite "orth" and the label's; by default see
    `read_columns`; attribute: see `read_crfsuite`.
    RAISES: SparseCRFError for more than one label with CRFsuite.
    """
    if kind is Format.conllu:
        return Source(path, read_conllu, CONLLU_COLUMNS)
    if kind is Format.crfsuite:
        label, *others = [name for name in columns if name not in (WORDS, IGNORED)] or ["tag"]
        if others:
            reason = "a CRFsuite file has one label, as in orth,ner"
            raise refused_option("columns", columns, reason)
        return read_crfsuite(path, attribute, label)
    if kind is Format.lists:
        return read_lists(path, columns)
    if kind is Format.csv:
        return read_columns(layout_of(path, "", [*csv_lines(path)]), columns)
    layout = layout_of(path, SEPARATORS[kind])
    if kind is Format.columns:
        refuse_other(path, layout.lines)
    return read_columns(layout, columns)


def open_records(path: Path, kind: Format, lang: str) -> Source[Record]:
    """Open a file of texts with character spans. lang: see `JsonReader`."""
    if kind is Format.brat:
        return Source(path, read_brat)
    return Source(path, lambda source: JsonReader(source, lang).entries())


def read_crfsuite(path: Path, attribute: str, label: str) -> Source[Sentence]:
    """Read the labels of a CRFsuite file, and its attributes with the words.

    attribute: name of the attribute with the word, such as "w[0]" for w[0]=the; label: column of
    the labels. A colon and a weight after an attribute are ignored; a backslash escapes a colon or
    backslash in names and values.
    RAISES: SparseCRFError, when read, for a token without this attribute.
    """

    def split(number: int, line: str) -> Row:
        gold, *fields = map(_unescape, line.split("\t"))
        for field in fields:
            if attribute and field.startswith(f"{attribute}="):
                return Row(number, [field.removeprefix(f"{attribute}="), gold])
        names = ", ".join(field.partition("=")[0] for field in fields) or "no attributes"
        wanted = f"line {number}: no attribute is {attribute or 'NAME'}=VALUE"
        reason = (
            f"{wanted}; name that of the words, as in --columns 'orth=w[0],ner'; it has: {names}"
        )
        raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))

    def sentences(_: object) -> Iterator[Sentence]:
        return ([split(number, line) for number, line in lines] for lines in paragraphs(path))

    return Source(path, sentences, ("orth", label))


def _unescape(field: str) -> str:
    """Return an attribute without its weight and escapes."""
    match = _FIELD.match(field)
    return _ESCAPED.sub(r"\1", match[1] if match else field)
