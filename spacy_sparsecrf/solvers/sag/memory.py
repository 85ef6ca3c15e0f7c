"""The memory of SAG: the last gradient of each sequence, and passes that use it."""

import numpy as np

from ...loss.examples import new_workspace
from ...loss.gradient_memory import FactorStorage
from ...loss.working import WorkingLoss
from ..base import Floats
from .kernels import Average, GradientExchange, Progress, sag_pass
from .sag_updates import Rules, Steps, set_leaves


class StoredGradients(FactorStorage):
    """The last gradient of each sequence, and passes of SAG that use and replace it.

    Its workspaces, three numbers for each weight, are not saved (see `GradientExchange`).
    """

    def __init__(self, working: WorkingLoss) -> None:
        super().__init__(working)
        space, n = working.space, len(working.coordinates)
        pairs = np.zeros((self._most_groups, space.n_labels, space.padded))
        vectors = np.zeros(n), np.zeros(n), np.zeros(n)
        self._exchange = GradientExchange(*vectors, pairs, new_workspace(working))

    def run(self, draws: Floats, rules: Rules, average: Average) -> int:
        """Do a pass over drawn sequences.

        draws: [steps, 2] float64, uniform in [0, 1); average: in and out.
        RETURNS: the number of evaluations in line searches.
        """
        n_leaves = 1 << max(1, self.n_sequences - 1).bit_length()
        sums, tops = np.zeros(2 * n_leaves), np.zeros(2 * n_leaves)
        set_leaves(sums, tops, average.curvatures)
        reached = np.zeros(len(self._grouped.sequence_blocks.weight_ptr) - 1, np.int64)
        steps = Steps(reached, np.zeros(len(draws) + 1), np.zeros(len(draws) + 1))
        progress = Progress(sums, tops, np.zeros(self.n_sequences, np.int64), steps)
        return int(sag_pass(draws, rules, self._grouped, average, progress, self._exchange))
