"""Formats that are recognised, but not read."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .columns import MARKS, TAB, Line

_N_LINES = 1000
_ELEMENT = re.compile(r"<[/?!]?\w[^>]*>")
_TAGGED = re.compile(r"\S+[/_|]\S+(\s+\S+[/_|]\S+)+\s*")


def refuse_other(path: Path, lines: Sequence[Line]) -> None:
    """Refuse a file that has no columns. RAISES: SparseCRFError that names its format."""
    texts = [text for _, text in lines[:_N_LINES]]
    filled = [text for text in texts if text.strip()]
    most = len(filled) / 2
    if not filled:
        return
    if filled[0].startswith("#FORMAT=WebAnno"):
        raise _error(path, "is WebAnno TSV", "Export it as CoNLL 2002, or make columns of it")
    if sum(_ELEMENT.search(text) is not None for text in filled) > most:
        raise _error(path, "is XML", "Make character spans of its elements")
    if any(TAB in text for text in filled):
        return
    if sum(_TAGGED.fullmatch(text) is not None for text in filled) > most:
        what = "has words with their tags, such as Ann/B-PER, in sentences of a line"
        raise _error(path, what, "Write a word and its tag in each line")
    are_tokens = texts[:-1] != filled[: len(texts) - 1] or filled[0].startswith(MARKS)
    widths = Counter(len(text.split()) for text in filled)
    if path.suffix == ".in" or not (are_tokens or max(widths.values()) > most):
        remedy = "If its labels are in another file, as in seq.in and seq.out, join the two"
        raise _error(path, "has a sentence in each line, and no labels", remedy)


def _error(path: Path, what: str, remedy: str) -> SparseCRFError:
    return SparseCRFError(Errors.SC673.format(path=path, what=what, remedy=remedy))
