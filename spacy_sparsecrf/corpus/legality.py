"""Whether gold labels are legal: whether each label may follow the one before.

Which may is told by a matrix `legal` [Y + 1, Y + 1] bool: entry [a, b], whether label b may follow
label a; row Y: whether b may begin a sequence; column Y: whether a may end one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from .encoded import MISSING, EncodedCorpus

Mask = NDArray[np.bool_]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Illegal:
    """Where gold labels are not legal.

    sequence: its number; token: the number in the corpus of the token that no legal label is left
    for, or of the last one of a sequence that cannot end there; before, after: labels, those that
    could be before and those of the token; empty at the beginning and at the end of a sequence.
    """

    sequence: int
    token: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class IllegalGoldError(SparseCRFError):
    """Gold labels that are not legal; found: where."""

    def __init__(self, message: str, found: Illegal) -> None:
        super().__init__(message)
        self.found = found


def find_illegal(corpus: EncodedCorpus, legal: Mask) -> Illegal | None:
    """Find the first sequence of a positive weight with which no legal labels agree.

    legal: [Y + 1, Y + 1], see above. RETURNS: None where there is none.
    """
    n_labels = len(legal) - 1
    lengths = np.diff(corpus.offsets)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    known, sure = corpus.with_labels()
    bad = _illegal_pairs(corpus, legal, n_labels)
    suspects = np.bincount(sequence, bad, minlength=len(lengths)) > 0
    # Where all labels are known, pairs tell; else labels must be found for the other tokens.
    for s in np.flatnonzero(known & (suspects | ~sure)):
        found = _walk(corpus, legal, int(s))
        if found is not None:
            return found
    return None


def check_gold(corpus: EncodedCorpus, labels: Sequence[str], legal: Mask) -> None:
    """Check that every sequence has legal gold labels.

    labels: [Y], their names; legal: [Y + 1, Y + 1], see above. RAISES: IllegalGoldError.
    """
    found = find_illegal(corpus, legal)
    if found is not None:
        where = f"sequence {found.sequence + 1} of the training corpus"
        number = found.token - int(corpus.offsets[found.sequence])
        raise IllegalGoldError(describe(found, number, labels, where), found)


def describe(found: Illegal, number: int, labels: Sequence[str], where: str) -> str:
    """The message about gold labels that are not legal.

    number: of the token, from 0, in the sequence or Doc that `where` names; labels: [Y] names.
    """
    before, after = (
        " or ".join(repr(labels[y]) for y in ids) for ids in (found.before, found.after)
    )
    problem = f"{after} may not follow {before}"
    if not found.before:
        problem = f"{after} may not begin a sequence"
    elif not found.after:
        problem = f"{before} may not end a sequence"
    return Errors.SC358.format(problem=problem, number=number, place=where)


def _illegal_pairs(corpus: EncodedCorpus, legal: Mask, n_labels: int) -> Mask:
    """Tokens [N] with single labels that may not follow those before, or not end a sequence."""
    filled = np.flatnonzero(np.diff(corpus.offsets) > 0)
    begins, ends = corpus.offsets[filled], corpus.offsets[filled + 1] - 1
    after = corpus.labels
    before = np.roll(after, 1)
    before[begins] = n_labels
    known = (before >= 0) & (after >= 0)
    bad = np.zeros(len(after), np.bool_)
    bad[known] = ~legal[before[known], after[known]]
    last = ends[after[ends] >= 0]
    bad[last] |= ~legal[after[last], n_labels]
    return bad


def _walk(corpus: EncodedCorpus, legal: Mask, s: int) -> Illegal | None:
    """Follow the legal labels of a sequence to where there are none left."""
    begin, end = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
    reached = np.zeros(len(legal), np.bool_)
    reached[-1] = True
    for t in range(begin, end):
        gold = _gold_set(corpus, t, len(legal) - 1)
        next_ones: Mask = np.any(legal[reached], axis=0)
        next_ones[-1] = False
        next_ones[:-1] &= gold
        if not next_ones.any():
            before = reached if t > begin else np.zeros(0, np.bool_)
            return Illegal(s, t, _ids(before), _ids(gold))
        reached = next_ones
    if legal[reached, -1].any():
        return None
    return Illegal(s, end - 1, _ids(reached), ())


def _gold_set(corpus: EncodedCorpus, t: int, n_labels: int) -> Mask:
    """The labels [Y] that a token's gold label may be."""
    label = int(corpus.labels[t])
    if label == MISSING:
        return np.ones(n_labels, np.bool_)
    if label < 0:
        found: Mask = corpus.sets[-2 - label]
        return found
    alone: Mask = np.arange(n_labels) == label
    return alone


def _ids(labels: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(labels).tolist())
