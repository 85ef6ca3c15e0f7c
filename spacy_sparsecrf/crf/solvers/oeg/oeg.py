"""OEG: online exponentiated gradient, ascent of the dual, a sequence at a time.

Minimises F(w) = l(w) + l2 / 2 |w|^2 through its dual (see `DualProblem`; Collins et al. 2008), for
one sequence i after another, by

    alpha_i(y) := alpha_i(y) exp(-eta_i g_i(y)) / Z,  g_i(y) = log alpha_i(y) - w . phi(x_i, y),
    w = (1 / l2) sum_i c_i (phi(x_i, y_i) - E_i[phi])

with alpha_i a distribution over label sequences in factored form: log-potentials theta^i := (1 -
eta_i) theta^i + eta_i s, s being the log-potentials at w. eta_i is halved until the dual does not
fall, and then grows. The dual converges linearly to the minimum from below, at a rate that falls
with l2: a baseline of Schmidt et al. (2015, section 6), slow if l2 is small. Has converged by
`tolerance` (see `base`), or when the objective is within the fraction `window` of the dual.
"""

from dataclasses import dataclass, replace

import numpy as np

from ....registry import crf_solvers
from ...corpus.numbering import Floats
from ...loss.examples import ChainExampleLoss
from ...penalty import ElasticNet
from .. import solver as base
from ..solver import BatchSolver, SolverState, StepReport
from .dual_problem import DualPoint, DualProblem


@dataclass
class OegState(DualPoint, SolverState):
    """The state of online exponentiated gradient.

    theta: [K], weights at the dual point, or before the first pass the initial weights; gradient:
    [K], of loss + l2 at theta; value: the objective at theta; n_passes: passes done; determines the
    next order, with the seed. The other fields are the dual point.
    """

    n_passes: int = 0


@crf_solvers("spacy_sparsecrf.OEG.v1")
@dataclass(kw_only=True, eq=False)
class OEG(BatchSolver[ChainExampleLoss]):
    """Online exponentiated gradient (Collins et al. 2008); see the module for the update.

    The reported objective is that of w, which may rise at first. A pass is over all sequences, in
    random order; then the full gradient is evaluated. Memory: twice that of SAG (see
    `DualProblem`). The first point is at the distributions of the initial weights; if these are
    zero, it is near the gold labels, so that w is near zero.

    gold: added to the first log-potentials of gold labels if the initial weights are zero; more
    where the weight of a sequence is large against l2.
    inner_iterations: passes in an outer iteration.
    seed: of the orders, >= 0.
    """

    state_type = OegState
    requires = base.requirements(
        "no l1", "l2", "indicators", "complete labels", "examples", "whole corpus", "no prior"
    )

    gold: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0.0, "gold")

    def start(self, loss: ChainExampleLoss, penalty: ElasticNet, theta: Floats) -> OegState:
        """Find the dual point of the initial weights, theta [K].

        RAISES: SparseCRFError if the objective is not finite there.
        """
        value, gradient = base.evaluate_start(loss, penalty, theta)
        dual = loss.derived(DualProblem)
        point = dual.start(loss, theta, gold=self.gold, l2=penalty.l2)
        return OegState(theta=theta, gradient=gradient, value=value, **vars(point))

    def step(self, loss: ChainExampleLoss, penalty: ElasticNet, state: OegState) -> StepReport:
        """Pass over all sequences, then evaluate."""
        dual = loss.derived(DualProblem)
        order = self.shuffled(np.arange(dual.n_sequences), state.n_passes)
        state.n_passes += 1
        # Recomputed, so that rounding errors of many small changes do not add up.
        state.theta = dual.weights(loss, penalty.l2, state)
        n_evaluations = dual.ascend(order, penalty.l2, state.theta, state)
        state.value, state.gradient = base.evaluate(loss, penalty, state.theta)
        report = self.report(penalty, state, n_evaluations / dual.n_sequences)
        return replace(report, bound=dual.bound(penalty, state.theta, state))
