"""Validation of gold labels, and of the transitions that are valid for them.

A sequence is valid if all its transitions are valid. The matrix `valid` [Y + 1, Y + 1] bool defines
valid transitions: element [a, b], whether label b may follow label a; row Y: whether b may begin a
sequence; column Y: whether a may end one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...errors import Errors, SparseCRFError
from .encoded import EncodedCorpus
from .numbering import Mask

LONGEST = 10_000  # number of tokens up to which `check_paths` tries lengths


class InvalidTransition(NamedTuple):
    """Position of an invalid transition between gold labels.

    sequence: its index; token: index in the corpus of the token without a valid label, or of the
    last token of a sequence that cannot end there; previous: possible previous labels, empty at the
    beginning of a sequence; labels: possible labels of the token, empty at the end of a sequence.
    """

    sequence: int
    token: int
    previous: tuple[int, ...]
    labels: tuple[int, ...]


class InvalidGoldError(SparseCRFError):
    """Error for invalid gold labels.

    transition: their position; number: of the token, from 0, in the sequence or Doc that `where`
    names, by default the sequence of the training corpus; labels: [Y] names.
    """

    def __init__(
        self, transition: InvalidTransition, number: int, labels: Sequence[str], where: str = ""
    ) -> None:
        self.transition = transition
        previous = " or ".join(repr(labels[y]) for y in transition.previous)
        label = " or ".join(repr(labels[y]) for y in transition.labels)
        problem = f"{label} may not follow {previous}"
        if not transition.previous:
            problem = f"{label} may not begin a sequence"
        elif not transition.labels:
            problem = f"{previous} may not end a sequence"
        where = where or f"sequence {transition.sequence + 1} of the training corpus"
        super().__init__(Errors.SC358.format(problem=problem, number=number, place=where))


def find_invalid(corpus: EncodedCorpus, valid: Mask) -> InvalidTransition | None:
    """Find the first sequence with positive weight whose gold labels allow no valid sequence.

    valid: [Y + 1, Y + 1], see above. RETURNS: None if there is none.
    """
    from ..kernels.viterbi import find_possible

    n = len(valid) - 1
    # Labels are indices here: -1 for missing labels, -2 for the first set.
    sets = corpus.sets.reshape(-1, n)[::-1]
    gold = np.concatenate((np.eye(n, dtype=np.bool_), sets, np.ones((1, n), np.bool_)))
    permitted, possible = gold[corpus.labels], np.empty(corpus.n_sequences, np.bool_)
    find_possible(
        corpus.offsets,
        permitted=permitted,
        valid=valid,
        ends=valid[:-1, -1].copy(),
        possible=possible,
    )
    is_labelled, _ = corpus.with_labels()
    wrong = np.flatnonzero(is_labelled & ~possible)
    return _follow(corpus, valid, permitted, int(wrong[0])) if len(wrong) else None


def check_gold(corpus: EncodedCorpus, labels: Sequence[str], valid: Mask) -> None:
    """Check that the gold labels of every sequence are valid.

    labels: [Y], their names; valid: [Y + 1, Y + 1], see above. RAISES: InvalidGoldError.
    """
    invalid = find_invalid(corpus, valid)
    if invalid is not None:
        number = invalid.token - int(corpus.offsets[invalid.sequence])
        raise InvalidGoldError(invalid, number, labels)


def _follow(corpus: EncodedCorpus, valid: Mask, permitted: Mask, s: int) -> InvalidTransition:
    """Find the position at which an invalid sequence has no valid label left.

    permitted: [N, Y], the possible gold labels of each token.
    """
    begin, end = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
    reached = np.zeros(len(valid), np.bool_)
    reached[-1] = True
    for t in range(begin, end):
        next_ones: Mask = np.any(valid[reached], axis=0)
        next_ones[-1] = False
        next_ones[:-1] &= permitted[t]
        if not next_ones.any():
            previous = reached if t > begin else np.zeros(0, np.bool_)
            return InvalidTransition(s, t, _ids(previous), _ids(permitted[t]))
        reached = next_ones
    return InvalidTransition(s, end - 1, _ids(reached), ())


def _ids(labels: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(labels).tolist())


def check_paths(valid: Mask) -> None:
    """Check that there is a valid sequence of each length.

    valid: [Y + 1, Y + 1] bool. Lengths are tried until the set of reachable labels repeats, or up
    to LONGEST. RAISES: SparseCRFError if there is none.
    """
    n = len(valid) - 1
    reached = valid[n, :n]
    ends = valid[:n, n]
    if not reached.any():
        raise SparseCRFError(Errors.SC404.format(problem="no label can begin a sequence"))
    if not ends.any():
        raise SparseCRFError(Errors.SC404.format(problem="no label can end a sequence"))
    seen = set()
    for length in range(1, LONGEST + 1):
        if not (reached & ends).any():
            problem = f"no sequence of {length} tokens is possible"
            raise SparseCRFError(Errors.SC404.format(problem=problem))
        key = reached.tobytes()
        if key in seen:
            return
        seen.add(key)
        reached = valid[:n, :n][reached].sum(axis=0) > 0
