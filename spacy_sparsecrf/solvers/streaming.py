"""Solvers that also learn from batches of examples as they come."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from .base import BatchSettings, BatchSolver

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
# A solver's arrays, [K] float64 each, and its running numbers, int or float, by name.
Columns = dict[str, Floats]
Totals = dict[str, float]


@dataclass(frozen=True)
class Terms:
    """What a stream minimises: l1 |w|_1 + l2 / 2 |w|_2^2 + the loss of N examples.

    penalty; horizon: N, so that each example has one N-th of the penalty.
    """

    penalty: ElasticNet
    horizon: int

    def share(self, batch: int) -> ElasticNet:
        """The penalty of a minibatch of `batch` examples."""
        share = 1.0 / -(-self.horizon // batch)
        return ElasticNet(share * self.penalty.l1, share * self.penalty.l2)


@dataclass(frozen=True)
class Batch:
    """Examples that have just come.

    loss: theirs, on the weights [K] that they have; rng: for the order in which they are visited.
    """

    loss: WorkingLoss
    rng: np.random.Generator

    def in_order(self, examples: Longs) -> Longs:
        """Examples [n] int64 in the order of this batch."""
        order: Longs = self.rng.permutation(examples)
        return order


class StreamSolver(BatchSolver, Protocol):
    """A solver with steps that need the weights of a few examples only.

    For each weight it keeps `stream_columns`, numbers whose names and first values these are, of
    which those of all weights of an example's tests are up to date when the example is visited;
    and for all, running numbers. `stream_marks` names those running numbers that are remembered
    of the time when a weight was last up to date. `on_batches`: whether it is to learn from batches
    also where it could have the whole corpus; `horizon`: examples that count as a pass.
    """

    on_batches: bool
    horizon: int
    stream_marks: tuple[str, ...]

    @property
    def stream_columns(self) -> dict[str, float]:
        """Names and first values; the first name is "theta", the weights."""
        ...

    def begin_stream(self, penalty: ElasticNet) -> Totals:
        """The running numbers before the first example.

        RAISES: SparseCRFError where the solver cannot learn so.
        """
        ...

    def calibrate_stream(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> None:
        """Find what settings leave open, on a sample, and enter it in the running numbers."""
        ...

    def catch_up(self, columns: Columns, since: Columns, totals: Totals, terms: Terms) -> None:
        """Bring weights up to date, in place, which no example had for a while.

        since: the marks of these weights, [K] each, which are used up.
        """
        ...

    def learn(self, batch: Batch, columns: Columns, totals: Totals, terms: Terms) -> float:
        """Visit the examples of a batch once, and bring columns and running numbers up to date.

        RETURNS: the sum of the examples' losses, each at the weights before its own step.
        """
        ...

    def must_settle(self, totals: Totals) -> bool:
        """Whether all weights are to be brought up to date, followed by `settled`."""
        ...

    def settled(self, totals: Totals) -> None:
        """Begin the running numbers anew, now that all weights are up to date."""
        ...

    def stream_weights(self, columns: Columns, totals: Totals) -> Floats:
        """The weights [K] to report, of columns that are up to date."""
        ...


class StreamSettings(BatchSettings):
    """Settings of solvers that learn from batches, too; see `BatchSettings`.

    on_batches: whether to learn from the batches of the training loop, as with [training]
        max_epochs = -1, instead of from the corpus that was read before training: that is slower,
        as all is read and hashed anew in each epoch.
    horizon: how many examples (sequences, or tokens with model = "maxent" or "memm") count as a
        pass then, for the shares of the penalty and for steps that shrink; 0: those that were read
        before training, where these are all, and 10,000 with max_epochs = -1.
    """

    streaming = True
    stochastic = True
    exact = False

    def __init__(
        self,
        tolerance: float,
        window: float,
        inner_iterations: int,
        warm_start_epochs: int,
        seed: int,
        polish_iterations: int,
        polish_l2: float,
        on_batches: bool,
        horizon: int,
    ) -> None:
        super().__init__(
            tolerance,
            window,
            inner_iterations,
            warm_start_epochs,
            seed,
            polish_iterations,
            polish_l2,
        )
        self.on_batches = on_batches
        self.horizon = horizon
        self.require(0, "horizon")

    def check_streamable(self) -> None:
        """Refuse settings that ask for passes over a whole corpus.

        RAISES: SparseCRFError.
        """
        wanted = {"inner_iterations": 1, "warm_start_epochs": 0, "polish_iterations": 0}
        for key, value in wanted.items():
            if getattr(self, key) != value:
                error = Errors.SC382.format(
                    solver=type(self).__name__, key=key, value=getattr(self, key), needed=value
                )
                raise SparseCRFError(error)

    def calibrate_stream(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> None:
        """Find nothing: all is set."""

    def must_settle(self, totals: Totals) -> bool:
        """Never: running numbers stay small."""
        return False

    def settled(self, totals: Totals) -> None:
        """Leave the running numbers."""
