"""What the columns of a file are, guessed by their values."""

import re
from collections.abc import Iterable, Sequence

from .attributes import ENTITIES, IGNORED, WORDS
from .schemes import MISSING, OUTSIDE

DOCSTART = "-DOCSTART-"
"""The word of a line that is no token, but begins a document."""

_SPAN_LABEL = re.compile(r"[BIELSU]-(.+)")
# Types of the chunks of CoNLL-2000, which are kept in spans "sc"; others are entities.
_CHUNKS = frozenset(
    ["NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"]
)


def guess_columns(rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Guess what columns are: the first is the words, and one more the label.

    That is the last one whose values tell spans, as B-LOC does: entities, or chunks if all types
    are; without such a one the last column, which is tags. Others are ignored.
    rows: values of the columns, one a token; at least one.
    """
    rows = list(rows)
    columns = list(zip(*[row for row in rows if row[0] != DOCSTART] or rows, strict=True))
    names = [WORDS, *[IGNORED] * (len(columns) - 1)]
    for i in range(len(columns) - 1, 0, -1):
        types = _types(columns[i])
        if types:
            names[i] = "spans:sc" if types <= _CHUNKS else ENTITIES
            return tuple(names)
    if len(names) > 1:
        names[-1] = "tag"
    return tuple(names)


def _types(values: Iterable[str]) -> set[str]:
    """The types of spans that values tell; none if one of them is no label of spans."""
    told = set(values) - {OUTSIDE, *MISSING}
    matches = [_SPAN_LABEL.fullmatch(value) for value in told]
    return {match[1] for match in matches if match} if all(matches) else set()
