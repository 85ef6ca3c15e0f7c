"""The formats that can be read, by name, and the readers of CoNLL-U and CRFsuite files.

CoNLL-U has the syntactic words of Universal Dependencies. A line of a CRFsuite file has a label and
attributes, one of which is the word.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from ..cli.files import read_lines
from ..errors import Errors, SparseCRFError
from .annotation_tools import read_brat, read_json
from .attributes import DOCSTART, IGNORED, UNSET, WORDS
from .columns import (
    BLANKS,
    TAB,
    Line,
    Row,
    Sentence,
    Source,
    has_slashes,
    read_columns,
    read_slashes,
    sentences,
    wrong_width,
)
from .records import RecordSource
from .tables import lists_in_json, read_csv, read_json_lists, read_parquet

_CONLLU_WIDTH = 10
_MAX_DIGITS = 9  # of the ID of a word
CONLLU_COLUMNS = ("orth", "lemma", "pos", "tag", "morph", "space_after")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")
_FIELD = re.compile(r"((?:\\.|[^\\:])*)(?::(.*))?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Format(str, Enum):
    """Formats of annotated text."""

    columns = "columns"
    tsv = "tsv"
    wapiti = "wapiti"
    crfpp = "crfpp"
    slash = "slash"
    conllu = "conllu"
    crfsuite = "crfsuite"
    csv = "csv"
    parquet = "parquet"
    jsonl = "jsonl"
    json = "json"
    brat = "brat"


RECORDS = frozenset({Format.jsonl, Format.json, Format.brat})
"""Formats of texts with character spans; JSON may have lists of tokens instead."""

SEPARATORS = {Format.columns: "", Format.tsv: TAB, Format.wapiti: BLANKS, Format.crfpp: BLANKS}
"""Separators of columns; "" if the file's first line shows the separator."""

_SUFFIXES = {
    ".tsv": Format.tsv,
    ".txt": Format.columns,
    ".conll": Format.columns,
    ".iob": Format.columns,
    ".iob2": Format.columns,
    ".conllu": Format.conllu,
    ".crfsuite": Format.crfsuite,
    ".csv": Format.csv,
    ".parquet": Format.parquet,
    ".jsonl": Format.jsonl,
    ".ndjson": Format.jsonl,
    ".json": Format.json,
    ".ann": Format.brat,
}


def guess_format(path: Path) -> Format:
    """Return a file's format by its name without .gz; a directory has the format of brat.

    RAISES: SparseCRFError if the suffix is unknown.
    """
    if path.is_dir():
        return Format.brat
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in _SUFFIXES:
        known = ", ".join(kind.value for kind in Format)
        raise SparseCRFError(Errors.SC613.format(path=path, known=known))
    return _SUFFIXES[suffix]


def open_source(
    path: Path,
    kind: Format,
    columns: Sequence[str] = (),
    attribute: str = "",
    merge_subtokens: bool = False,
) -> Source:
    """Open a file of annotated text.

    columns: attributes of its columns, for CRFsuite "orth" and the label's; by default see
    `read_columns`; attribute: see `read_crfsuite`; merge_subtokens: see `read_conllu`.
    RAISES: SparseCRFError for more than one label with CRFsuite.
    """
    if kind in SEPARATORS:
        is_slash = kind is Format.columns and not columns and has_slashes(path)
        return read_slashes(path) if is_slash else read_columns(path, columns, SEPARATORS[kind])
    if kind is Format.slash:
        return read_slashes(path)
    if kind in (Format.csv, Format.parquet):
        return (read_csv if kind is Format.csv else read_parquet)(path, columns)
    if kind in RECORDS:
        return read_json_lists(path, kind is Format.jsonl, columns)
    if kind is Format.conllu:
        return read_conllu(path, merge_subtokens)
    labels = [name for name in columns if name not in (WORDS, IGNORED)]
    if len(labels) > 1:
        raise SparseCRFError(Errors.SC606.format(columns=", ".join(labels)))
    return read_crfsuite(path, attribute, *labels)


def has_records(path: Path, kind: Format) -> bool:
    """Return whether a file has texts with character spans instead of sentences of tokens."""
    is_brat = kind is Format.brat
    return kind in RECORDS and (is_brat or not lists_in_json(path, kind is Format.jsonl))


def open_records(path: Path, kind: Format, lang: str) -> RecordSource:
    """Open a file of texts with character spans. lang: see `read_json`."""
    return read_brat(path) if kind is Format.brat else read_json(path, kind is Format.jsonl, lang)


def read_conllu(path: Path, merge_subtokens: bool = False) -> Source:
    """Read the words of a CoNLL-U file: form, lemma, UPOS, XPOS, FEATS and whether space follows.

    Empty nodes are skipped. A multiword token is replaced by its words, of which only the last may
    have a space after it. A comment "# newdoc" begins a document. spaCy's own reader cannot name
    files and lines in messages.
    merge_subtokens: whether to keep a multiword token as one token, as spaCy's converter does, with
    its own form, the lemmas, XPOS and FEATS of all of its words, and the UPOS of their head.
    RAISES: SparseCRFError, when read, for a line that is not a valid word.
    """

    def split(number: int, line: str) -> Row:
        row = Row(number, line.split("\t"))
        if len(row.values) != _CONLLU_WIDTH:
            raise wrong_width(path, row, _CONLLU_WIDTH, "as in all CoNLL-U", "one tab each")
        return row

    begins = False

    def lines() -> Iterator[Line]:
        nonlocal begins
        for number, line in read_lines(path):
            if not line.startswith("#"):
                yield number, line
            elif _NEW_DOCUMENT.match(line):
                begins = True

    def found() -> Iterator[Sentence]:
        nonlocal begins
        for rows in sentences(lines(), split):
            tokens = _tokens(path, rows)
            source.n_multiword += sum(written is not None for written, _ in tokens)
            made = [row for token in tokens for row in _rows(*token, merge_subtokens)]
            if made:
                # A word -DOCSTART- would be taken for a mark, unless a mark is before it.
                mark = Row(made[0].line, [DOCSTART] * len(CONLLU_COLUMNS))
                yield [mark, *made] if begins or made[0].values[0] == DOCSTART else made
                begins = False

    source = Source(path, CONLLU_COLUMNS, found())
    return source


def _tokens(path: Path, rows: Sentence) -> list[tuple[Row | None, Sentence]]:
    """Return the tokens of a sentence: the line of a multiword token or None, and its words."""
    tokens: list[tuple[Row | None, Sentence]] = []
    end = 0
    for row in rows:
        number = row.values[0]
        if "." in number:
            continue
        if "-" in number:
            end = _integer(path, row.line, number, number.split("-")[1])
            tokens.append((row, []))
        elif _integer(path, row.line, number, number) <= end:
            tokens[-1][1].append(row)
        else:
            tokens.append((None, [row]))
    return tokens


def _rows(written: Row | None, words: Sentence, merge: bool) -> Sentence:
    """Return the rows of a token, with the values of CONLLU_COLUMNS."""
    if merge and written and words:
        words = [_merged(written, words)]
    spaces = ["0"] * len(words)
    if words:
        spaces[-1] = "0" if "SpaceAfter=No" in (written or words[-1]).values[-1].split("|") else "1"
    return [Row(w.line, [*w.values[1:6], space]) for w, space in zip(words, spaces, strict=True)]


def _merged(written: Row, words: Sentence) -> Row:
    """Return a multiword token as one line of a word."""
    numbers = [word.values[0] for word in words]
    head = next((word for word in words if word.values[6] not in numbers), words[0])
    lemmas, tags, morphs = (
        [word.values[i] for word in words if word.values[i] != UNSET] for i in (2, 4, 5)
    )
    fields: dict[str, set[str]] = {}
    for feature in "|".join(morphs).split("|") if morphs else []:
        field, _, values = feature.partition("=")
        fields.setdefault(field, set()).update(values.split(","))
    morph = "|".join(f"{field}={','.join(sorted(fields[field]))}" for field in sorted(fields))
    made = " ".join(lemmas), head.values[3], "_".join(tags), morph
    return Row(written.line, [*written.values[:2], *(value or UNSET for value in made)])


def _integer(path: Path, line: int, value: str, digits: str) -> int:
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS and int(digits):
        return int(digits)
    values = {"path": path, "line": line, "value": value, "column": "ID"}
    reason = "a number, a range such as 3-4, or an empty node such as 3.1 is expected"
    raise SparseCRFError(Errors.SC616.format(**values, reason=reason))


def read_crfsuite(path: Path, attribute: str = "", label: str = "tag") -> Source:
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
        known = ", ".join(field.partition("=")[0] for field in fields) or "no attributes"
        values = {"path": path, "line": number, "wanted": attribute or "NAME"}
        raise SparseCRFError(Errors.SC617.format(**values, known=known))

    return Source(path, ("orth", label), sentences(read_lines(path), split))


def _unescape(field: str) -> str:
    """Return an attribute without its weight and escapes."""
    match = _FIELD.match(field)
    return _ESCAPED.sub(r"\1", match[1] if match else field)
