"""Valid transitions between labels, from a target's scheme and the user's lists.

`Transitions` indexes them for the Viterbi kernel, which skips most invalid transitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...errors import Errors, SparseCRFError
from ..corpus.gold import check_paths
from ..corpus.numbering import Floats, Longs, Mask
from ..kernels.layout import Search, search_all

BOUNDARY = ""  # in the user's lists: before the first and after the last token of a sequence

# Far above rounding errors of scores below 1e9, far below differences between weights.
MARGIN = 1e-6
RARE = 4  # a label with at most Y / RARE valid previous labels has a list of them


def combined_transitions(
    labels: Sequence[str],
    forbidden: Sequence[Sequence[str]] = (),
    allowed: Sequence[Sequence[str]] = (),
    scheme: Mask | None = None,
) -> Mask | None:
    """Combine the valid transitions of a scheme with lists of forbidden and allowed pairs.

    labels: [Y].
    forbidden: pairs (label, next label) that are not valid, "" = boundary of a sequence.
    allowed: the only valid pairs; empty: all pairs that are not forbidden.
    scheme: [Y + 1, Y + 1] bool as below, or None: all transitions are valid.
    RETURNS: [Y + 1, Y + 1] bool, entry [a, b]: whether label b may follow label a; row Y: may begin
        a sequence; column Y: may end one. None: all transitions are valid.
    RAISES: SparseCRFError for pairs of unknown labels, a scheme of the wrong shape, and if no
        sequence of some length would be valid.
    """
    n = len(labels)
    valid = np.ones((n + 1, n + 1), dtype=bool)
    if scheme is not None:
        valid &= checked_valid(scheme, n)
    if allowed:
        listed = np.zeros_like(valid)
        for pair in _pairs("allowed", allowed, labels):
            listed[pair] = True
        valid &= listed
    for pair in _pairs("forbidden", forbidden, labels):
        valid[pair] = False
    valid[n, n] = True  # a sequence without tokens
    if valid.all():
        return None
    check_paths(valid)
    return valid


def _pairs(
    key: str, pairs: Sequence[Sequence[str]], labels: Sequence[str]
) -> list[tuple[int, int]]:
    """Return pairs of labels as pairs of positions."""
    ids = {label: i for i, label in enumerate(labels)} | {BOUNDARY: len(labels)}
    positions = []
    for pair in pairs:
        for label in pair:
            if label not in ids:
                message = Errors.SC403.format(key=key, label=label, known=", ".join(labels))
                raise SparseCRFError(message)
        positions.append((ids[pair[0]], ids[pair[1]]))
    return positions


def checked_mask(mask: Mask, shape: tuple[int, int], what: str, method: str) -> Mask:
    """Check the shape and type of a mask.

    what, method: its contents, and the target's method that returns it, for the message.
    RAISES: SparseCRFError.
    """
    actual = getattr(mask, "shape", None)
    dtype = getattr(mask, "dtype", type(mask).__name__)
    if actual != shape or mask.dtype != bool:
        message = Errors.SC405.format(
            what=what, expected=[*shape], shape=actual, dtype=dtype, method=method
        )
        raise SparseCRFError(message)
    return mask


def checked_valid(valid: Mask, n_labels: int) -> Mask:
    """Check the shape and type of valid transitions. RAISES: SparseCRFError."""
    shape = n_labels + 1, n_labels + 1
    return checked_mask(valid, shape, what="valid transitions", method="valid_transitions")


@dataclass(frozen=True)
class Transitions:
    """Valid transitions, and an index to search them.

    Columns of a pair matrix with few valid rows (I-PER) are *rare*: their rows are listed. Other
    columns are *frequent* and are searched together. Rows with the same valid frequent columns form
    a *group*. The search skips a row if another row of its group is better by enough.

    valid: [Y + 1, Yp] bool, row Y = start, padding false; ends: [Y] bool, labels that may end a
    sequence; masked: whether any transition is invalid; frequent: [Yp] bool; search: groups, and
    rare columns.
    """

    valid: Mask
    ends: Mask
    masked: bool
    frequent: Mask
    search: Search

    @classmethod
    def make(
        cls, valid: Mask | None, n_labels: int, padded: int, favourite: int = 0
    ) -> "Transitions":
        """Create them from a mask [Y + 1, Y + 1], see `combined_transitions`, or None: all valid.

        favourite: label that wins ties.
        RAISES: SparseCRFError for a mask of the wrong shape, or without a valid path.
        """
        n = n_labels
        masked = valid is not None
        if valid is None:
            valid = np.ones((n + 1, n + 1), dtype=bool)
        else:
            check_paths(checked_valid(valid, n))
        columns = valid[:n, :n].sum(axis=0)
        frequent = np.zeros(padded, dtype=bool)
        frequent[:n] = columns > n // RARE
        groups: dict[bytes, list[int]] = {}
        for row in range(n):
            next_labels = valid[row, :n] & frequent[:n]
            if next_labels.any():
                groups.setdefault(next_labels.tobytes(), []).append(row)
        rare = np.flatnonzero(~frequent[:n])
        rare_rows = [np.flatnonzero(valid[:n, y]) for y in rare]
        group_ptr, group_rows = _csr([*groups.values()])
        rare_ptr, rare_row_ids = _csr(rare_rows)
        padding = np.zeros((n + 1, padded - n), dtype=bool)
        return cls(
            valid=np.hstack((valid[:, :n], padding)),
            ends=valid[:n, n].copy(),
            masked=masked,
            frequent=frequent,
            search=Search(
                group_ptr=group_ptr,
                group_rows=group_rows,
                rare=rare.astype(np.int64),
                rare_ptr=rare_ptr,
                rare_rows=rare_row_ids,
                favourite=favourite,
            ),
        )

    @property
    def are_free(self) -> bool:
        """Whether all transitions are valid and the first label wins ties."""
        return not (self.masked or self.search.favourite)

    @cached_property
    def everything(self) -> Search:
        """The search of matrices in which all transitions are possible, without pruning."""
        return search_all(len(self.ends), self.search.favourite)

    @cached_property
    def closing(self) -> Floats:
        """Cost to end a sequence with a label: [Yp], 0 or inf."""
        costs = np.zeros(self.valid.shape[1])
        costs[: len(self.ends)][~self.ends] = np.inf
        return costs

    def finish(self, pairs: Floats, prune: bool) -> Floats:
        """Mask pair scores for Viterbi, in place.

        pairs: [C, Y + 1, Yp]; invalid transitions and the padding are overwritten by -inf. RETURNS:
        slack [C, Yp], by how much the score of a previous label y' may lag behind the best score in
        its group while y' can still be on the best path to a frequent label: max_y (pairs[c, y', y]
        - min_i pairs[c, i, y]), i in the group; inf without pruning. Pruning is slower than no
        pruning if a context has few tokens.
        """
        np.copyto(pairs, -np.inf, where=~self.valid)
        slack = np.full((len(pairs), pairs.shape[2]), np.inf)
        for begin, end in pairwise(self.search.group_ptr if prune else ()):
            rows = self.search.group_rows[begin:end]
            in_group = pairs[:, rows][:, :, self.frequent]
            low = in_group.min(axis=1, keepdims=True)
            # A frequent column that is invalid in one row of a group is invalid in all rows.
            in_group -= np.where(low > -np.inf, low, 0.0)
            slack[:, rows] = in_group.max(axis=2, initial=0.0) + MARGIN
        return slack

    def penalties(self, penalty: float) -> Floats:
        """Return a term of pair scores: [Y + 1, Yp], -penalty if invalid, -inf in the padding."""
        penalties = np.where(self.valid, 0.0, -penalty)
        penalties[:, len(self.ends) :] = -np.inf
        return penalties


def _csr(rows: list[list[int]] | list[NDArray[np.intp]]) -> tuple[Longs, Longs]:
    """Convert lists of indices to CSR: offsets and indices."""
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    flat = np.array([i for row in rows for i in row], dtype=np.int64)
    return ends, flat
