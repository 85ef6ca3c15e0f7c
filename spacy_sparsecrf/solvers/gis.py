"""GIS: all weights at once, slowed by how many features are on at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.scaling import largest_sum, scale_weights
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import StepReport, evaluate, evaluate_start, take
from .scgis import IterativeScaling

Floats = NDArray[np.float64]


@dataclass
class State:
    """Where GIS stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; slowing: f#, of
    the working weights.
    """

    theta: Floats
    gradient: Floats
    value: float
    slowing: float


@crf_solvers("spacy_sparsecrf.GIS.v1")
class GIS(IterativeScaling):
    """Generalized iterative scaling (Darroch & Ratcliff 1972; Goodman 2002, figure 1).

    For per-position models. Each iteration minimises a separable bound on the objective: without
    penalty d_i = log(O_i / E_i) / f#, with f# = max_{t,y} sum_i f_i(x_t, y) over the working
    weights; with penalties see `scaled_weight`. The objective never rises.

    The settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State

    def __init__(
        self,
        *,
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

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there, and as `check`.
        """
        self.check(loss, penalty)
        value, gradient = evaluate_start(loss, penalty, theta)
        return State(theta, gradient, value, _slowing(loss))

    def remap(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> State:
        """Carry a state over to another working set, of another f#."""
        return State(take(state.theta, source), gradient, state.value, _slowing(loss))

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> StepReport:
        """Do one iteration."""
        observed = loss.observed
        expected = state.gradient - penalty.l2 * state.theta + observed
        theta = np.empty_like(state.theta)
        parts = state.slowing, penalty.l1, penalty.l2
        scale_weights(state.theta, observed, expected, *parts, theta)
        state.theta = theta
        state.value, state.gradient = evaluate(loss, penalty, theta)
        return self.report(penalty, state)


def _slowing(loss: WorkingLoss) -> float:
    """f# of the working weights; 1 where there are none, as then nothing moves."""
    space, rows = loss.space, loss.unigram
    tokens = rows.of(space.lattice.tests)
    # Heads have a table of weights, of which there is none that are 1.
    no_heads = np.zeros(len(tokens) + 1, np.int64)
    unigrams = loss.unigrams._replace(
        head_ptr=no_heads, tok_ptr=tokens.indptr, tok_rows=tokens.indices
    )
    most = largest_sum(space.n_labels, unigrams, np.ones(loss.split), np.empty(space.padded))
    return max(float(most), 1.0)
