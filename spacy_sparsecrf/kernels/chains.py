"""Chains: growing lists of numbers, one for each test, in arrays that only grow at their ends."""

import numpy as np

from .compiled import kernel


@kernel
def link(rows: np.ndarray, first: int, heads: np.ndarray, following: np.ndarray) -> None:
    """Put the numbers first, first + 1, ... at the front of the chains of rows [n], in order.

    heads: [R] int64, in and out, first number of a row's chain, -1 = none; following: int64, in
    and out, the number after each in its chain, -1 = none.
    """
    for i in range(len(rows)):
        following[first + i] = heads[rows[i]]
        heads[rows[i]] = first + i


@kernel
def walk(rows: np.ndarray, heads: np.ndarray, following: np.ndarray, found: np.ndarray) -> None:
    """Write the numbers in the chains of rows [n], a chain after the other, to found."""
    n = 0
    for row in rows:
        number = heads[row]
        while number >= 0:
            found[n] = number
            n += 1
            number = following[number]
