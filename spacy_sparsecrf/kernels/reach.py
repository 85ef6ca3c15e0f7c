"""Whether sequences have a path."""

import numpy as np

from .compiled import kernel


@kernel
def find_possible(
    offsets: np.ndarray,
    permitted: np.ndarray,
    legal: np.ndarray,
    ends: np.ndarray,
    possible: np.ndarray,
) -> None:
    """Tell which sequences have a path of permitted labels and legal transitions.

    offsets [S + 1]; permitted [N, Y] bool; legal [Y + 1, >= Y] bool, row Y = may begin; ends [Y]
    bool, may end; possible: [S] bool, out; a sequence without tokens is possible.
    """
    n_labels = len(ends)
    reached = np.empty(n_labels, dtype=np.bool_)
    before = np.empty(n_labels, dtype=np.bool_)
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            if t == offsets[s]:
                for y in range(n_labels):
                    reached[y] = permitted[t, y] and legal[n_labels, y]
                continue
            for y in range(n_labels):
                before[y] = reached[y]
                reached[y] = False
            for i in range(n_labels):
                if before[i]:
                    for y in range(n_labels):
                        reached[y] |= legal[i, y] and permitted[t, y]
        found = offsets[s] == offsets[s + 1]
        if not found:
            for y in range(n_labels):
                found |= reached[y] and ends[y]
        possible[s] = found
