"""Column files, which may be compressed: one token per line, an empty line after each sentence.

Columns are separated by tabs, or by blanks as in Wapiti and CRF++.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..cli.files import read_lines
from ..errors import Errors, SparseCRFError
from .attributes import (
    DOCSTART,
    ENTITIES,
    IGNORED,
    WORD_NAMES,
    WORDS,
    guess_columns,
    is_header,
    named_columns,
    plain_name,
    span_key,
)
from .schemes import OUTSIDE, PREFIXED, standard_label

TAB, BLANKS = "\t", " "
N_GUESSED = 1000  # number of sentences from which columns are guessed
N_SLASHED = 20  # number of lines from which words with tags are recognised
# A column is refused as tags if the share of distinct values is at least _ALL for _FEW tokens or
# more, or above one half for _MANY tokens or more.
_FEW, _ALL, _MANY = 10, 0.9, 20
_MANY_WORDS = 5  # words from which on a line may be running text
_MOST = 0.9  # least share of words with tags in text with tags
_SLASHED = re.compile(r".+/[^/]+")
_END_OF_TEXT = re.compile(r"""\w[.!?]['")]*$""")
_UNSPACED_TEXT = re.compile(r"\S{5,}[。！？]")
_COMMENTS = ("# ", "#\t")
_DESCRIBED = {TAB: "one tab each", BLANKS: "blanks"}
_BLANKS = re.compile("[ \t]+")


class Row(NamedTuple):
    """A token. line: line number in the file, from 1; values: of its columns."""

    line: int
    values: list[str]


Line: TypeAlias = tuple[int, str]  # its number, from 1, and its text
Sentence: TypeAlias = list[Row]
Split: TypeAlias = Callable[[int, str], Row]


@dataclass
class Source:
    """The contents of a file of sentences.

    path: for messages; columns: attributes of the columns, see `attributes`; sentences: rows with a
    value for each column, except for rows whose first value is -DOCSTART-; has_marks: whether such
    rows begin documents and are not tokens; n_multiword: number of CoNLL-U's multiword tokens in
    the sentences read so far; notes: on how the file was read, for the user.
    """

    path: Path
    columns: tuple[str, ...]
    sentences: Iterator[Sentence]
    has_marks: bool = True
    n_multiword: int = 0
    notes: tuple[str, ...] = ()


def sentences(lines: Iterable[Line], split: Split) -> Iterator[Sentence]:
    """Split lines into sentences at empty lines and before -DOCSTART-.

    split: converts a line that is not empty to a row.
    """
    rows: Sentence = []
    for number, line in lines:
        row = split(number, line) if line else None
        if rows and (row is None or row.values[0] == DOCSTART):
            yield rows
            rows = []
        if row is not None:
            rows.append(row)
    if rows:
        yield rows


def wrong_width(path: Path, row: Row, expected: int, why: str, separator: str) -> SparseCRFError:
    """Return an error about a row with too many or too few columns."""
    where = {"path": path, "line": row.line, "found": len(row.values), "expected": expected}
    return SparseCRFError(Errors.SC611.format(**where, why=why, separator=separator))


def read_columns(path: Path, columns: Sequence[str] = (), separator: str = "") -> Source:
    """Read a file of columns.

    path: of the file, which may be compressed (.gz); columns: attributes of its columns; by default
    they are guessed from the first sentences, see `guess_columns`; separator: TAB, BLANKS (any
    number of blanks and tabs), or by default a tab if the first line has one. Sentences end with an
    empty line. Blanks around a value are removed. A first line with names of columns is skipped.
    -DOCSTART- begins a document and may have fewer columns.
    A line that starts with # is a token, unless the file has comments: lines such as "# id = 1"
    before the first sentence, with another number of columns. Then such lines before other
    sentences are comments, too. Files with separator=BLANKS have no comments.
    RAISES: SparseCRFError, when read, for a line with another number of columns.
    """
    lines = read_lines(path)
    head, n = _head(lines, () if separator == BLANKS else _COMMENTS)
    if not n:
        return Source(path, tuple(columns), iter(()))
    number, first = head[n - 1]
    separator = separator or (TAB if TAB in first else BLANKS)
    values = _split(separator, number, first).values
    width = len(columns) or len(values)
    why = "as --columns says" if columns else f"as in line {number}"

    def split(number: int, line: str) -> Row:
        row = _split(separator, number, line)
        if len(row.values) != width and row.values[0] != DOCSTART:
            if not columns:
                _check_is_no_text(path, head[n - 1][0], width, row)
            raise wrong_width(path, row, width, why, _DESCRIBED[separator])
        return row

    entries: Iterable[Line] = chain(head, lines)
    if separator == BLANKS:
        entries = ((number, line.strip(" \t")) for number, line in entries)
    elif width > 1:  # A line of blanks is an empty line.
        entries = ((number, line if line.strip(" \t") else "") for number, line in entries)
    notes: tuple[str, ...] = ()
    names: list[str] = []
    is_comment = partial(_is_comment, separator, width, first)
    before = [
        line for _, line in head[: n - 1] if line.strip(" \t") and not line.startswith(DOCSTART)
    ]
    if is_header(values) and all(map(is_comment, before)):
        names = values
        notes = (f"Line {number} is a header and is left out: {first.strip()}",)
        entries = ((line, text) for line, text in entries if line != number)
    if comment := next(filter(is_comment, before), ""):
        notes += (f"Comments before sentences are left out, such as: {comment.strip()}",)
        entries = _without(is_comment, entries)
    rows = sentences(entries, split)
    if columns:
        return Source(path, tuple(columns), rows, notes=notes)
    return _with_guessed_columns(path, rows, notes, names)


def _head(lines: Iterator[Line], marks: tuple[str, ...]) -> tuple[list[Line], int]:
    """Read up to the first token or header that starts with none of the marks, or all lines.

    RETURNS: the lines, and their number up to the last token or header; 0 if there is none.
    """
    head, end = [], 0
    for entry in lines:
        head.append(entry)
        if entry[1].strip(" \t") and not entry[1].startswith(DOCSTART):
            end = len(head)
            if not entry[1].startswith(marks) or is_header(entry[1].split(TAB)):
                break
    return head, end


def _is_comment(separator: str, width: int, first: str, line: str) -> bool:
    """Return whether a line is a comment. width: number of columns; first: a line of a token."""
    has_equals = separator == BLANKS and "=" in line and "=" not in first
    is_other = has_equals or len(_split(separator, 0, line).values) != width
    return is_other and line.startswith(_COMMENTS)


def _without(is_comment: Callable[[str], bool], entries: Iterable[Line]) -> Iterator[Line]:
    """Remove comments before sentences."""
    begins = True
    for number, line in entries:
        if not (begins and is_comment(line)):
            begins = not line or line.startswith(DOCSTART)
            yield number, line


def _hides_labels(values: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row with a name such as Token is all that keeps labels from spans."""
    return (
        plain_name(values[0][0]) in WORD_NAMES
        and len(values) > 1
        and guess_columns(values)[-1] == "tag"
        and guess_columns(values[1:])[-1] != "tag"
    )


def _check_is_no_text(path: Path, line: int, width: int, row: Row) -> None:
    """Refuse running text: lines whose numbers of words differ much. RAISES: SparseCRFError."""
    n, m = sorted((width, len(row.values)))
    if m >= _MANY_WORDS and m - n > 1:
        counts = {"line": line, "n": width, "other": row.line, "m": len(row.values)}
        raise SparseCRFError(Errors.SC636.format(path=path, **counts))


def _with_guessed_columns(
    path: Path, rows: Iterator[Sentence], notes: tuple[str, ...], names: Sequence[str] = ()
) -> Source:
    """Guess the columns of a file from its first sentences, and their names if it has some."""
    if "sentence" in map(plain_name, names):
        raise SparseCRFError(Errors.SC629.format(path=path))
    guessed_by = [*islice(rows, N_GUESSED)]
    tokens = [row for found in guessed_by for row in found if row.values[0] != DOCSTART]
    if not tokens:
        return Source(path, (), iter(()), notes=notes)
    texts = [row for row in tokens if _looks_like_text(row.values)]
    if len(texts) > len(tokens) / 2:
        text = " ".join(texts[0].values)[:60]
        raise SparseCRFError(Errors.SC639.format(path=path, line=texts[0].line, text=text))
    n_numbers = int(_is_numbered(guessed_by))
    if n_numbers:
        notes += ("Column 1 numbers the tokens and is ignored",)
    values = [row.values[n_numbers:] or row.values for found in guessed_by for row in found]
    if not names and _hides_labels(values):
        names, values = tokens[0].values, values[1:]
        guessed_by[:1] = filter(None, [guessed_by[0][1:]])
        notes += (f"Line {tokens[0].line} is a header and is left out: {' '.join(names)}",)
    own = named_columns(names[n_numbers:], values) if names else guess_columns(values)
    guessed = (IGNORED,) * n_numbers + own
    _check_labels(path, guessed, guessed_by)
    notes += _note_of_labels(guessed, guessed_by) + _note_of_tags(guessed, guessed_by)
    return Source(path, guessed, chain(guessed_by, rows), notes=notes)


def _is_numbered(found: Sequence[Sentence]) -> bool:
    """Return whether the first of several columns numbers the tokens, from 0 or 1."""
    firsts = [
        [row.values[0].removesuffix(".") for row in rows if row.values[0] != DOCSTART]
        for rows in found
    ]
    if sum(map(len, firsts)) < 2 or any(len(row.values) < 2 for row in found[0][-1:]):
        return False
    through = [*chain.from_iterable(firsts)]  # Numbers may also continue through the file.
    return any(
        all(values == [str(i + base) for i in range(len(values))] for values in numbered)
        for base in (0, 1)
        for numbered in (firsts, [through])
    )


def _looks_like_text(values: Sequence[str]) -> bool:
    """Return whether the values of a line are, or begin with, a sentence instead of a token."""
    if len(values) >= _MANY_WORDS and _END_OF_TEXT.search(values[-1]):
        return True
    return len(values[0].split()) > 3 or _UNSPACED_TEXT.fullmatch(values[0]) is not None


def _check_labels(path: Path, columns: Sequence[str], found: Iterable[Sentence]) -> None:
    """Refuse tags with about as many distinct values as tokens. RAISES: SparseCRFError."""
    if columns[-1] != "tag":
        return
    values = [row.values[-1] for rows in found for row in rows if len(row.values) == len(columns)]
    n, n_distinct = len(values), len(set(values))
    if (n >= _FEW and n_distinct >= _ALL * n) or (n >= _MANY and n_distinct > n // 2):
        values_of = {"path": path, "n": n_distinct, "lines": n, "values": ", ".join(values[:3])}
        raise SparseCRFError(Errors.SC637.format(**values_of))


def has_slashes(path: Path) -> bool:
    """Return whether nearly all words of the first lines have tags after slashes."""
    lines = [line.split() for _, line in islice(read_lines(path), N_SLASHED)]
    words = [word for words in lines for word in words]
    n_tagged = sum(_SLASHED.fullmatch(word) is not None for word in words)
    return any(len(line) > 1 for line in lines) and n_tagged >= _MOST * len(words)


def read_slashes(path: Path) -> Source:
    """Read text whose words have tags, as in The/DT dog/NN, with one sentence per line.

    Tags are entities or chunks if they encode spans; a slash after a backslash is part of the word.
    RAISES: SparseCRFError, when read, for a word without a tag.
    """

    def found() -> Iterator[Sentence]:
        for number, line in read_lines(path):
            rows = []
            for word in line.split():
                if not _SLASHED.fullmatch(word):
                    raise SparseCRFError(Errors.SC638.format(path=path, line=number, word=word))
                text, tag = word.rsplit("/", 1)
                rows.append(Row(number, [text.replace("\\/", "/"), tag]))
            if rows:
                yield rows

    note = "Words have tags behind a slash, as in The/DT"
    source = _with_guessed_columns(path, found(), (note,))
    return replace(source, columns=source.columns or (WORDS, "tag"), has_marks=False)


def _note_of_labels(columns: Sequence[str], found: Iterable[Sentence]) -> tuple[str, ...]:
    """Return a note that labels of spans are read as B-PER, if some are written otherwise."""
    mark = next((i for i, name in enumerate(columns) if name == ENTITIES or span_key(name)), None)
    if mark is None:
        return ()
    # -DOCSTART- may be alone in its line.
    values = (value for rows in found for row in rows for value in row.values[mark : mark + 1])
    other = next((value for value in values if standard_label(value) != value), "")
    return (f"Labels such as {other} are read as {standard_label(other)}",) if other else ()


def _note_of_tags(columns: Sequence[str], found: Iterable[Sentence]) -> tuple[str, ...]:
    """Return a note on how to read tags as entities, if most tokens have the same tag."""
    if columns[-1] != "tag":
        return ()
    counts = Counter(row.values[-1] for rows in found for row in rows)
    most, n = counts.most_common(1)[0]
    if len(counts) < 2 or n <= counts.total() / 2:
        return ()
    if most == OUTSIDE and not any(PREFIXED.fullmatch(tag) for tag in counts):
        return (
            "Most tags are O. If the others are entity labels without B- and I-, use --scheme io",
        )
    if guess_columns((WORDS, OUTSIDE if tag == most else tag) for tag in counts)[1] == "tag":
        return ()
    return (f"All tags but {most} look like entity labels. To read them so, replace {most} by O",)


def _split(separator: str, number: int, line: str) -> Row:
    if separator == TAB:
        # A value of blanks only may be a token, and is kept.
        return Row(number, [value.strip(" ") or value for value in line.split(TAB)])
    return Row(number, _BLANKS.split(line.strip(" \t")))


def write_sentence(rows: Iterable[Sequence[str]], separator: str = TAB) -> str:
    """Return the lines of a sentence, with an empty line after it."""
    return "".join(f"{separator.join(row)}\n" for row in rows) + "\n"
