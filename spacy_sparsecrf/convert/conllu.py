"""CoNLL-U: the syntactic words of Universal Dependencies."""

from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .lines import Row, Sentence, Source, read_lines, sentences, wrong_width

WIDTH = 10
COLUMNS = ("orth", "lemma", "pos", "tag", "morph", "space_after")


def read_conllu(path: Path) -> Source:
    """Read the words of a CoNLL-U file: form, lemma, UPOS, XPOS, FEATS and whether space follows.

    Empty nodes are left out. The words of a multiword token stand for it: no space follows but
    after its last. spaCy's own reader knows neither files nor lines to name in messages.
    RAISES: SparseCRFError, when read, for a line that is none of a word.
    """

    def split(number: int, line: str) -> Row:
        row = Row(number, line.split("\t"))
        if len(row.values) != WIDTH:
            raise wrong_width(path, row, WIDTH, "as in all CoNLL-U", "one tab each")
        return row

    lines = ((number, line) for number, line in read_lines(path) if not line.startswith("#"))
    words = (list(_words(path, rows)) for rows in sentences(lines, split))
    return Source(path, COLUMNS, (found for found in words if found))


def _words(path: Path, rows: Sentence) -> Iterator[Row]:
    range_end, range_space = 0, "1"
    for line, values in rows:
        number, form, lemma, pos, tag, morph, *_, misc = values
        space = "0" if "SpaceAfter=No" in misc.split("|") else "1"
        if "." in number:
            continue
        if "-" in number:
            range_end, range_space = _integer(path, line, number, number.split("-")[1]), space
            continue
        position = _integer(path, line, number, number)
        if position <= range_end:
            space = range_space if position == range_end else "0"
        yield Row(line, [form, lemma, pos, tag, morph, space])


def _integer(path: Path, line: int, value: str, digits: str) -> int:
    if digits.isascii() and digits.isdigit():
        return int(digits)
    values = {"path": path, "line": line, "value": value, "column": "ID"}
    reason = "a number, a range such as 3-4, or an empty node such as 3.1 is expected"
    raise SparseCRFError(Errors.SC616.format(**values, reason=reason))
