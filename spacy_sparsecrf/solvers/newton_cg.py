"""Trust-region Newton with conjugate gradients, for l1 = 0 (Tsuboi, Unno, Kashima & Okazaki 2011).

The constants of the trust region, which that paper leaves open, are those of Lin, Weng & Keerthi
2008. Conjugate gradients are not preconditioned. The root of the Hessian's diagonal, and mixtures
of the diagonal with the identity, saved a quarter of the passes on letters and phonemes; but on
chunks, with their many rare tests, they were not within 1e-3 of the optimum after the passes that
suffice for 1e-6 without them.
"""

from dataclasses import dataclass, field, replace

from ..loss.hessian import HessianProduct
from ..loss.working import WorkingLoss
from ..parallel import dot
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import BatchSolver, Floats, Longs, SolverState, StepReport, needs
from .trust_region import (
    ACCEPTED,
    adapted_radius,
    first_point,
    length,
    noise,
    point_at,
    truncated_newton_step,
)


@dataclass
class State(SolverState):
    """Where Newton's method stands.

    radius: of the trust region, 0 before the first step; stalled: no step that rounding lets one
    see lowers the objective.
    """

    radius: float = 0.0
    stalled: bool = False


@crf_solvers("spacy_sparsecrf.NewtonCG.v1")
@dataclass(kw_only=True, eq=False)
class NewtonCG(BatchSolver):
    """Truncated Newton: each step solves H s = -gradient by conjugate gradients, to a fraction.

    Conjugate gradients stop where |H s + gradient| <= xi |gradient|, or at the boundary of the
    trust region |s| <= radius. A Hessian-vector product counts as one pass.

    stored: of how many sequences the marginals are stored for the products of a step, which are
        then about 1.5 times as fast; -1 for all (three vectors of labels a token).
    xi: see above (Tsuboi 2011 leave it open; 0.1: Lin, Weng & Keerthi 2008).
    max_cg: most products of one step.
    The other settings: see `BatchSolver`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    requires = needs("no l1", "memory")

    stored: int = -1
    xi: float = 0.1
    max_cg: int = 200
    inner_iterations: int = 1
    warm_start_epochs: int = field(default=0, init=False)
    seed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(-1, "stored")
        self.require(0.0, "xi")
        self.require(1, "max_cg")

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point; see `BatchSolver.start`."""
        point = first_point(loss, penalty, theta)
        return State(point.theta, point.gradient, point.value)

    def remap(
        self, loss: WorkingLoss, penalty: ElasticNet, state: State, source: Longs, gradient: Floats
    ) -> State:
        """Carry the weights and the radius over; see `BatchSolver.remap`."""
        carried: State = super().remap(loss, penalty, state, source, gradient)
        return replace(carried, stalled=False)

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> StepReport:
        """Do one Newton step: shrink the trust region until the objective falls enough."""
        passes = 0.0
        if not state.stalled and dot(state.gradient, state.gradient) > 0.0:
            passes = self._move(loss, penalty, state)
        return self.report(penalty, state, passes, state.stalled)

    def _move(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> float:
        """Move to a better point, unless rounding hides that there is one; passes taken."""
        hessian = HessianProduct(loss, self.stored)
        # A step ends at the point that was evaluated last.
        hessian.prepare(state.theta, evaluated=True)
        if state.radius == 0.0:
            # Lin, Weng & Keerthi 2008: the length of the gradient.
            state.radius = length(state.gradient)
        n_evaluations, moved = 0, False
        while not (moved or state.stalled):
            moved = self._try(loss, penalty, state, hessian)
            n_evaluations += 1
        return n_evaluations + hessian.passes

    def _try(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        hessian: HessianProduct,
    ) -> bool:
        """Try a step in the trust region and adapt the region; whether the step was taken."""
        step, residual = truncated_newton_step(
            lambda vector: hessian.product(vector) + penalty.l2 * vector,
            state.gradient,
            state.radius,
            self.xi,
            self.max_cg,
        )
        slope = dot(state.gradient, step)
        predicted = 0.5 * (dot(step, residual) - slope)
        point = point_at(loss, penalty, state.theta + step)
        actual = state.value - point.value
        if predicted <= noise(state.value):
            # Too near to see the objective fall: the gradient tells.
            shorter = length(point.gradient) < length(state.gradient)
            accepted = shorter and -actual <= noise(state.value)
            state.stalled = not accepted
        else:
            reach = length(step)
            state.radius = adapted_radius(state.radius, reach, actual, predicted, slope)
            accepted = actual > ACCEPTED * predicted
        if accepted:
            state.theta, state.gradient, state.value = point.theta, point.gradient, point.value
        return accepted
