"""Stochastic solvers, which also support online training on batches.

They minimise F(theta) = sum_i l_i(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 over N examples, by
steps on one or a few l_i with their share of the penalty. The first step size is calibrated on a
sample. After each pass, stopping is tested as in all solvers (see `base`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..errors import Errors, SparseCRFError
from ..loss.examples import MinibatchDescent, SequenceDescent
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from .base import BatchSolver, Floats, Longs, StepReport, evaluate, requirements
from .calibration import calibrate

# A solver's arrays, [K] float64 each, and its running totals, int or float, by name.
Columns = dict[str, Floats]
Totals = dict[str, float]
Descent: TypeAlias = SequenceDescent | MinibatchDescent


@dataclass(frozen=True)
class Terms:
    """The objective of a stream: l1 |w|_1 + l2 / 2 |w|_2^2 + the loss of N examples.

    penalty; horizon: N; each example has 1 / N of the penalty.
    """

    penalty: ElasticNet
    horizon: int

    def share(self, batch: int) -> ElasticNet:
        """Return the penalty of a minibatch of `batch` examples."""
        share = 1.0 / -(-self.horizon // batch)
        return ElasticNet(share * self.penalty.l1, share * self.penalty.l2)


@dataclass(frozen=True)
class Batch:
    """A batch of examples.

    loss: their loss, on their weights [K]; rng: for their order.
    """

    loss: WorkingLoss
    rng: np.random.Generator

    def in_order(self, examples: Longs) -> Longs:
        """Return examples [n] int64 in the order of this batch."""
        order: Longs = self.rng.permutation(examples)
        return order


@dataclass(kw_only=True, eq=False)
class StreamSolver(BatchSolver):
    """Base class of stochastic solvers, whose steps need only the weights of a few examples.

    online: whether to learn from the batches of the training loop, as with [training]
        max_epochs = -1, instead of from the corpus that was read before training: slower, because
        each epoch reads and hashes the corpus again.
    horizon: number of examples (sequences, or tokens with model = "maxent" or "memm") that count as
        a pass in online training, for the shares of the penalty and for decaying steps; 0: the
        number of examples read before training, or 10,000 with max_epochs = -1.
    inner_iterations: passes.

    `stream_columns` has the names and initial values of the numbers stored for each weight. They
    are up to date for the weights of an example's features when it is visited. All weights share
    running totals. `stream_marks` names the totals whose values are stored for a feature when its
    weights are brought up to date.
    """

    window: float = 1e-4
    inner_iterations: int = 1
    online: bool = False
    horizon: int = 0

    requires = requirements("indicators", "examples")
    exact = False
    streaming = True
    stream_marks: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0, "horizon")

    @property
    def stream_columns(self) -> dict[str, float]:
        """Names and initial values of the numbers of a weight, "theta", the weight, first."""
        return self.columns

    @property
    def first_eta(self) -> float:
        """The first step size; 0 to calibrate it on a sample."""
        return float(getattr(self, "eta0", 0.0))

    def begin_pass(self, descent: Descent, state: Any) -> tuple[Longs, float]:
        """Draw the order of a pass, and calibrate the first step size if there is none.

        state: with eta and epoch. RETURNS: the order [n] int64; number of passes, including the
        trials of the calibration.
        """
        order = self.shuffled(descent.sequences, state.epoch)
        visits, state.eta = len(order), state.eta or self.first_eta
        if state.eta == 0.0:
            state.eta, trials = calibrate(order, descent.loss_after)
            visits += trials
        return order, visits / len(order)

    def end_pass(
        self, loss: WorkingLoss, penalty: ElasticNet, state: Any, passes: float = 1.0
    ) -> StepReport:
        """Evaluate the objective after a pass, and return the report.

        RAISES: SparseCRFError if weights or objective are not finite.
        """
        if np.isfinite(state.theta).all():
            value, gradient = evaluate(loss, penalty, state.theta)
            if np.isfinite(value):
                state.value, state.gradient = value, gradient
                return self.report(penalty, state, passes)
        raise SparseCRFError(Errors.SC338.format(solver=type(self).__name__))

    def begin_stream(self, penalty: ElasticNet) -> Totals:
        """Return the running totals before the first example."""
        raise NotImplementedError

    def check_streamable(self) -> None:
        """Check that no setting needs passes over a whole corpus. RAISES: SparseCRFError."""
        if self.inner_iterations != 1:
            given = {"key": "inner_iterations", "value": self.inner_iterations, "needed": 1}
            raise SparseCRFError(Errors.SC382.format(solver=type(self).__name__, **given))

    def calibrate_stream(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> None:
        """Calibrate the first step size on a sample if it is not set; in and out: totals."""
        if totals.get("eta") == 0.0:
            descent = self.descent(batch, columns, totals, terms)
            order = batch.in_order(descent.sequences)
            totals["eta"], _ = calibrate(order, descent.loss_after)

    def descent(self, batch: Batch, columns: Columns, totals: Totals, terms: Terms) -> Any:
        """Return an object that descends over the examples of a batch, from these weights."""
        raise NotImplementedError

    def catch_up(self, columns: Columns, since: Columns, totals: Totals, terms: Terms) -> None:
        """Apply, in place, the updates that weights have missed since their marks.

        since: the marks of these weights, [K] each, which may be overwritten.
        """
        raise NotImplementedError

    def learn(self, batch: Batch, columns: Columns, totals: Totals, terms: Terms) -> float:
        """Visit the examples of a batch once, and update columns and running totals.

        RETURNS: the sum of the examples' losses, each at the weights before its own step.
        """
        raise NotImplementedError

    def parted(self, state: Any, horizon: int) -> tuple[Columns, Totals]:
        """Return the start of a pass over a shard, see `parameter_mixing`; horizon: see `Terms`."""
        raise NotImplementedError

    def must_settle(self, totals: Totals) -> bool:
        """Return whether all weights must be brought up to date, followed by `settled`."""
        return False

    def settled(self, totals: Totals) -> None:
        """Reset the running totals, after all weights were brought up to date."""

    def stream_weights(self, columns: Columns, totals: Totals) -> Floats:
        """Return the weights [K] to report, from columns that are up to date."""
        return columns["theta"]
