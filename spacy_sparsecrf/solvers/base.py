"""What a solver is: the protocol, what it sees of a problem, what it reports."""

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..penalty import ElasticNet

Floats = NDArray[np.float64]


class Function(Protocol):
    """A smooth function of K weights."""

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The value, and the gradient [K] float64, at theta [K] float64."""
        ...


class Loss(Function, Protocol):
    """The loss of a corpus on K weights, as a gradient solver sees it."""

    def curvature(self, gradient: Floats) -> Floats:
        """About the diagonal of the Hessian, [K], at the point that was evaluated last.

        gradient: [K], of the loss at that point.
        """
        ...


@dataclass(frozen=True)
class StepReport:
    """What one step reached.

    objective: loss plus penalty. optimality: largest distance of a coordinate of -gradient to
    the penalty's subdifferential; 0 at a minimiser. n_active: non-zero weights. passes:
    evaluations of a sequence divided by the number of sequences, in this step (Schmidt 2015).
    converged: whether further steps are pointless.
    """

    objective: float
    optimality: float
    n_active: int
    passes: float
    converged: bool


class BatchSolver(Protocol):
    """A solver that uses the gradient over the whole corpus.

    Its settings are plain scalars; its state is arrays and scalars only, so that it can be saved
    and resumed bit for bit. `streaming` tells whether it can learn from the batches of spaCy's
    loop alone; a batch solver cannot. `stochastic`: whether it visits a sequence at a time, and
    wants its working loss laid out for that. `exact`: whether it converges to the minimiser.
    `supports_l1`, `needs_l2`: which penalties it minimises. `local_only`: whether it minimises the
    losses of per-position models only. `supports_legal`: whether it minimises the loss over legal
    sequences (see `ChainLoss`). `supports_values`: whether it learns weights of real-valued
    features, which only whole evaluations of the loss know. `out_of_core`: whether the corpus may
    be in files (see `arrays`). `gone`: whether only its name is left, for pipelines that it
    trained. `average_warm_start`: whether the warm start ends with means of its weights and is an
    outer iteration of its own. `state_type`: the dataclass of its state.
    """

    state_type: type[Any]
    streaming: bool
    stochastic: bool
    exact: bool
    supports_l1: bool
    needs_l2: bool
    local_only: bool
    supports_legal: bool
    supports_values: bool
    out_of_core: bool
    gone: bool
    tolerance: float
    window: float
    inner_iterations: int
    warm_start_epochs: int
    average_warm_start: bool
    seed: int
    polish_iterations: int
    polish_l2: float

    def start(self, loss: Loss, penalty: ElasticNet, theta: Floats) -> Any:
        """Evaluate the first point theta [K] and return the state there."""
        ...

    def step(self, loss: Loss, penalty: ElasticNet, state: Any) -> StepReport:
        """Do one iteration, in place."""
        ...

    def remap(
        self,
        loss: Loss,
        penalty: ElasticNet,
        state: Any,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> Any:
        """Carry a state over to another working set at the same point, evaluated last.

        loss: on the new working set; source: [K'] int64, for each new coordinate its place in the
        old state, or -1 if it was not there (its weight is then zero); gradient: [K'] of loss +
        l2 at the point.
        """
        ...


class BatchSettings:
    """Settings that all batch solvers have.

    tolerance: stop when no coordinate of -gradient is farther than this from the
        subdifferential (unit: expected counts; compare l1).
    window: stop when an outer iteration lowers the objective by less than this fraction.
    inner_iterations: iterations of the solver in one outer iteration (one `update`).
    warm_start_epochs: passes of SGD-L1 before the first iteration, as part of the first outer
        one; 0 for none. Without l1, or with init_weights, there are none.
    seed: of the order in which the warm start visits sequences, >= 0.
    polish_iterations: L-BFGS iterations on the non-zero weights alone, without l1, of each model
        that is taken from the run (see `training.run.polish`); 0 for none.
    polish_l2: the l2 penalty of these.
    RAISES: SparseCRFError where a setting is out of range.
    """

    streaming = False
    stochastic = False
    exact = True
    supports_l1 = True
    needs_l2 = False
    local_only = False
    supports_legal = True
    supports_values = False
    out_of_core = False
    gone = False
    average_warm_start = False

    def __init__(
        self,
        tolerance: float,
        window: float,
        inner_iterations: int,
        warm_start_epochs: int,
        seed: int,
        polish_iterations: int = 0,
        polish_l2: float = 1e-5,
    ) -> None:
        self.tolerance = tolerance
        self.window = window
        self.inner_iterations = inner_iterations
        self.warm_start_epochs = warm_start_epochs
        self.seed = seed
        self.polish_iterations = polish_iterations
        self.polish_l2 = polish_l2
        self.require(1, "inner_iterations")
        self.require(0, "tolerance", "window", "warm_start_epochs", "seed")
        self.require(0, "polish_iterations", "polish_l2")

    def require(self, low: float, *keys: str) -> None:
        """Refuse settings below a number, and those that are not a number."""
        for key in keys:
            value = getattr(self, key)
            if not value >= low:
                raise SparseCRFError(Errors.SC306.format(key=key, value=value, low=low))


def check_supported(solver: BatchSolver, penalty: ElasticNet, kind: str) -> None:
    """Refuse a penalty, or a kind of model (see `CRFModel`), that a solver cannot minimise.

    RAISES: SparseCRFError; also where the solver is gone.
    """
    name = type(solver).__name__
    # A solver of another package may not know.
    if getattr(solver, "gone", False):
        raise SparseCRFError(Errors.SC396.format(solver=name))
    if penalty.l1 > 0.0 and not solver.supports_l1:
        raise SparseCRFError(Errors.SC308.format(solver=name))
    if penalty.l2 == 0.0 and solver.needs_l2:
        raise SparseCRFError(Errors.SC309.format(solver=name))
    if kind == "chain" and solver.local_only:
        raise SparseCRFError(Errors.SC340.format(solver=name))


def check_constrained(solver: BatchSolver, kind: str) -> None:
    """Refuse to leave illegal sequences out where a model or a solver does not sum over sequences.

    kind: see `CRFModel`. RAISES: SparseCRFError.
    """
    if kind != "chain":
        raise SparseCRFError(Errors.SC357.format(kind=kind))
    # A solver of another package may not know.
    if not getattr(solver, "supports_legal", False):
        raise SparseCRFError(Errors.SC359.format(solver=type(solver).__name__))


def check_values(solver: BatchSolver, n_values: int, clusters: int) -> None:
    """Refuse real-valued features where a solver, or a model with clusters, cannot have them.

    n_values: how many there are; clusters: of labels. RAISES: SparseCRFError.
    """
    if not n_values:
        return
    if clusters:
        raise SparseCRFError(Errors.SC394.format(clusters=clusters))
    # A solver of another package may not know.
    if not getattr(solver, "supports_values", False):
        raise SparseCRFError(Errors.SC393.format(solver=type(solver).__name__))


def check_out_of_core(solver: BatchSolver) -> None:
    """Refuse a solver that needs the whole corpus in memory. RAISES: SparseCRFError."""
    # A solver of another package may not know.
    if not getattr(solver, "out_of_core", False):
        raise SparseCRFError(Errors.SC347.format(solver=type(solver).__name__))


def evaluate(loss: Function, penalty: ElasticNet, theta: Floats) -> tuple[float, Floats]:
    """The objective, and the gradient of its smooth part, loss + l2."""
    value, gradient = loss.value_and_grad(theta)
    return value + penalty.value(theta), gradient + penalty.slope(theta)


def smallest_subgradient(penalty: ElasticNet, theta: Floats, gradient: Floats) -> Floats:
    """The pseudo-gradient of the objective [K]; gradient: [K] of loss + l2 (see `evaluate`)."""
    return penalty.pseudo_gradient(theta, gradient - penalty.slope(theta))


def optimality(penalty: ElasticNet, theta: Floats, gradient: Floats) -> float:
    """Largest distance of a coordinate of -gradient to the subdifferential; 0 at a minimiser."""
    return float(np.abs(smallest_subgradient(penalty, theta, gradient)).max(initial=0.0))


def evaluate_start(loss: Loss, penalty: ElasticNet, theta: Floats) -> tuple[float, Floats]:
    """`evaluate` at the first point.

    RAISES: SparseCRFError where the objective or its gradient is not finite there.
    """
    value, gradient = evaluate(loss, penalty, theta)
    # Of huge weights the objective may be finite alone.
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise SparseCRFError(Errors.SC307)
    return value, gradient


def evaluate_pass(
    loss: Function, penalty: ElasticNet, theta: Floats, solver: BatchSettings
) -> tuple[float, Floats]:
    """`evaluate` after a pass of a stochastic solver.

    RAISES: SparseCRFError where weights or objective are not finite.
    """
    if np.isfinite(theta).all():
        value, gradient = evaluate(loss, penalty, theta)
        if np.isfinite(value):
            return value, gradient
    raise SparseCRFError(Errors.SC338.format(solver=type(solver).__name__))


def take(array: Floats, source: NDArray[np.int64]) -> Floats:
    """Select along the last axis, 0 where source is -1."""
    taken = np.zeros((*array.shape[:-1], len(source)))
    taken[..., source >= 0] = array[..., source[source >= 0]]
    return taken


def fields_of(state: Any) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {field.name: getattr(state, field.name) for field in fields(state)}
