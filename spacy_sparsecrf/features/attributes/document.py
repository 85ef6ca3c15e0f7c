"""A word's other occurrences in its Doc, for templates that need no first stage.

Global features as in Chieu & Ng (2002), and the aggregated context of Ratinov & Roth (2009):

    doc_run              the positions that a word has elsewhere in runs of capitalised words, if it
                         has capitals itself: B, I and L for the first, inner and last word of a
                         run, and U for a run of one word
    doc_lower            1: the word has capitals, and is in lower case elsewhere
    doc_title            1: it has capitals elsewhere, not where a sentence or a quotation begins
    doc_left, doc_right  its most frequent neighbour elsewhere, in lower case; of several the one
                         with the lowest id. The beginning and end of the Doc count as id 0, which
                         is a missing value

Comparisons of words ignore case. A run ends with the sentence, and before a quotation: there the
next word may have capitals for another reason. A sentence begins with the Doc, behind a full stop,
question or exclamation mark, and behind an empty line. Annotated sentences are ignored, so that
values are the same with and without annotation. Docs of one sentence have no values.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import compress, product
from typing import Any

import numpy as np
from spacy.attrs import LOWER  # type: ignore[import-not-found]
from spacy.strings import get_string_id

from ...corpus.numbering import Array, Longs
from ...corpus.numbering import Hashes as Values
from ...corpus.readings import Division
from ..plan import TemplatePlan
from ..stacking import most_elsewhere
from .words import DOC_LEFT, DOC_LOWER, DOC_RIGHT, DOC_RUN, DOC_TITLE, Value

# Words that end a sentence, and words that begin a quotation.
_MARKS = tuple(np.array([*map(get_string_id, own)], np.uint64) for own in (".!?…", ":¿¡-–—•*'\"“«"))
_TEXTS = ["".join(sorted(compress("ULBI", own))) for own in product((0, 1), repeat=4)]
_SETS = np.array([*map(get_string_id, _TEXTS)], dtype=np.uint64)
TEXTS: dict[int, Value] = {1: 1, **dict(zip(_SETS.tolist(), _TEXTS, strict=True))}
"""Values of `doc_run`, `doc_lower` and `doc_title`, by their numbers."""
STEPS = {DOC_LEFT: 1, DOC_RIGHT: -1}
"""Steps from a neighbour to the word."""


def fill(values: Values, plan: TemplatePlan, division: Division) -> None:
    """Insert the values of attributes of words' other occurrences.

    values: [N, A], of annotations, in and out; division: of the Docs.
    """
    ends, columns, kernels = division.ends, plan.document, _kernels()
    lower = plan.annotations.index(LOWER)
    cells = np.zeros(len(values), np.int64)
    if len(division.apart):
        cells[division.apart] = 1
    if not kernels.find_capitals(ends, values, lower, _MARKS, cells):
        return
    if {*columns} - {DOC_RUN}:
        own = cells >= 0
        docs = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))[own]
        for name, found in _read(columns, values[own, lower], docs, cells[own]):
            values[own, columns[name]] = found
    if DOC_RUN in columns:
        size = 1 << (2 * len(values)).bit_length()
        table = np.zeros(size, np.uint64), np.zeros((size, 4), np.int32)
        kernels.find_runs(ends, values, (lower, columns[DOC_RUN]), table, cells, _SETS)


@cache
def _kernels() -> Any:
    """Import the kernels, with numba, only once: an import takes as long as reading a Doc."""
    from ...kernels import hashing

    return hashing


def _read(
    names: Iterable[str], words: Values, docs: Longs, capitals: Longs
) -> Iterator[tuple[str, Array]]:
    """Yield the name and the values of each attribute other than `doc_run`.

    names: of attributes, may include `doc_run`; words: [N] uint64, in lower case;
    docs: [N] int64, ascending, index of each word's Doc; capitals: [N] int64, see `find_capitals`.
    """
    distinct, numbers = np.unique(words, return_inverse=True)
    _, groups = np.unique(docs * len(distinct) + numbers, return_inverse=True)
    first = np.diff(docs, prepend=-1) > 0
    for name in names:
        if name in STEPS:
            outside = np.roll(first, min(STEPS[name], 0))
            neighbours = np.where(outside, 0, 1 + np.roll(numbers, STEPS[name]))
            # Padded by 0 at index 0, a neighbour outside of the Doc, and at -1, no neighbour.
            yield name, np.pad(distinct, 1)[most_elsewhere(groups, neighbours)]
        elif name == DOC_LOWER:
            yield name, (capitals > 0) & (np.bincount(groups, capitals == 0)[groups] > 0)
        elif name == DOC_TITLE:
            inside = capitals == 2
            yield name, np.bincount(groups, inside)[groups] > inside
