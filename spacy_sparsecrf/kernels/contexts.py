"""Contexts of a batch: its distinct sets of bigram tests that have weights."""

import numpy as np
from numba import njit

from .hashing import mix


@njit(cache=True, nogil=True, error_model="numpy")
def number_contexts(
    tests: np.ndarray, slots: np.ndarray, context: np.ndarray, representatives: np.ndarray
) -> int:
    """Number the distinct rows of a matrix in the order in which they occur.

    tests: [N, B] uint64, entries of a token's bigram tests, see `rows`; slots: [C] int32, all -1,
    C a power of two > N, workspace; context: [N] int32, out, the number of a token's row;
    representatives: [N] int64, out, a token with each number.
    RETURNS: how many distinct rows there are.
    """
    mask = np.uint64(len(slots) - 1)
    n_contexts = 0
    for n in range(len(tests)):
        h = np.uint64(0)
        for j in range(tests.shape[1]):
            h = mix(h ^ tests[n, j])
        slot = h & mask
        while slots[slot] >= 0:
            other = representatives[slots[slot]]
            same = True
            for j in range(tests.shape[1]):
                same = same and tests[other, j] == tests[n, j]
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = n_contexts
            representatives[n_contexts] = n
            n_contexts += 1
        context[n] = slots[slot]
    return n_contexts
