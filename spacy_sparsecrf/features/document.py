"""A word's other occurrences in its Doc, for templates that need no first stage.

Global features of Chieu & Ng (2002), and the aggregated context of Ratinov & Roth (2009):

    doc_lower            1: the word has capitals, and is in lower case elsewhere
    doc_title            1: it has capitals elsewhere, where they do not begin a sentence
    doc_left, doc_right  its most frequent neighbour elsewhere, in lower case
    doc_run              B, I, L, U: its most frequent position elsewhere in a run of capitalised
                         words, if it has capitals itself

Comparisons of words ignore case. A sentence begins with the Doc, behind a full stop, question or
exclamation mark, and behind an empty line: annotation of sentences does not matter, so that values
are the same with and without it. Docs of one sentence have no values.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import LOWER  # type: ignore[import-not-found]
from spacy.strings import get_string_id

from ..corpus.numbering import Hashes as Values
from ..corpus.numbering import Longs, Mask
from ..corpus.readings import Division
from .attributes import DOC_LEFT, DOC_LOWER, DOC_RIGHT, DOC_RUN, DOC_TITLE
from .plan import TemplatePlan
from .stacking import most_elsewhere, named

_FINAL = np.array([get_string_id(mark) for mark in ".!?…"], dtype=np.uint64)
# Words behind these marks may have capitals for the same reason as the first word of a sentence.
_OPENING = np.array([get_string_id(mark) for mark in ":¿¡-–—•*'\"“«"], dtype=np.uint64)
MARKS = {int(get_string_id(mark)): mark for mark in "BILU"}
"""Texts of the values of `doc_run`, by their numbers."""
_POSITIONS = np.array([0, *map(get_string_id, "ULBI")], dtype=np.uint64)


class Occurrences(NamedTuple):
    """The N words of Docs of several sentences.

    words: [N] uint64, in lower case; groups: [N] int64, number of the Doc's words that are equal;
    capital: [N] bool, whether a word has capitals; begins: [N] bool, whether they may begin a
    sentence or a quotation; first: [N] bool, whether it is the first word of a Doc.
    """

    words: Values
    groups: Longs
    capital: Mask
    begins: Mask
    first: Mask

    @property
    def left(self) -> Values:
        """The word before, 0 for the first word of a Doc."""
        return np.where(self.first, np.uint64(0), np.roll(self.words, 1))

    @property
    def right(self) -> Values:
        """The next word, 0 for the last word of a Doc."""
        return np.where(np.roll(self.first, -1), np.uint64(0), np.roll(self.words, -1))

    @property
    def positions(self) -> Values:
        """The positions of words in runs of capitalised words, 0 outside of runs."""
        inside = self.capital & ~self.begins
        before = np.roll(self.capital, 1) & inside
        behind = np.roll(inside, -1) & self.capital
        return _POSITIONS[np.where(self.capital, 1 + before + 2 * behind, 0)]

    def elsewhere(self, members: Mask) -> Mask:
        """Return whether others of each word's group are members: [N]."""
        n = np.bincount(self.groups, members)[self.groups]
        return n > members

    def most(self, values: Values) -> Values:
        """Return the most frequent value of the others in each word's group, 0 without others."""
        distinct, numbers = np.unique(values, return_inverse=True)
        return named(most_elsewhere(self.groups, numbers), distinct)


_VALUES: dict[str, Callable[[Occurrences], Any]] = {
    DOC_LOWER: lambda own: own.capital & own.elsewhere(~own.capital),
    DOC_TITLE: lambda own: own.elsewhere(own.capital & ~own.begins),
    DOC_LEFT: lambda own: own.most(own.left),
    DOC_RIGHT: lambda own: own.most(own.right),
    DOC_RUN: lambda own: np.where(own.capital, own.most(own.positions), np.uint64(0)),
}


def fill(values: Values, plan: TemplatePlan, division: Division) -> None:
    """Insert the values of attributes of other occurrences.

    values: [N, A], of annotations, in and out; division: of the Docs.
    """
    words = values[:, plan.annotations.index(LOWER)]
    docs = np.repeat(np.arange(len(division.ends)), np.diff(division.ends, prepend=0))
    first = np.diff(docs, prepend=-1) > 0
    begins = first | np.isin(np.roll(words, 1), _FINAL)
    begins[np.asarray(division.apart, np.int64)] = True
    several = np.bincount(docs[begins]) > 1
    kept = several[docs]
    if not kept.any():
        return
    begins |= np.isin(np.roll(words, 1), _OPENING)
    _, numbers = np.unique(words[kept], return_inverse=True)
    _, groups = np.unique(docs[kept] * len(words) + numbers, return_inverse=True)
    capital = values[kept, 0] != words[kept]
    found = Occurrences(words[kept], groups, capital, begins[kept], first[kept])
    for read, column in plan.document.items():
        values[kept, column] = _VALUES[read.name](found)
