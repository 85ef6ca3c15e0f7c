"""Tables of tokens: CSV with a column of sentence numbers; Parquet and JSON with lists."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..cli.files import BOM, is_packed
from ..errors import Errors, SparseCRFError
from ..schema import reported_as
from .annotation_tools import check_unicode, json_values
from .attributes import (
    DOCSTART,
    ENTITIES,
    IGNORED,
    UNSET,
    WORD_NAMES,
    WORDS,
    is_label_name,
    named_columns,
    plain_name,
    span_key,
)
from .columns import N_GUESSED, Row, Sentence, Source, wrong_width

# Names of columns, in lower case and without blanks, _ and #.
_SENTENCES = frozenset(
    ["sentence", "sentenceid", "sentid", "sentenceidx", "sentenceno", "sentencenumber"]
)
_DOCUMENTS = frozenset(["doc", "docid", "document", "documentid", "file", "fileid", "filename"])

_LABEL_TYPES = {str, int, bool, type(None)}  # permitted in lists
_LABEL_LIST = re.compile(r"\w*list<[^:]*: (large_)?(string|u?int|bool|null|dictionary)")
# Raised by pyarrow for damaged files, and by conversion of their values.
_UNREADABLE = (ValueError, TypeError, LookupError, NotImplementedError, OSError)


def read_csv(path: Path, columns: Sequence[str] = ()) -> Source:
    """Read CSV with a header, one token per row, and a column of sentence numbers.

    The number may be in the first row of each sentence only. A column of documents, such as doc_id,
    begins sentences too. A file that is not UTF-8 is read as Windows-1252 and gets a note.
    columns: attributes of the columns, _ for the sentence numbers; by default they are guessed,
    see `named_columns`.
    RAISES: SparseCRFError without these columns, and for a row with another number of columns.
    """
    text, notes = _decoded(path)
    # Not `splitlines`: it also splits at other characters, such as byte 85 in a Latin-1 word.
    lines = [*io.StringIO(text.removeprefix(BOM), newline="")]
    separator = max(",;\t", key=lambda each: lines[0].count(each)) if lines else ","
    rows = csv.reader(lines, delimiter=separator)
    names = [plain_name(name) for name in next(_checked(path, rows), [])]
    number = next((i for i, name in enumerate(names) if name in _SENTENCES), None)
    if number is None or not (columns or WORD_NAMES & {*names}):
        raise SparseCRFError(Errors.SC628.format(path=path, columns=", ".join(names)))
    if columns and len(columns) != len(names):
        raise wrong_width(path, Row(1, names), len(columns), "as --columns says", "one comma each")
    others = [i for i, name in enumerate(names) if i != number and name not in _DOCUMENTS]
    documents = [i for i, name in enumerate(names) if name in _DOCUMENTS]
    known = columns or [WORDS if name in WORD_NAMES else "" for name in names]
    found_rows = _sentences(path, rows, [*known], [*documents, number])
    has_marks = bool(documents)
    if columns:
        return Source(path, tuple(columns), found_rows, has_marks, notes=notes)
    head = [*islice(found_rows, N_GUESSED)]
    if not head:
        return Source(path, (), iter(()))
    tokens = (row.values for rows in head for row in rows if row.values[0] != DOCSTART)
    guessed = named_columns(
        [names[i] for i in others], ([row[i] for i in others] for row in tokens)
    )
    taken = dict(zip(others, guessed, strict=True))
    attributes = tuple(taken.get(i, IGNORED) for i in range(len(names)))
    return Source(path, attributes, chain(head, found_rows), has_marks, notes=notes)


def _decoded(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text of a file, which may be compressed, and notes on how it was read."""
    data = path.read_bytes()
    if is_packed(path, data):
        with reported_as(Errors.SC618, (gzip.BadGzipFile, EOFError, zlib.error), path=path):
            data = gzip.decompress(data)
    if b"\0" in data:
        values = {"line": 1, "reason": "it has zero bytes", "encoding": "utf-16"}
        raise SparseCRFError(Errors.SC610.format(path=path, **values))
    try:
        return data.decode("utf8"), ()
    except UnicodeDecodeError as error:
        with suppress(UnicodeDecodeError):
            note = f"{path} is not UTF-8 (byte {error.start}); it is read as Windows-1252"
            return data.decode("cp1252"), (note,)
        return data.decode("latin1"), (note.replace("Windows-1252", "Latin-1"),)


def _sentences(
    path: Path, rows: Iterator[list[str]], columns: Sequence[str], numbers: Sequence[int]
) -> Iterator[Sentence]:
    """Split rows into sentences by their numbers; an empty number continues a sentence.

    columns: their attributes as far as known; numbers: of the columns with documents, if any, and
    with sentences. A document begins with a row of -DOCSTART-.
    """
    found: Sentence = []
    last = [""] * len(numbers)
    width = len(columns)
    word = columns.index(WORDS)
    reader: Any = rows
    for values in _checked(path, rows):
        if not any(value.strip() for value in values):
            continue
        row = Row(reader.line_num, [value.strip() or UNSET for value in values])
        # A word of blanks is kept; an empty word is refused later.
        row.values[word : word + 1] = [own.strip() or own for own in values[word : word + 1]]
        if len(values) != width:
            raise wrong_width(path, row, width, "as in the header", "one comma each")
        own = [values[i].strip() or before for i, before in zip(numbers, last, strict=True)]
        if found and own != last:
            yield found
            found = []
        if own[:-1] != last[:-1]:
            found.append(Row(reader.line_num, [DOCSTART] * width))
        last = own
        found.append(row)
    if found:
        yield found


def _checked(path: Path, rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Yield rows. RAISES: SparseCRFError if they are not CSV, as after an unclosed quote."""
    reader: Any = rows
    with reported_as(
        Errors.SC624, (csv.Error,), path=path, place=lambda: f"line {reader.line_num}"
    ):
        yield from rows


def read_parquet(path: Path, columns: Sequence[str] = ()) -> Source:
    """Read Parquet whose rows are sentences: lists of tokens and of their labels.

    Labels may be class numbers if the file has the class names, as the package datasets writes
    them. columns: attributes or _ for the columns of lists, tokens first; by default they are known
    by their names, such as tokens and ner_tags, or else guessed from their values.
    RAISES: SparseCRFError without pyarrow, without lists of tokens, and for numbers without names.
    """
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        values = {"what": f"Reading {path}", "package": "pyarrow", "extra": "parquet"}
        raise SparseCRFError(Errors.SC817.format(**values)) from error
    path.stat()
    with reported_as(Errors.SC624, _UNREADABLE, path=path, place="the file"):
        file = ParquetFile(path)
        schema = file.schema_arrow
    matches = {name: _LABEL_LIST.match(str(schema.field(name).type)) for name in schema.names}
    kinds = {name: match[2] for name, match in matches.items() if match}
    classes = _classes((schema.metadata or {}).get(b"huggingface", b"{}"))
    word = next((name for name in kinds if plain_name(name) in WORD_NAMES), None)
    if word is None:
        found = ", ".join(schema.names)
        raise SparseCRFError(Errors.SC628.format(path=path, columns=found))
    known = {name for name in kinds if name in classes or is_label_name(name)}
    lists = [word, *(name for name in _fitting(path, file, word, [*kinds], known) if name != word)]
    numbers = {name for name in lists if "int" in kinds[name] and name not in classes}
    named = [_as_word, *(_namer(name, classes.get(name)) for name in lists[1:])]
    source = _of_lists(path, lists, _parquet_rows(path, file, lists, named), columns)
    return _without_numbers(source, lists, numbers, bool(columns))


def _fitting(
    path: Path, file: Any, word: str, lists: Sequence[str], known: Collection[str]
) -> Sequence[str]:
    """Return the lists that are as long as the tokens in the first row that has them.

    word: name of the list of tokens; known: lists of labels, which must fit.
    """
    with reported_as(Errors.SC624, _UNREADABLE, path=path, place="the file"):
        batch = next(file.iter_batches(batch_size=N_GUESSED, columns=lists), None)
        rows = [] if batch is None else batch.to_pylist()
    rows = [row for row in rows if row[word]]
    firsts = {name: next((row for row in rows if row[name]), None) for name in lists}
    fit = {name for name, row in firsts.items() if row and len(row[name]) == len(row[word])}
    return [name for name in lists if name in fit or name in known] if rows else lists


def lists_in_json(path: Path, in_lines: bool) -> dict[str, list[Any]]:
    """Return the lists of tokens and labels in the first sentence of a JSON file, by name.

    Tokens are first; other lists have their length and text, numbers or null. The result is empty
    if the file has no tokens as text, or no other list. in_lines, RAISES: see `json_values`.
    """
    for _, record in json_values(path, in_lines):
        lists = record.items() if isinstance(record, Mapping) else ()
        found = {name: v for name, v in lists if isinstance(v, list)}
        word = next((name for name in found if plain_name(name) in WORD_NAMES), "")
        tokens = found.pop(word, None)
        if tokens == []:
            continue
        if not tokens or not all(isinstance(token, str) for token in tokens):
            break
        found = {k: v for k, v in found.items() if len(v) == len(tokens)}
        found = {k: v for k, v in found.items() if {*map(type, v)} <= _LABEL_TYPES}
        return {word: tokens} | found if found else {}
    return {}


def read_json_lists(path: Path, in_lines: bool, columns: Sequence[str] = ()) -> Source:
    """Read JSON whose records are sentences: lists of tokens and of their labels.

    columns: attributes of the lists in the order of `lists_in_json`; default: see `read_parquet`.
    RAISES: SparseCRFError without lists, for numbers as labels, and when read, for lists whose
    lengths differ.
    """
    lists = lists_in_json(path, in_lines)
    texts: list[Callable[[Any], str]] = [
        partial(_json_text, text=_as_word),
        *[_json_text] * (len(lists) - 1),
    ]
    if not lists:
        raise SparseCRFError(Errors.SC628.format(path=path, columns="no lists of text"))

    def found() -> Iterator[Sentence]:
        for place, record in json_values(path, in_lines):
            with reported_as(Errors.SC624, path=path, place=place):
                if not isinstance(record, Mapping):
                    raise ValueError(f"it is {repr(record)[:60]}, not an object with lists")
                number, names = int(place.split()[-1]), [*lists]
                rows = _tokens(number, record, names, texts)
            if rows:
                yield rows

    source = _of_lists(path, [*lists], found(), columns)
    numbers = {name for name, own in lists.items() if any(isinstance(v, int) for v in own)}
    return source if columns else _without_numbers(source, [*lists], numbers, False)


def _without_numbers(
    source: Source, lists: Sequence[str], numbers: Collection[str], are_given: bool
) -> Source:
    """Ignore tags that are numbers without names if there are labels of spans as text.

    are_given: whether the user named the columns. RAISES: SparseCRFError for other such labels.
    """
    taken = [*source.columns]
    has_spans = any(column == ENTITIES or span_key(column) for column in taken)
    for i, name in enumerate(lists if taken else ()):
        if name in numbers and taken[i] != IGNORED:
            if are_given or not has_spans or taken[i] == ENTITIES or span_key(taken[i]):
                raise SparseCRFError(Errors.SC635.format(path=source.path, column=name))
            taken[i] = IGNORED
    return replace(source, columns=tuple(taken))


def _of_lists(
    path: Path, lists: Sequence[str], found_rows: Iterator[Sentence], columns: Sequence[str]
) -> Source:
    """Return a source of sentences. lists: names of the columns of `found_rows`, tokens first."""
    if columns:
        if len(columns) != len(lists):
            why = f"as --columns says, the lists being {', '.join(lists)}"
            raise wrong_width(path, Row(1, [*lists]), len(columns), why, "a list each")
        return Source(path, tuple(columns), found_rows, has_marks=False)
    notes = (f"Lists in the file: {', '.join(lists)}",)
    head = [*islice(found_rows, N_GUESSED)]
    if not head:
        return Source(path, (), iter(()))
    taken = named_columns(lists, (row.values for rows in head for row in rows))
    return Source(path, taken, chain(head, found_rows), has_marks=False, notes=notes)


def _parquet_rows(
    path: Path, file: Any, lists: Sequence[str], named: Sequence[Callable[[Any], str]]
) -> Iterator[Sentence]:
    number = 0
    place = "from row {} on".format
    with reported_as(Errors.SC624, _UNREADABLE, path=path, place=lambda: place(max(number, 1))):
        for batch in file.iter_batches(columns=lists):
            for row in batch.to_pylist():
                number += 1
                if found := _tokens(number, row, lists, named):
                    yield found


def _tokens(
    number: int,
    record: Mapping[str, Any],
    lists: Sequence[str],
    named: Sequence[Callable[[Any], str]],
) -> Sentence:
    """Return the tokens of a record. named: converters of each list to text. RAISES: ValueError."""
    values = [record.get(name) or () for name in lists]
    n = len(values[0]) if isinstance(values[0], (list, tuple)) else 0
    for name, own in zip(lists, values, strict=True):
        if not isinstance(own, (list, tuple)) or len(own) != n:
            found = repr(record.get(name))[:60]
            raise ValueError(f"{name!r} is {found}, not a list of {n} values")
    return [
        Row(number, [name(value) for name, value in zip(named, token, strict=True)])
        for token in zip(*values, strict=True)
    ]


def _as_text(value: Any) -> str:
    return UNSET if value is None or not str(value).strip() else str(value)


def _as_word(value: Any) -> str:
    return "" if value is None else str(value)


def _json_text(value: Any, text: Callable[[Any], str] = _as_text) -> str:
    """Return the text of a JSON value. RAISES: ValueError if it is not text, a number or null."""
    if type(value) not in _LABEL_TYPES:
        raise ValueError(f"a list contains {repr(value)[:60]}, which is not text")
    found = text(value)
    check_unicode(found, "value")
    return found


def _classes(metadata: bytes) -> dict[str, list[str]]:
    """Return the class names of columns, as the package datasets writes them."""
    found = {}
    try:
        for column, feature in json.loads(metadata)["info"]["features"].items():
            while isinstance(feature, (Mapping, list)):
                if isinstance(feature, Mapping) and "names" in feature:
                    found[column] = [str(name) for name in feature["names"]]
                    break
                inner = feature if isinstance(feature, list) else [feature.get("feature")]
                feature = inner[0] if inner else None
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return {}
    return found


def _namer(column: str, names: Sequence[str] | None) -> Callable[[Any], str]:
    """Return a function that converts the values of a column to text. names: of its classes."""
    if names is None:
        return _as_text

    def name(value: int | None) -> str:
        # Libraries mask labels by -100.
        if value is not None and value >= len(names):
            raise ValueError(f"{column} has class {value}, and the file names {len(names)}")
        return UNSET if value is None or value < 0 else names[value]

    return name
