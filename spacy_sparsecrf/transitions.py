"""Legal transitions as the Viterbi kernel looks at them: few, where few are legal."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .constraints import Mask, check_paths, checked_legal

Longs = NDArray[np.int64]
Search = tuple[Longs, Longs, Longs, Longs, Longs]

RARE = 4  # a label with at most Y / RARE labels before it has a list of them


@dataclass(frozen=True)
class Transitions:
    """Legal transitions, and how to search them.

    Columns of a pair matrix with few legal rows (I-PER) are *rare*: their rows are listed. The
    others are *frequent*, and are searched for all at once. A row can be left out there if another
    is better by enough; that is only known of rows with the same legal frequent columns, a *group*.

    legal: [Y + 1, Yp] bool, row Y = start, padding false; ends: [Y] bool, labels that may end a
    sequence; masked: whether anything is not legal; frequent: [Yp] bool;
    group_ptr [G + 1], group_rows: int64, CSR of the rows of groups; rare [R], rare_ptr [R + 1],
    rare_rows: int64, rare columns, and CSR of their rows.
    """

    legal: Mask
    ends: Mask
    masked: bool
    frequent: Mask
    group_ptr: Longs
    group_rows: Longs
    rare: Longs
    rare_ptr: Longs
    rare_rows: Longs

    @classmethod
    def make(cls, legal: Mask | None, n_labels: int, padded: int) -> "Transitions":
        """Make them from a mask [Y + 1, Y + 1], as of `legal_transitions`, or None.

        RAISES: SparseCRFError for a mask of another shape, or one that leaves no path.
        """
        n, masked = n_labels, legal is not None
        if legal is None:
            legal = np.ones((n + 1, n + 1), dtype=bool)
        else:
            check_paths(checked_legal(legal, n))
        columns = legal[:n, :n].sum(axis=0)
        frequent = np.zeros(padded, dtype=bool)
        frequent[:n] = columns > n // RARE
        groups: dict[bytes, list[int]] = {}
        for row in range(n):
            open_columns = legal[row, :n] & frequent[:n]
            if open_columns.any():
                groups.setdefault(open_columns.tobytes(), []).append(row)
        rare = np.flatnonzero(~frequent[:n])
        rare_rows = [np.flatnonzero(legal[:n, y]) for y in rare]
        padding = np.zeros((n + 1, padded - n), dtype=bool)
        return cls(
            np.hstack((legal[:, :n], padding)),
            legal[:n, n].copy(),
            masked,
            frequent,
            *_csr(list(groups.values())),
            rare.astype(np.int64),
            *_csr(rare_rows),
        )

    @property
    def search(self) -> Search:
        """Groups and rare columns, in the kernel's order."""
        return self.group_ptr, self.group_rows, self.rare, self.rare_ptr, self.rare_rows

    @cached_property
    def everything(self) -> Search:
        """The search of matrices in which every transition may be legal, without pruning."""
        n = len(self.ends)
        none = np.zeros(0, dtype=np.int64)
        return np.array([0, n]), np.arange(n), none, np.zeros(1, dtype=np.int64), none

    def mask(self, penalty: float) -> NDArray[np.float64]:
        """What to add to pair scores: [Y + 1, Yp], -penalty where illegal, -inf in the padding."""
        added = np.where(self.legal, 0.0, -penalty)
        added[:, len(self.ends) :] = -np.inf
        return added


def _csr(rows: list[list[int]] | list[NDArray[np.intp]]) -> tuple[Longs, Longs]:
    """Lists of indices as offsets and indices."""
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    flat = np.array([i for row in rows for i in row], dtype=np.int64)
    return ends, flat
