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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress, product
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import LOWER  # type: ignore[import-not-found]
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ....crf.corpus.numbering import Array, Longs
from ....crf.corpus.readings import Division
from .attribute import PythonAttribute, Value, Values
from .stage import most_elsewhere

# Words that end a sentence, and words that begin a quotation.
_MARKS = tuple(np.array([*map(get_string_id, s)], np.uint64) for s in (".!?…", ":¿¡-–—•*'\"“«"))
_TEXTS = ["".join(sorted(compress("ULBI", bits))) for bits in product((0, 1), repeat=4)]
_SETS = np.array([*map(get_string_id, _TEXTS)], dtype=np.uint64)
_STEPS = {"doc_left": 1, "doc_right": -1}  # from a neighbour to the word


class Occurrences(NamedTuple):
    """N words of Docs, in order.

    words: distinct words, in lower case; numbers: [N] int64, positions in words; groups: [N] int64,
    the same for the same word in the same Doc; begins: [N] bool, whether a Doc begins;
    capitals: [N] int64, see `find_capitals`.
    """

    words: Values
    numbers: Longs
    groups: Longs
    begins: Array
    capitals: Longs

    @classmethod
    def of(cls, words: Values, docs: Longs, capitals: Longs) -> "Occurrences":
        """Group words. words: [N], in lower case; docs: [N] int64, ascending, of each word."""
        distinct, numbers = np.unique(words, return_inverse=True)
        _, groups = np.unique(docs * len(distinct) + numbers, return_inverse=True)
        begins = np.diff(docs, prepend=-1) > 0
        return cls(distinct, numbers=numbers, groups=groups, begins=begins, capitals=capitals)


@dataclass(frozen=True)
class DocAttribute(PythonAttribute):
    """An attribute whose values `fill` inserts, in place of missing values."""

    has_one_text = False

    @property
    def stored(self) -> tuple[int, ...]:
        """See `Attribute.stored`."""
        return (LOWER,)

    def elsewhere(self, occurrences: Occurrences) -> Array:
        """Return the values of words: [N]."""
        raise NotImplementedError

    def texts(self, docs: Sequence[Doc], tokens: Mapping[int, int]) -> Mapping[int, Value]:
        """See `TokenReader`."""
        return {1: 1}


@dataclass(frozen=True)
class DocLower(DocAttribute):
    """Whether a word with capitals is in lower case elsewhere."""

    NAMES = ("doc_lower",)

    def elsewhere(self, occurrences: Occurrences) -> Array:
        """See `DocAttribute`."""
        groups, capitals = occurrences.groups, occurrences.capitals
        return (capitals > 0) & (np.bincount(groups, capitals == 0)[groups] > 0)


@dataclass(frozen=True)
class DocTitle(DocAttribute):
    """Whether the word has capitals elsewhere, not where a sentence or a quotation begins."""

    NAMES = ("doc_title",)

    def elsewhere(self, occurrences: Occurrences) -> Array:
        """See `DocAttribute`."""
        inside = occurrences.capitals == 2
        several: Array = np.bincount(occurrences.groups, inside)[occurrences.groups] > inside
        return several


@dataclass(frozen=True)
class DocNeighbour(DocAttribute):
    """The most frequent neighbour elsewhere."""

    NAMES = tuple(_STEPS)

    def elsewhere(self, occurrences: Occurrences) -> Array:
        """See `DocAttribute`."""
        step = _STEPS[self.name]
        outside = np.roll(occurrences.begins, min(step, 0))
        neighbours = np.where(outside, 0, 1 + np.roll(occurrences.numbers, step))
        # Padded by 0 at index 0, a neighbour outside of the Doc, and at -1, no neighbour.
        return np.pad(occurrences.words, 1)[most_elsewhere(occurrences.groups, neighbours)]

    def texts(self, docs: Sequence[Doc], tokens: Mapping[int, int]) -> Mapping[int, Value]:
        """See `TokenReader`."""
        return {number: docs[0].vocab.strings[number] for number in tokens}


@dataclass(frozen=True)
class DocRun(DocAttribute):
    """The positions elsewhere in runs of capitalised words. A kernel finds them, see `fill`."""

    NAMES = ("doc_run",)

    def texts(self, docs: Sequence[Doc], tokens: Mapping[int, int]) -> Mapping[int, Value]:
        """See `TokenReader`."""
        return dict(zip(_SETS.tolist(), _TEXTS, strict=True))


def fill(
    values: Values, attributes: Mapping[DocAttribute, int], lower: int, division: Division
) -> None:
    """Insert the values of attributes of words' other occurrences.

    values: [N, A], of annotations, in and out; attributes: their columns; lower: column of LOWER;
    division: of the Docs.
    """
    ends = division.ends
    kernels = _kernels()
    cells = np.zeros(len(values), np.int64)
    if len(division.apart):
        cells[division.apart] = 1
    if not kernels.find_capitals(ends, values, lower, _MARKS, cells):
        return
    columns = dict(attributes)
    run = columns.pop(DocRun("doc_run"), None)
    if columns:
        spelt = cells >= 0
        docs = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))[spelt]
        occurrences = Occurrences.of(values[spelt, lower], docs, cells[spelt])
        for attribute, column in columns.items():
            values[spelt, column] = attribute.elsewhere(occurrences)
    if run is not None:
        size = 1 << (2 * len(values)).bit_length()
        table = np.zeros(size, np.uint64), np.zeros((size, 4), np.int32)
        kernels.find_runs(ends, values, (lower, run), table, cells, _SETS)


@cache
def _kernels() -> Any:
    """Import the kernels, with numba, only once: an import takes as long as reading a Doc."""
    from ....crf.kernels import hashing

    return hashing
