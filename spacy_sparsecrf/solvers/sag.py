"""SAG and SAGA: stochastic gradients with a memory of each sequence's last one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..kernels.sag_rules import BALANCED, GROWING, UNIFORM
from ..loss.memory import SequenceMemory
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import BatchSettings, StepReport, evaluate, evaluate_start, optimality, take

Floats = NDArray[np.float64]

_MODES = {"uniform": UNIFORM, "nus": GROWING, "nus*": BALANCED}
_METHODS = ("sag", "saga")
# A pass that raises the objective by more than this fraction was unstable, not rounded.
_RISE = 1e-13
_RELAX = 0.95


@dataclass
class State:
    """Where SAG stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; total: [K], the
    sum of the stored gradients of the loss; nodes [tokens, Yp], pairs [groups, Y, Yp]: what is
    stored (see `SequenceMemory`); curvatures: [n], estimates L_i, 0 where a sequence was not seen;
    common: [1], L_g of uniform sampling, else the first L_i; caution: what steps are divided by; n_passes: passes done, which with
    the seed give the draws of the next.
    """

    theta: Floats
    gradient: Floats
    value: float
    total: Floats
    nodes: NDArray[Any]
    pairs: NDArray[Any]
    curvatures: Floats
    common: Floats
    caution: float = 1.0
    n_passes: int = 0


@crf_solvers("spacy_sparsecrf.SAG.v1")
class SAG(BatchSettings):
    """Stochastic average gradient with non-uniform sampling (Schmidt et al. 2015), or SAGA.

    w := prox((1 - alpha lambda) w - (alpha / m) d), d the sum of the last gradient of each of the m
    sequences that were seen (equation 4; lambda = l2 / n). Steps and draws follow estimates L_i of
    the Lipschitz constants of the gradients, by a line search (algorithm 2): no step is to be
    tuned. The convergence is linear where l2 > 0. l1 is met by a proximal step (Defazio, Bach &
    Lacoste-Julien 2014), at every draw; while m < n it acts as l1 / m, as d does. A pass is as many
    draws as there are sequences.

    sampling: "uniform"; "nus*": half of the draws in proportion to L_i, and step (1 / L_max + 1 /
        L_mean) / 2 (section 5); or "nus": a share m / n of them, and that share of the step
        (Schmidt, Le Roux & Bach 2013 have a rule of this kind).
    method: "sag", or "saga", whose steps are unbiased and four times shorter (proposition 1).
    first_curvature: L of the first sequence, for "nus" of each.
    fresh: "nus*" starts a sequence's search from this share of the mean of L_i.
    revisit: factor of L_i before a later search, 0.9 for "nus*" in the paper; "nus" halves it, by
        0.5, and "uniform" halves its one L in a pass.
    grow: factor of L_i in the search.
    least_norm: |g|^2 up to which no search takes place.
    seed: of the draws, >= 0.
    The other settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range or not known.
    """

    stochastic = True

    def __init__(
        self,
        *,
        sampling: str = "nus*",
        method: str = "sag",
        first_curvature: float = 1.0,
        fresh: float = 0.5,
        revisit: float | None = None,
        grow: float = 2.0,
        least_norm: float = 1e-8,
        tolerance: float = 1e-3,
        window: float = 1e-5,
        inner_iterations: int = 10,
        warm_start_epochs: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(tolerance, window, inner_iterations, warm_start_epochs, seed)
        for key, value, known in (
            ("sampling", sampling, _MODES),
            ("method", method, _METHODS),
        ):
            if value not in known:
                names = ", ".join(repr(name) for name in known)
                raise SparseCRFError(Errors.SC325.format(key=key, value=value, known=names))
        self.sampling = sampling
        self.method = method
        self.first_curvature = first_curvature
        self.fresh = fresh
        self.revisit = {"nus": 0.5}.get(sampling, 0.9) if revisit is None else revisit
        self.grow = grow
        self.least_norm = least_norm
        self.require(1e-12, "first_curvature", "fresh", "revisit")
        self.require(1.001, "grow")
        self.require(0.0, "least_norm")
        self._memory: SequenceMemory | None = None

    def _memory_of(self, loss: WorkingLoss) -> SequenceMemory:
        """The tables for a working loss, made when it is first met."""
        if self._memory is None or self._memory.working is not loss:
            self._memory = SequenceMemory(loss)
        return self._memory

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point; nothing is stored yet.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = evaluate_start(loss, penalty, theta)
        memory = self._memory_of(loss)
        return State(
            theta.copy(),
            gradient,
            value,
            np.zeros_like(theta),
            *memory.empty(),
            np.zeros(memory.n_sequences),
            np.full(1, self.first_curvature),
        )

    def remap(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> State:
        """Carry weights and memory over to another working set, of which the sum d is made anew.

        Arguments: see `BatchSolver.remap`. What is stored does not depend on the working set.
        """
        return State(
            take(state.theta, source),
            gradient,
            state.value,
            self._memory_of(loss).gradient(state.nodes, state.pairs),
            state.nodes,
            state.pairs,
            state.curvatures,
            state.common,
            state.caution,
            state.n_passes,
        )

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> StepReport:
        """Do as many draws as there are sequences, then evaluate.

        It has converged by the paper's rule, every sequence being seen and the estimate d of the
        gradient being within the tolerance, or by the gradient itself.
        """
        memory = self._memory_of(loss)
        n = memory.n_sequences
        draws = np.random.default_rng([self.seed, state.n_passes]).random((n, 2))
        was_complete = bool(state.curvatures.min() > 0.0)
        n_forward = memory.run(
            draws,
            (
                _MODES[self.sampling],
                self.method == "saga",
                self.fresh,
                self.revisit,
                self.grow,
                self.least_norm,
                state.caution,
            ),
            (penalty.l1, penalty.l2 / n),
            (state.theta, state.total, state.nodes, state.pairs, state.curvatures, state.common),
        )
        state.n_passes += 1
        value, state.gradient = evaluate(loss, penalty, state.theta)
        rose = was_complete and not value <= state.value + _RISE * abs(state.value)
        state.caution = 2.0 * state.caution if rose else max(1.0, _RELAX * state.caution)
        state.value = value
        distance = optimality(penalty, state.theta, state.gradient)
        estimate = penalty.distance(state.theta, state.total)
        finished = state.curvatures.min() > 0.0 and estimate <= self.tolerance
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=1.0 + n_forward / n,
            converged=bool(finished) or distance <= self.tolerance,
        )
