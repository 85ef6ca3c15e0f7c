"""Stochastic solvers: a step on one or a few examples at a time.

They minimise F(theta) = sum_i l_i(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 over N examples, by
steps on one or a few l_i with their share of the penalty. The first step size is calibrated on a
sample. After each pass, stopping is tested as in all solvers (see `base`).
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...errors import Errors, SparseCRFError
from ..corpus.numbering import Longs
from ..loss.examples import MinibatchDescent
from ..loss.protocols import ExampleLoss
from ..penalty import ElasticNet
from .solver import BatchSolver, StepReport, evaluate, requirements
from .step_size import calibrate

ExamplesT = TypeVar("ExamplesT", bound=ExampleLoss)


@dataclass(kw_only=True, eq=False)
class StochasticSolver(BatchSolver[ExamplesT]):
    """Base class of stochastic solvers. inner_iterations: passes."""

    window: float = 1e-4
    inner_iterations: int = 1
    seed: int = 0

    requires = requirements("indicators", "examples", "whole corpus")
    exact = False

    def begin_pass(self, descent: MinibatchDescent, state: Any, eta0: float) -> tuple[Longs, float]:
        """Draw the order of a pass, and calibrate the first step size if there is none.

        state: with eta and epoch; eta0: the first step size, 0 to calibrate it. RETURNS: the order
            [n] int64; number of passes, including the trials of the calibration.
        """
        order = self.shuffled(descent.sequences, state.epoch)
        visits, state.eta = len(order), state.eta or eta0
        if state.eta == 0.0:
            state.eta, trials, _ = calibrate(descent.sample(order), descent.loss_after)
            visits += trials
        return order, visits / len(order)

    def end_pass(
        self, loss: ExamplesT, penalty: ElasticNet, state: Any, passes: float = 1.0
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
