"""Interface of solvers: settings, state, requirements of a problem, and step reports.

A solver minimises F(theta) = l(theta) + l1 |theta|_1 + l2 / 2 |theta|^2, l being the loss of a
corpus (Lavergne 2010, equation 6); `requires` lists its requirements, such as l1 = 0. Unless its
file gives another rule, it has converged when no coordinate of -gradient is farther than
`tolerance` from the subdifferential of the penalty. A run also ends when outer iterations no longer
lower F by the fraction `window`.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import Errors, SparseCRFError
from ..corpus.numbering import Floats, Longs
from ..loss.protocols import Function, WorkingLoss
from ..penalty import ElasticNet
from .warm_start import WarmStart

# What a solver needs of a loss: a `WorkingLoss`, an `ExampleLoss` or the loss of a chain.
LossT = TypeVar("LossT", bound=WorkingLoss)

# The penalty from which on the tolerance does not depend on it.
_FULL_PENALTY = 0.1
# Ends of a run, see `StepReport`.
CONVERGED, IDLE = "converged", "no longer improves"


# Requirements of a solver on a problem: no l1 penalty; an l2 penalty; sequences of one token, as in
# per-position models; log Z over all sequences, valid or not (see `ChainLoss`); features that are 0
# or 1; a loss laid out to visit examples one by one; a corpus that is not partitioned; a penalty
# centred on zero, not on a prior.
Need = Literal[
    "no l1",
    "l2",
    "no l2",
    "single tokens",
    "all sequences",
    "indicators",
    "complete labels",
    "examples",
    "whole corpus",
    "no prior",
]


def requirements(*names: Need) -> frozenset[Need]:
    """Return a set of requirements."""
    return frozenset(names)


@dataclass(frozen=True)
class StepReport:
    """The result of one step.

    Attributes
    ----------
    objective : float
        Loss plus penalty.
    optimality : float
        Largest distance of a coordinate of -gradient to the penalty's subdifferential; 0 at a
        minimiser.
    n_active : int
        Number of non-zero weights.
    passes : float
        Evaluations of a sequence divided by the number of sequences, in this step (Schmidt
        2015).
    converged : bool
        Whether the weights are at the minimum, by the rule of the solver.
    gap : float
        Bound on the objective minus its minimum (see `ElasticNet.gap`); infinite where none is
        known.
    bound : float
        Lower bound of the minimum that the solver raises; minus infinity if it has none.
    end : str
        How the run has ended: CONVERGED, or IDLE if it no longer improves; "" if it has not ended.

    Examples
    --------
    >>> StepReport(50.0, 1e-4, 120, 10.0, converged=True, gap=0.1, end=CONVERGED).outcome
    'converged, at most 0.2 % above the minimum'
    """

    objective: float
    optimality: float
    n_active: int
    passes: float
    converged: bool
    gap: float = math.inf
    bound: float = -math.inf
    end: str = ""

    @property
    def outcome(self) -> str:
        """The end of the run with the bound in percent, for messages."""
        if not math.isfinite(self.gap):
            return self.end
        above = 100.0 * self.gap / max(abs(self.objective), 1e-300)
        return f"{self.end}, at most {above:.2g} % above the minimum"


@dataclass(frozen=True)
class EvaluatedPoint:
    """A point, the objective there and the gradient of its smooth part.

    theta, gradient: [K] float64.
    """

    theta: Floats
    value: float
    gradient: Floats


@dataclass
class SolverState:
    """The state of a solver: arrays and scalars only, so that a resumed run is bit-identical.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective.
    """

    theta: Floats
    gradient: Floats
    value: float


@dataclass(kw_only=True, eq=False)
class BatchSolver(Generic[LossT]):
    """Base class of solvers that use the whole corpus, with the settings that all solvers share.

    A subclass is a dataclass, whose fields are additional settings. It implements `step`.

    Parameters
    ----------
    tolerance : float, default 1e-3
        Stop when no coordinate of -gradient is farther than this from the subdifferential, in
        expected counts; smaller in proportion to l1 if l1 < 0.1, or without l1 to l2.
    tolerance_gap : float, default 0.0
        Stop when the objective is at most this fraction above its minimum, by the duality
        bound (see `StepReport`); 0 for never.
    window : float, default 1e-5
        Stop when outer iterations lower the best objective by less than this fraction. An
        exact solver has then converged, if they do not raise it either.
    inner_iterations : int, default 10
        Iterations of the solver in one outer iteration (one `update`).
    later_iterations : int, default 0
        Iterations of the solver in each later outer iteration; 0 for as many.

    Attributes
    ----------
    seed : int
        Seed of random orders, at least 0; a setting of solvers that have any.
    requires : frozenset of str
        Requirements of the solver, checked before training, see `requirements`.
    exact : bool
        Whether the solver converges to the minimiser.
    linear_rate : bool
        Whether it may stand still far above the minimum.
    own_rule : bool
        Whether the rule of the solver's file replaces `window`.
    warm_start : WarmStart
        The default warm start, if l1 > 0.
    state_type : type
        Class of the state, derived from `SolverState`.

    Raises
    ------
    SparseCRFError
        If a setting is out of range.

    Examples
    --------
    >>> @dataclass(kw_only=True, eq=False)
    ... class Still(BatchSolver):
    ...     def step(self, loss, penalty, state):
    ...         return self.report(penalty, state, stalled=True)
    >>> Still(inner_iterations=1).tolerance_at(ElasticNet(l1=0.01, l2=1.0))
    0.0001
    """

    tolerance: float = 1e-3
    tolerance_gap: float = 0.0
    window: float = 1e-5
    inner_iterations: int = 10
    later_iterations: int = 0
    seed: int = field(default=0, init=False)

    state_type: ClassVar[type[Any]] = SolverState
    requires = requirements("indicators")
    exact = True
    linear_rate = False
    own_rule = False
    warm_start: ClassVar[WarmStart] = WarmStart(epochs=0, averaged=False)

    def __post_init__(self) -> None:
        self.require(1, "inner_iterations")
        self.require(0, "tolerance", "tolerance_gap", "window", "seed", "later_iterations")

    def require(self, low: float, *keys: str) -> None:
        """Check that settings are numbers, and at least `low`.

        Parameters
        ----------
        low : float
            The smallest value.
        *keys : str
            Names of the settings.

        Raises
        ------
        SparseCRFError
            If a setting is smaller.
        """
        for key in keys:
            value = getattr(self, key)
            if not value >= low:
                raise SparseCRFError(Errors.SC306.format(key=key, value=value, low=low))

    def require_one_of(self, key: str, known: Collection[str]) -> None:
        """Check that a setting is one of the known ones.

        Parameters
        ----------
        key : str
            Name of the setting.
        known : collection of str
            The known values.

        Raises
        ------
        SparseCRFError
            If the setting has another value.
        """
        if (value := getattr(self, key)) not in known:
            names = ", ".join(map(repr, known))
            raise SparseCRFError(Errors.SC325.format(key=key, value=value, known=names))

    def idle(self, penalty: ElasticNet) -> dict[str, str]:
        """Return settings that have no effect with a penalty.

        Parameters
        ----------
        penalty : ElasticNet
            The penalty.

        Returns
        -------
        dict of str to str
            The reason by name of the setting.
        """
        return {} if penalty.l2 > 0.0 else {"tolerance_gap": "there is no bound where l2 = 0"}

    def tolerance_at(self, penalty: ElasticNet) -> float:
        """Return the tolerance at a penalty.

        A small l1, or a small l2 without l1, is small compared with gradients, too.

        Parameters
        ----------
        penalty : ElasticNet
            The penalty.

        Returns
        -------
        float
            The tolerance.
        """
        scale = (penalty.l1 or penalty.l2 or _FULL_PENALTY) / _FULL_PENALTY
        return self.tolerance * min(1.0, scale)

    @property
    def columns(self) -> dict[str, float]:
        """Names of the state's arrays [K], and the values of a new weight in them."""
        return {"theta": 0.0}

    def start(self, loss: LossT, penalty: ElasticNet, theta: Floats) -> SolverState:
        """Evaluate the first point, and return the state there.

        Arrays of the state begin with the values of new weights (see `columns`).

        Parameters
        ----------
        loss : WorkingLoss
            The loss on K weights.
        penalty : ElasticNet
            The penalty.
        theta : array [K] float64
            The first point.

        Returns
        -------
        SolverState
            The state.

        Raises
        ------
        SparseCRFError
            If the objective or its gradient is not finite there.
        """
        value, gradient = evaluate_start(loss, penalty, theta)
        columns: dict[str, Any] = {
            name: np.full(len(theta), number) for name, number in self.columns.items()
        }
        columns["theta"] = theta
        state: SolverState = self.state_type(**columns, gradient=gradient, value=value)
        return state

    def step(self, loss: LossT, penalty: ElasticNet, state: Any) -> StepReport:
        """Do one iteration, in place.

        Parameters
        ----------
        loss : WorkingLoss
            The loss on K weights.
        penalty : ElasticNet
            The penalty.
        state : SolverState
            The state, which changes.

        Returns
        -------
        StepReport
            The result of the step, from `report`.

        Raises
        ------
        SparseCRFError
            If a stochastic solver diverges.
        """
        raise NotImplementedError

    def check_state(self, loss: LossT, penalty: ElasticNet, state: Any) -> None:
        """Check that a state of a file fits a loss; by default, that it is as `start` makes it.

        Parameters
        ----------
        loss : WorkingLoss
            The loss on K weights.
        penalty : ElasticNet
            The penalty.
        state : SolverState
            The state.

        Raises
        ------
        ValueError
            If an array has another shape or dtype, or is not finite.
        """
        check_alike(state, self.start(loss, penalty, np.zeros(len(loss.coordinates))))

    def remap(
        self, loss: LossT, penalty: ElasticNet, state: Any, source: Longs, gradient: Floats
    ) -> SolverState:
        """Move a state to another working set, at the same point, which was evaluated last.

        Parameters
        ----------
        loss : WorkingLoss
            The loss on the new working set of K' weights.
        penalty : ElasticNet
            The penalty.
        state : SolverState
            The state on the old working set.
        source : array [K'] int64
            For each new coordinate its index in the old state, or -1 for a new weight, which is
            zero.
        gradient : array [K'] float64
            Gradient of loss + l2 at the point.

        Returns
        -------
        SolverState
            The state on the new working set.
        """
        columns = {
            name: take(getattr(state, name), source, new) for name, new in self.columns.items()
        }
        moved: SolverState = replace(state, gradient=gradient, **columns)
        return moved

    def report(
        self, penalty: ElasticNet, state: Any, passes: float = 1.0, stalled: bool = False
    ) -> StepReport:
        """Return the report of a step.

        Parameters
        ----------
        penalty : ElasticNet
            The penalty.
        state : SolverState
            The state after the step.
        passes : float, default 1.0
            Evaluations of a sequence divided by the number of sequences.
        stalled : bool, default False
            Whether no step would lower the objective.

        Returns
        -------
        StepReport
            The report.
        """
        return StepReport(
            objective=state.value,
            optimality=(distance := optimality(penalty, state.theta, state.gradient)),
            n_active=int(np.count_nonzero(state.theta)),
            passes=float(passes),
            converged=stalled or distance <= self.tolerance_at(penalty),
        )

    def shuffled(self, examples: Longs, epoch: int) -> Longs:
        """Return examples in the random order of an epoch.

        Parameters
        ----------
        examples : array [n] int64
            Numbers of examples.
        epoch : int
            Number of the epoch.

        Returns
        -------
        array
            [n] int64, the same numbers.
        """
        return np.random.default_rng([self.seed, epoch]).permutation(examples)


def evaluate(loss: Function, penalty: ElasticNet, theta: Floats) -> tuple[float, Floats]:
    """Return the objective, and the gradient of its smooth part, loss + l2.

    If weights are so large that the gradient is not finite, the objective is infinite.
    """
    value, gradient = loss.value_and_grad(theta)
    if not np.isfinite(gradient).all():
        value = np.inf
    return value + penalty.value(theta), gradient + penalty.slope(theta)


def smallest_subgradient(penalty: ElasticNet, theta: Floats, gradient: Floats) -> Floats:
    """Return the pseudo-gradient of the objective [K]; gradient: [K], see `evaluate`."""
    if penalty.l1 == 0.0:
        return gradient
    return penalty.pseudo_gradient(theta, gradient - penalty.slope(theta))


def optimality(penalty: ElasticNet, theta: Floats, gradient: Floats) -> float:
    """Return the largest distance of a coordinate of -gradient to the subdifferential."""
    return float(np.abs(smallest_subgradient(penalty, theta, gradient)).max(initial=0.0))


def evaluate_start(loss: Function, penalty: ElasticNet, theta: Floats) -> tuple[float, Floats]:
    """Return `evaluate` at the first point.

    RAISES: SparseCRFError if the objective or its gradient is not finite there.
    """
    value, gradient = evaluate(loss, penalty, theta)
    # With huge weights the objective may be finite although its gradient is not.
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise SparseCRFError(Errors.SC307)
    return value, gradient


def check_alike(state: Any, like: Any) -> None:
    """Check that the values of a state have shapes and types of another one, and are as finite.

    RAISES: ValueError with the name of a value.
    """
    for name, expected in vars(like).items():
        value, form = np.asarray(getattr(state, name)), np.asarray(expected)
        # Scalars of Python and of NumPy may differ in precision.
        same_type = value.dtype == form.dtype if form.ndim else value.dtype.kind == form.dtype.kind
        if not same_type or value.shape != form.shape:
            raise ValueError(
                f"{name} is {value.dtype} {value.shape}, not {form.dtype} {form.shape}"
            )
        if form.ndim and np.isfinite(form).all() and not np.isfinite(value).all():
            raise ValueError(f"{name} is not finite")


def take(array: NDArray[np.floating], source: Longs, new: float = 0.0) -> Any:
    """Select along the last axis, in the same dtype; new: the value where source is -1."""
    taken = np.full((*array.shape[:-1], len(source)), new, array.dtype)
    if array.size:
        # In this mode there is no buffer.
        np.take(array, source, axis=-1, out=taken, mode="wrap")
        taken[..., source < 0] = new
    return taken
