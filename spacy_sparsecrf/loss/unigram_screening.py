"""The gradient of all potential unigram weights, of which only violators are kept."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.screening import add_residuals, collect_labels
from ..parallel import Chunks, cut
from .residual_sums import from_sums
from .working import WorkingLoss
from .workspace import Workspace

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Found = tuple[Longs, Floats]

# Potential weights whose gradients one call may write: 16 MB a thread.
_SCREEN_BLOCK = 1 << 20
_MIN_BLOCKS = 64


def screen_unigrams(working: WorkingLoss, theta: Floats, threshold: float) -> list[Found]:
    """Find the weights whose loss gradient exceeds a threshold in magnitude.

    working, theta: where it is taken, as `WorkingLoss.prepare_screening` left it. RETURNS: parts
    of coordinates [n] int64, ascending, and gradients [n] float64.
    """
    space = working.space

    def add(i: int, first: int, last: int, sums: Floats) -> None:
        columns = space.columns[i]
        line, tests = columns.between(first, last)
        tokens = columns.tokens
        add_residuals(first, tests, line, tokens.indptr, tokens.indices, space.residual, sums)

    def collect(first: int, last: int, sums: Floats) -> Found:
        n = (last - first) * space.n_labels
        coordinates, gradients = np.empty(n, np.int64), np.empty(n)
        found = collect_labels(first, space.n_labels, sums, threshold, coordinates, gradients)
        return coordinates[:found].copy(), gradients[:found].copy()

    shape = (space.padded,)
    return from_sums(working, theta, _chunks(space), shape, len(space.columns), add, collect)


def _chunks(space: Workspace) -> Chunks:
    """Cut the tests into runs of about equal work whose potential weights fit a buffer."""
    sizes = space.test_counts
    # The mean in each test's cost keeps runs of rare tests from growing beyond twice a block.
    cost = sizes + int(sizes.sum()) // max(1, len(sizes))
    return cut(cost, max(_MIN_BLOCKS, -(-len(sizes) * space.n_labels // _SCREEN_BLOCK)))
