"""Iterative parameter mixing (McDonald, Hall & Mann 2010, figure 3), for a partitioned corpus.

Each pass visits every one of n shards from the same weights, and averages the resulting weights:

    w(e + 1) = 1/n sum_i pass_i(w(e))

A mixed pass moves about an n-th as far as a pass over the whole corpus. Mixing approaches the
minimiser, but does not reach it. In shards without its feature, only the penalty moves a weight.
"""

from typing import Any, NamedTuple

import numpy as np

from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from .base import Floats, Longs
from .streaming import Batch, Columns, StreamSolver, Terms, Totals

# Name of the averaged weights to report.
MEAN = "mean"


class Pass(NamedTuple):
    """A pass from weights [K], the same for all shards.

    columns, totals: initial values, see `StreamSolver`; epoch: number of the pass; penalty,
    horizon: see `Terms`.
    """

    solver: StreamSolver
    columns: Columns
    totals: Totals
    epoch: int
    penalty: ElasticNet
    horizon: int

    def over(self, number: int, loss: WorkingLoss, places: Longs) -> Floats:
        """Visit the examples of a shard.

        number: of the shard; loss: on its weights [k]; places: [k], their indices.
        RETURNS: all columns, the weights to report, the totals and the loss, concatenated.
        """
        solver, terms = self.solver, Terms(self.penalty, self.horizon)
        batch = Batch(loss, np.random.default_rng((solver.seed, self.epoch, number)))
        own, totals = {k: v[places] for k, v in self.columns.items()}, dict(self.totals)
        solver.calibrate_stream(batch, own, totals, terms)
        lost = solver.learn(batch, own, totals, terms)
        found = {name: column.copy() for name, column in self.columns.items()}
        n = len(found["theta"])
        since = {mark: np.full(n, self.totals[mark]) for mark in solver.stream_marks}
        solver.catch_up(found, since, totals, terms)
        for name, column in own.items():
            found[name][places] = column
        mean = solver.stream_weights(found, totals)
        return np.concatenate([*found.values(), mean, [*totals.values(), lost]])

    def averaged(self, total: Floats, n: int) -> tuple[Columns, Totals, float]:
        """Return the means over n shards, from the sum of their results, and the summed loss."""
        names, k = [*self.columns, MEAN], len(self.columns["theta"])
        split = k * len(names)
        columns = dict(zip(names, (total[:split] / n).reshape(-1, k), strict=True))
        totals = dict(zip(self.totals, (total[split:-1] / n).tolist(), strict=True))
        return columns, totals, float(total[-1])


def mix(solver: StreamSolver, loss: Any, penalty: ElasticNet, state: Any) -> tuple[Any, ...]:
    """Make a pass over all shards. RETURNS: see `Pass.averaged`.

    loss: of a partitioned corpus; state: of the solver.
    """
    horizon = loss.n_examples
    begun = Pass(solver, *solver.parted(state, horizon), state.epoch, penalty, horizon)
    return begun.averaged(*loss.passed(begun))
