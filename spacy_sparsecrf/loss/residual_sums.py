"""Sums of residuals over the tokens of all tests, of which screening keeps little."""

from collections.abc import Callable
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..parallel import Chunks
from .working import WorkingLoss

Floats = NDArray[np.float64]
FoundT = TypeVar("FoundT")

# Sums that are held at once where the corpus is in files: 512 MB.
HELD_SUMS = 1 << 26


def from_sums(
    working: WorkingLoss,
    theta: Floats,
    chunks: Chunks,
    shape: tuple[int, ...],
    n_parts: int,
    add: Callable[[int, int, int, Floats], None],
    collect: Callable[[int, int, Floats], FoundT],
) -> list[FoundT]:
    """Sum over the parts of the corpus for all tests of chunks, and collect from the sums.

    working, theta: whose residuals are in the workspace, or are put there a block at a time where
    the corpus is in files; chunks: of tests, few enough that a chunk's sums fit in memory; n_parts:
    of the corpus, where it is in memory; otherwise its blocks are the parts; add(i, first, last,
    sums): adds part i to the sums [last - first, *shape] of tests; collect(first, last, sums):
    tells what is found. RETURNS: what is found in each chunk.
    """
    space = working.space

    def in_memory(first: int, last: int) -> FoundT:
        sums = np.zeros((last - first, *shape))
        for i in range(n_parts):
            add(i, first, last, sums)
        return collect(first, last, sums)

    if not space.by_block:
        return space.workers.map(in_memory, chunks)
    found: list[FoundT] = []
    for run in runs(chunks, prod(shape)):
        found += _from_blocks(working, theta, run, shape, add, collect)
    return found


def _from_blocks(
    working: WorkingLoss,
    theta: Floats,
    chunks: Chunks,
    shape: tuple[int, ...],
    add: Callable[[int, int, int, Floats], None],
    collect: Callable[[int, int, Floats], FoundT],
) -> list[FoundT]:
    """Sum for consecutive chunks at once, so that each block is evaluated once; see `from_sums`."""
    origin, workers = chunks[0][0], working.space.workers
    sums = np.zeros((chunks[-1][1] - origin, *shape))

    def own(first: int, last: int) -> Floats:
        return sums[first - origin : last - origin]

    def adder(i: int) -> Callable[[int, int], None]:
        return lambda first, last: add(i, first, last, own(first, last))

    for i in working.visit(theta):
        workers.map(adder(i), chunks)
    return workers.map(lambda first, last: collect(first, last, own(first, last)), chunks)


def runs(chunks: Chunks, width: int) -> list[Chunks]:
    """Group consecutive chunks of tests whose sums, `width` each, can be held at once."""
    found: list[Chunks] = []
    for chunk in chunks:
        if found and (chunk[1] - found[-1][0][0]) * width <= HELD_SUMS:
            found[-1].append(chunk)
        else:
            found.append([chunk])
    return found
