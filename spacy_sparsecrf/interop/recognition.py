"""What the first lines of a file show: running text, word/TAG text, numbered tokens."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from ..cli.files import read_lines
from ..errors import Errors, SparseCRFError
from .attributes import DOCSTART

N_LINES = 1000  # that are looked at
_TAGGED = re.compile(r"\S+/[^/\s]+")
_MOST_TAGGED, _SAME_WIDTH, _MOST_LABELS, _MIN_TOKENS = 0.95, 0.6, 0.5, 20
# A line of text: of several words or many characters, with a full stop at its end.
_TEXT = re.compile(r"""(\S+ +){3,}\S*\w[.!?]['")]*|\S{5,}[。！？]""")


def first_lines(path: Path) -> list[str]:
    """Return the first lines of a file that are not empty."""
    lines = (line.strip(" \t") for _, line in islice(read_lines(path), N_LINES))
    return [line for line in lines if line and not line.startswith(DOCSTART)]


def is_tagged_text(lines: Iterable[str]) -> bool:
    """Return whether nearly all fields of lines are word/TAG."""
    fields = [field for line in lines for field in line.split()]
    n = sum(_TAGGED.fullmatch(field) is not None for field in fields)
    return bool(fields) and n >= _MOST_TAGGED * len(fields)


def refuse_running_text(path: Path, lines: Sequence[str]) -> None:
    """Refuse lines that are sentences, not tokens. RAISES: SparseCRFError."""
    if not lines:
        return
    words = Counter(len(line.split()) for line in lines)
    varied = max(words.values()) < _SAME_WIDTH * len(lines) and max(words) > 3
    first = [line.partition("\t") for line in lines]
    is_text = sum(
        _TEXT.fullmatch(line) is not None or (tab != "" and len(word.split()) > 2)
        for line, (word, tab, _) in zip(lines, first, strict=True)
    )
    if is_text > len(lines) / 2 or (varied and not any("\t" in line for line in lines)):
        raise SparseCRFError(Errors.SC623.format(path=path, text=lines[0][:60]))


def is_numbered(sentences: Iterable[Sequence[Sequence[str]]]) -> bool:
    """Return whether the first values number the tokens: from 0 or 1, or on from the last one."""
    last, found = -1, False
    for values in sentences:
        for i, row in enumerate(values):
            digits = row[0].removesuffix(".")
            if len(row) < 2 or not (digits.isascii() and digits.isdigit() and len(digits) < 10):
                return False
            number = int(digits)
            if number != last + 1 and (i or number not in (0, 1)):
                return False
            found = found or i > 0
            last = number
    return found


def check_labels(path: Path, column: str, labels: Sequence[str]) -> None:
    """Refuse a column with too many values to be labels. RAISES: SparseCRFError."""
    n = len({*labels})
    if len(labels) > _MIN_TOKENS and n > _MOST_LABELS * len(labels):
        values = {"path": path, "column": column, "n": n, "n_tokens": len(labels)}
        raise SparseCRFError(Errors.SC624.format(**values, example=labels[0]))
