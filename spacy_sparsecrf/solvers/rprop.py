"""RPROP: a step width for each weight, from the signs of successive gradients."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import (
    BatchSettings,
    Loss,
    StepReport,
    evaluate,
    evaluate_start,
    optimality,
    smallest_subgradient,
    take,
)

Floats = NDArray[np.float64]


@dataclass
class State:
    """Where RPROP stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; widths: [K] > 0;
    last: [K], the pseudo-gradient that the last moves followed, 0 where there was none; moves:
    [K], the last change of each weight.
    """

    theta: Floats
    gradient: Floats
    value: float
    widths: Floats
    last: Floats
    moves: Floats


@crf_solvers("spacy_sparsecrf.RPROP.v1")
class RPROP(BatchSettings):
    """Resilient backpropagation (Riedmiller & Braun 1993), with l1 by the pseudo-gradient.

    A weight moves against the sign of its pseudo-gradient by its own width, which grows while the
    sign stays and shrinks where it changes. With l1, a weight stops at zero instead of crossing.

    backtracking: whether a weight whose sign has changed goes back first (RPROP+), instead of
        moving on with the smaller width (RPROP-).
    first_width, least_width, largest_width: of the moves, in units of weights.
    grow, shrink: factors of the widths.
    The other settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    supports_values = True
    out_of_core = True

    def __init__(
        self,
        *,
        backtracking: bool = True,
        first_width: float = 0.1,
        least_width: float = 1e-8,
        largest_width: float = 50.0,
        grow: float = 1.2,
        shrink: float = 0.5,
        tolerance: float = 1e-3,
        window: float = 1e-5,
        inner_iterations: int = 10,
        warm_start_epochs: int = 6,
        seed: int = 0,
        polish_iterations: int = 0,
        polish_l2: float = 1e-5,
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
        self.backtracking = backtracking
        self.first_width = first_width
        self.least_width = least_width
        self.largest_width = largest_width
        self.grow = grow
        self.shrink = shrink
        self.require(1.0, "grow")
        self.require(0.0, "shrink", "least_width")
        self.require(least_width, "first_width")
        self.require(first_width, "largest_width")

    def start(self, loss: Loss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = evaluate_start(loss, penalty, theta)
        widths = np.full(len(theta), self.first_width)
        return State(theta, gradient, value, widths, np.zeros_like(theta), np.zeros_like(theta))

    def remap(
        self,
        loss: Loss,
        penalty: ElasticNet,
        state: State,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> State:
        """Carry a state over to another working set; new weights have the first width."""
        widths = take(state.widths, source)
        widths[source < 0] = self.first_width
        return State(
            theta=take(state.theta, source),
            gradient=gradient,
            value=state.value,
            widths=widths,
            last=take(state.last, source),
            moves=take(state.moves, source),
        )

    def step(self, loss: Loss, penalty: ElasticNet, state: State) -> StepReport:
        """Do one iteration; a point without finite objective halves all widths instead."""
        pseudo = smallest_subgradient(penalty, state.theta, state.gradient)
        same = np.sign(pseudo * state.last)
        widths = state.widths * np.where(same > 0, self.grow, np.where(same < 0, self.shrink, 1.0))
        state.widths = np.clip(widths, self.least_width, self.largest_width)
        moves = -np.sign(pseudo) * state.widths
        followed = pseudo
        if self.backtracking:
            moves = np.where(same < 0, -state.moves, moves)
            # The next move of a weight that went back is free: its sign counts for nothing.
            followed = np.where(same < 0, 0.0, pseudo)
        theta = state.theta + moves
        if penalty.l1 > 0.0:
            theta[theta * state.theta < 0.0] = 0.0
        value, gradient = evaluate(loss, penalty, theta)
        if np.isfinite(value):
            state.moves, state.last = theta - state.theta, followed
            state.theta, state.gradient, state.value = theta, gradient, value
        else:
            state.widths = np.maximum(0.5 * state.widths, self.least_width)
        distance = optimality(penalty, state.theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=1.0,
            converged=distance <= self.tolerance,
        )
