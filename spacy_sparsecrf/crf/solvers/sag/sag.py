"""SAG and SAGA: stochastic average gradient with non-uniform sampling (Schmidt et al. 2015).

Minimises F(w) = sum_i f_i(w) + l1 |w|_1 + l2 / 2 |w|^2 over n sequences. For each sequence drawn,

    w := prox((1 - alpha lambda) w - (alpha / m) d)          (equation 4; algorithm 1, line 15)

with d the sum of the last gradients of the m sequences seen so far, and lambda = l2 / n. Steps
alpha and draws follow estimates L_i of the Lipschitz constants of the gradients, found by a line
search (algorithm 2, section 5): no step size needs tuning. Convergence is linear if l2 > 0. l1 acts
by a proximal step (Defazio, Bach & Lacoste-Julien 2014) at every draw; while m < n it acts as l1 /
m, as d does.

Stops as all solvers do (see `base`), by the full gradient after a pass of n draws; or, as in line 3
of algorithm 1 with "or" for "and" (section 4.1), by d once all sequences were seen.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ....registry import crf_solvers
from ...corpus.numbering import Floats, Longs
from ...kernels.layout import Factors
from ...loss.examples import ChainExampleLoss, new_workspace
from ...loss.gradient_memory import FactorStorage
from ...penalty import ElasticNet
from .. import solver as base
from ..solver import BatchSolver, SolverState, StepReport
from .sag_kernels import Average, GradientExchange, Progress, sag_pass
from .sag_updates import BALANCED, GROWING, PAIRED, UNIFORM, Rules, Steps, set_leaves

_SAMPLINGS = {"uniform": UNIFORM, "nus": GROWING, "nus*": BALANCED}
_MODES = _SAMPLINGS | {"saga2": PAIRED}
_METHODS = ("sag", "saga", "saga2")
_STOPPING = ("gradient", "memory")
# Factor of L_i before a later search; uniform sampling halves its one L in a pass.
REVISIT = {"uniform": 1.0, "nus": 0.5, "nus*": 0.9, "saga2": 0.9}
# Rounding raises the objective by at most this fraction; a larger rise means instability.
_RISE = 1e-13
# |g|^2 of a sequence up to which there is no search.
LEAST_NORM = 1e-8
# Factor of the caution after a pass that did not raise the objective.
_RELAX = 0.95


class StoredGradients(FactorStorage):
    """The last gradient of each sequence, and passes of SAG that use and replace it.

    Its workspaces, three numbers for each weight, are not saved (see `GradientExchange`).
    """

    def __init__(self, working: ChainExampleLoss) -> None:
        super().__init__(working)
        space, n = working.space, len(working.coordinates)
        pairs = np.zeros((self._most_groups, space.n_labels, space.padded))
        self._exchange = GradientExchange(
            gradient=np.zeros(n),
            change=np.zeros(n),
            trial=np.zeros(n),
            pairs=pairs,
            work=new_workspace(working),
        )

    def run(self, draws: Floats, rules: Rules, average: Average) -> int:
        """Do a pass over drawn sequences.

        draws: [steps, 2 or 4] float64, see `sag_pass`; average: in and out.
        RETURNS: the number of evaluations beyond one for each step.
        """
        n_leaves = 1 << max(1, self.n_sequences - 1).bit_length()
        sums, tops = np.zeros(2 * n_leaves), np.zeros(2 * n_leaves)
        set_leaves(sums, tops, average.curvatures)
        reached = np.zeros(len(self._grouped.sequence_blocks.weight_ptr) - 1, np.int64)
        steps = Steps(reached, np.zeros(len(draws) + 1), np.zeros(len(draws) + 1))
        is_seen = average.curvatures > 0.0
        order, n_seen = np.argsort(~is_seen, kind="stable"), int(is_seen.sum())
        progress = Progress(sums=sums, tops=tops, order=order, n_seen=n_seen, steps=steps)
        n_forward = sag_pass(
            draws,
            rules,
            grouped=self._grouped,
            average=average,
            progress=progress,
            exchange=self._exchange,
        )
        return int(n_forward)


@dataclass
class SagState(SolverState):
    """The state of SAG.

    total: [K], the sum of the stored gradients of the loss; nodes [tokens, Yp], pairs [groups, Y,
    Yp]: the stored residuals (see `FactorStorage`); curvatures: [n], estimates L_i, 0 where a
    sequence was not seen; common: [1], L_g of uniform sampling, else the first L_i; caution:
    divisor of the step sizes; n_passes: passes done; determines the next draws, with the seed.
    """

    total: Floats
    nodes: NDArray[Any]
    pairs: NDArray[Any]
    curvatures: Floats
    common: Floats
    caution: float = 1.0
    n_passes: int = 0

    @property
    def average(self) -> Average:
        """The state as an argument of kernels."""
        return Average(
            theta=self.theta,
            total=self.total,
            stored=Factors(self.nodes, self.pairs),
            curvatures=self.curvatures,
            common=self.common,
        )


@crf_solvers("spacy_sparsecrf.SAG.v1")
@dataclass(kw_only=True, eq=False)
class SAG(BatchSolver[ChainExampleLoss]):
    """Stochastic average gradient (Schmidt et al. 2015), or SAGA; see the module for the update.

    A pass is as many draws as there are sequences. Then the full gradient is evaluated, which shows
    whether steps were too long. Memory: b Yp (N + G Y) bytes, see `FactorStorage`.

    sampling: "uniform"; "nus*": half of the draws in proportion to L_i, and step (1 / L_max + 1 /
        L_mean) / 2 (section 5); or "nus", after Schmidt, Le Roux & Bach 2013: a share (n - m) / n
        of the draws are of sequences not seen yet, half of the others in proportion to L_i.
    method: "sag"; or "saga", whose steps are unbiased and four times shorter (proposition 1a); or
        "saga2", which draws two sequences for each step, whatever `sampling` is: one in proportion
        to L_i for the step, which is 1 / (4 L_mean), and one uniformly for the memory (1b).
    stopping: the vector whose negative must be within `tolerance` of the penalty's subdifferential:
        the "gradient" of the whole loss; or the sum d of the gradients in "memory", once all
        sequences were seen. The final objective may then be higher, as d is out of date.
    inner_iterations: passes in an outer iteration.
    seed: of the draws, >= 0.
    """

    state_type = SagState
    requires = base.requirements("indicators", "examples", "whole corpus")

    sampling: str = "nus*"
    method: str = "sag"
    stopping: str = "gradient"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_one_of("sampling", _SAMPLINGS)
        self.require_one_of("method", _METHODS)
        self.require_one_of("stopping", _STOPPING)
        self.own_rule = self.stopping == "memory"

    def idle(self, penalty: ElasticNet) -> dict[str, str]:
        """Return settings without effect; see `BatchSolver.idle`."""
        unused = super().idle(penalty)
        if self.method == "saga2":
            unused["sampling"] = "method = 'saga2' does not use it"
        return unused

    def start(self, loss: ChainExampleLoss, penalty: ElasticNet, theta: Floats) -> SagState:
        """Evaluate the first point; nothing is stored yet. See `BatchSolver.start`."""
        value, gradient = base.evaluate_start(loss, penalty, theta)
        memory = loss.derived(StoredGradients)
        nodes, pairs = memory.empty(loss)
        return SagState(
            theta=theta.copy(),
            gradient=gradient,
            value=value,
            total=np.zeros_like(theta),
            nodes=nodes,
            pairs=pairs,
            curvatures=np.zeros(memory.n_sequences),
            common=np.ones(1),
        )

    def check_state(self, loss: ChainExampleLoss, penalty: ElasticNet, state: Any) -> None:
        """Check a state, by whose curvatures sequences are drawn; see `BatchSolver.check_state`."""
        super().check_state(loss, penalty, state)
        if (state.curvatures < 0.0).any():
            raise ValueError("curvatures are negative")

    def remap(
        self,
        loss: ChainExampleLoss,
        penalty: ElasticNet,
        state: Any,
        source: Longs,
        gradient: Floats,
    ) -> SagState:
        """Move weights and memory, and sum d again; see `BatchSolver.remap`.

        The stored residuals do not depend on the working set.
        """
        total = loss.derived(StoredGradients).gradient(loss, state.nodes, state.pairs)
        carried = super().remap(loss, penalty, state, source=source, gradient=gradient)
        return replace(cast("SagState", carried), total=total)

    def step(self, loss: ChainExampleLoss, penalty: ElasticNet, state: SagState) -> StepReport:
        """Do as many draws as there are sequences, then evaluate.

        Step sizes are halved after a pass that raised the objective. If the objective is not
        finite, the pass is also undone and the memory is cleared.
        """
        n = loss.derived(StoredGradients).n_sequences
        was_complete = bool(state.curvatures.min() > 0.0)
        old_theta = state.theta.copy()
        n_forward = self._pass(loss, penalty, state)
        value, gradient = base.evaluate(loss, penalty, state.theta)
        rose = was_complete and value > state.value + _RISE * abs(state.value)
        if np.isfinite(value):
            state.value, state.gradient = value, gradient
        else:
            rose = True
            state.theta[:] = old_theta
            for stored in (state.total, state.nodes, state.pairs, state.curvatures):
                stored[:] = 0.0
        state.caution = 2.0 * state.caution if rose else max(1.0, _RELAX * state.caution)
        report = self.report(penalty, state, 1.0 + n_forward / n)
        if self.stopping == "gradient":
            return report
        is_near = penalty.distance(state.theta, state.total) <= self.tolerance_at(penalty)
        return replace(report, converged=bool(state.curvatures.min() > 0.0 and is_near))

    def _pass(self, loss: ChainExampleLoss, penalty: ElasticNet, state: SagState) -> int:
        """Do as many steps as there are sequences; return the number of other evaluations."""
        memory = loss.derived(StoredGradients)
        n = memory.n_sequences
        sampling, width = ("saga2", 4) if self.method == "saga2" else (self.sampling, 2)
        draws = np.random.default_rng([self.seed, state.n_passes]).random((n, width))
        state.n_passes += 1
        rules = Rules(
            mode=_MODES[sampling],
            saga=self.method != "sag",
            revisit=REVISIT[sampling],
            least_norm=LEAST_NORM,
            caution=state.caution,
            l1=penalty.l1,
            decay=penalty.l2 / n,
        )
        return memory.run(draws, rules, state.average)
