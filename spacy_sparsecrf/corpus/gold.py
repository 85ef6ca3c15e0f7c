"""Validation of gold labels.

A sequence is valid if all its transitions are valid. The matrix `valid` [Y + 1, Y + 1] bool defines
valid transitions: element [a, b], whether label b may follow label a; row Y: whether b may begin a
sequence; column Y: whether a may end one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import Errors, SparseCRFError
from .encoded import MISSING, EncodedCorpus
from .numbering import Mask


class InvalidTransition(NamedTuple):
    """Position of an invalid transition between gold labels.

    sequence: its index; token: index in the corpus of the token without a valid label, or of the
    last token of a sequence that cannot end there; before: possible previous labels, empty at the
    beginning of a sequence; after: possible labels of the token, empty at the end of a sequence.
    """

    sequence: int
    token: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class InvalidGoldError(SparseCRFError):
    """Error for invalid gold labels.

    found: their position; number: of the token, from 0, in the sequence or Doc that `where` names,
    by default the sequence of the training corpus; labels: [Y] names.
    """

    def __init__(
        self, found: InvalidTransition, number: int, labels: Sequence[str], where: str = ""
    ) -> None:
        self.found = found
        before, after = (
            " or ".join(repr(labels[y]) for y in ids) for ids in (found.before, found.after)
        )
        problem = f"{after} may not follow {before}"
        if not found.before:
            problem = f"{after} may not begin a sequence"
        elif not found.after:
            problem = f"{before} may not end a sequence"
        place = where or f"sequence {found.sequence + 1} of the training corpus"
        super().__init__(Errors.SC358.format(problem=problem, number=number, place=place))


def find_invalid(corpus: EncodedCorpus, valid: Mask) -> InvalidTransition | None:
    """Find the first sequence with positive weight whose gold labels allow no valid sequence.

    valid: [Y + 1, Y + 1], see above. RETURNS: None if there is none.
    """
    lengths = np.diff(corpus.offsets)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    known, sure = corpus.with_labels()
    bad = _invalid_pairs(corpus, valid)
    suspects = np.bincount(sequence, bad, minlength=len(lengths)) > 0
    # Pairs are sufficient if all labels are known; otherwise search for a valid sequence.
    for s in np.flatnonzero(known & (suspects | ~sure)):
        found = _follow(corpus, valid, int(s))
        if found is not None:
            return found
    return None


def check_gold(corpus: EncodedCorpus, labels: Sequence[str], valid: Mask) -> None:
    """Check that the gold labels of every sequence are valid.

    labels: [Y], their names; valid: [Y + 1, Y + 1], see above. RAISES: InvalidGoldError.
    """
    found = find_invalid(corpus, valid)
    if found is not None:
        raise InvalidGoldError(found, found.token - int(corpus.offsets[found.sequence]), labels)


def _invalid_pairs(corpus: EncodedCorpus, valid: Mask) -> Mask:
    """Return the mask [N] of tokens with an invalid transition to their label, or to the end."""
    n_labels = len(valid) - 1
    filled = np.flatnonzero(np.diff(corpus.offsets) > 0)
    begins, ends = corpus.offsets[filled], corpus.offsets[filled + 1] - 1
    after = corpus.labels
    before = np.roll(after, 1)
    before[begins] = n_labels
    known = (before >= 0) & (after >= 0)
    bad = np.zeros(len(after), np.bool_)
    bad[known] = ~valid[before[known], after[known]]
    last = ends[after[ends] >= 0]
    bad[last] |= ~valid[after[last], n_labels]
    return bad


def _follow(corpus: EncodedCorpus, valid: Mask, s: int) -> InvalidTransition | None:
    """Find the position at which a sequence has no valid label left; None if it is valid."""
    begin, end = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
    reached = np.zeros(len(valid), np.bool_)
    reached[-1] = True
    for t in range(begin, end):
        gold = _gold_set(corpus, t, len(valid) - 1)
        next_ones: Mask = np.any(valid[reached], axis=0)
        next_ones[-1] = False
        next_ones[:-1] &= gold
        if not next_ones.any():
            before = reached if t > begin else np.zeros(0, np.bool_)
            return InvalidTransition(s, t, _ids(before), _ids(gold))
        reached = next_ones
    if valid[reached, -1].any():
        return None
    return InvalidTransition(s, end - 1, _ids(reached), ())


def _gold_set(corpus: EncodedCorpus, t: int, n_labels: int) -> Mask:
    """Return the possible gold labels [Y] of a token."""
    label = int(corpus.labels[t])
    if label == MISSING:
        return np.ones(n_labels, np.bool_)
    found: Mask = corpus.sets[-2 - label] if label < 0 else np.arange(n_labels) == label
    return found


def _ids(labels: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(labels).tolist())
