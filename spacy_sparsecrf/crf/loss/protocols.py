"""The protocols of losses: all potential weights of a corpus, and a working set of them.

A `Loss` is of all potential weights, which are too many for arrays: it restricts itself to a
working set, and screens the others. Its options are wrappers around it, see `loss.wrappers`.
Solvers see a `WorkingLoss`, or an `ExampleLoss` if they visit single examples.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from ..corpus.coordinates import NO_COORDINATES, Weights
from ..corpus.numbering import Array, Floats, Longs, Mask
from ..penalty import ElasticNet

if TYPE_CHECKING:
    from ..kernels.minibatch import StepRule
    from ..parallel import Workers
    from .size import Size

Which = Literal["all", "observed", "descent"]


class Violators(NamedTuple):
    """Weights whose gradient exceeds a threshold in magnitude.

    coordinates: [n] int64, ascending; gradients: [n] float64; squared_excess: sum of the squared
    excesses over the threshold, including violators dropped by a limit.
    """

    coordinates: Longs
    gradients: Floats
    squared_excess: float


class Function(Protocol):
    """A smooth function of K weights, [K]."""

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value, and the gradient [K] float64, at theta [K] float64."""
        ...


class HessianProducts(Protocol):
    """Products of the Hessian of a loss with vectors."""

    @property
    def passes(self) -> float:
        """Number of evaluations and products so far."""
        ...

    def prepare(self, theta: Floats, *, evaluated: bool = False) -> None:
        """Set the point theta [K]; evaluated: whether the last evaluation was there."""
        ...

    def product(self, vector: Floats) -> Floats:
        """Return H v [K] of a vector [K] float64."""
        ...


class WorkingLoss(Function, Protocol):
    """The loss as a function of K weights, all others being zero.

    coordinates: [K] int64, ascending.
    """

    coordinates: Longs

    def curvature(self, gradient: Floats) -> Floats:
        """Approximate the diagonal of the Hessian, [K], at the point that was evaluated last.

        gradient: [K], of the loss at that point.
        """
        ...


class CurvedLoss(WorkingLoss, Protocol):
    """A working loss with products of its Hessian."""

    def products(self, stored: int = -1) -> HessianProducts:
        """Return products of the Hessian; stored: see `hessian.HessianProduct`."""
        ...


@runtime_checkable
class ExampleLoss(WorkingLoss, Protocol):
    """A working loss that is a sum over examples, laid out to visit them one by one.

    sequences: [S] int64, the examples; complete: [S] bool, whether all gold labels are known;
    workers: threads.
    """

    sequences: Longs
    complete: Mask
    workers: "Workers"

    @property
    def sizes(self) -> Longs:
        """Tokens of each example, or 1, [S]."""
        ...

    def add(self, members: Longs, theta: Floats, gradient: Floats) -> float:
        """Add the weighted gradients of examples.

        members: [b] int64; theta: [K]; gradient: [K], added to.
        RETURNS: the weighted sum of their losses.
        """
        ...

    def add_product(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add the gradient of examples and the product of their Hessian with a direction, at theta.

        members: [b] int64; theta, direction: [K]; gradient, product: [K], added to.
        RETURNS: the weighted sum of the examples' losses.
        """
        ...

    def descend_in_batches(
        self,
        order: Longs,
        *,
        batch: int,
        etas: Floats,
        rule: "StepRule",
        theta: Floats,
        extra: Floats,
    ) -> float:
        """Pass over examples once; see `MinibatchDescent.run`."""
        ...

    def views(self, n: int) -> Sequence["ExampleLoss"]:
        """Return views of the loss that run in parallel, up to n if there are many examples."""
        ...


class Loss(Protocol):
    """The loss of a corpus, of all potential weights.

    n_potential: number of potential weights; n_sequences: of the corpus; is_convex: whether the
    loss is; has_examples: whether it has an `ExampleLoss`; required: [n] int64, coordinates that
    every working set contains.
    """

    n_potential: int
    n_sequences: int
    is_convex: bool
    has_examples: bool = True
    required: Longs = NO_COORDINATES

    @property
    def n_coordinates(self) -> int:
        """The number that all coordinates are below."""
        return self.n_potential

    @property
    def arrays(self) -> list[Array]:
        """Arrays that identify the corpus, except for the names of its features."""
        ...

    def restrict(self, coordinates: Longs) -> WorkingLoss:
        """Return the loss on a working set [K], ascending; all other weights are zero."""
        ...

    def by_example(self, coordinates: Longs, origin: Floats | None = None) -> ExampleLoss:
        """Return the loss on a working set [K], to visit single examples.

        origin: [K] float64, weights to which those of solvers are added, None = 0.
        """
        ...

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """Find the potential weights whose loss gradient exceeds a threshold in magnitude.

        working, theta: point of the gradient; limit: maximum number of violators; the largest in
        magnitude are kept (ties: the lower coordinate).
        """
        ...

    def coordinates(self, which: Which, known: Longs = NO_COORDINATES) -> Longs:
        """Return coordinates, ascending.

        which: "all": potential weights, for problems without l1, whose solution is dense;
            "observed": features with gold labels (or pairs) of their tokens; "descent": the working
            set of stochastic descent, see `chain.ChainLoss.coordinates`.
        known: [n] int64, coordinates that also count as observed.
        """
        ...

    def first_weights(
        self, start: "Callable[[Loss, ElasticNet], Weights]", penalty: ElasticNet
    ) -> Weights:
        """Return the weights of a warm start, where the examples are."""
        return start(self, penalty)

    def size(self, l1: float, history: int = 0, n_potential: int | None = None) -> "Size":
        """Estimate the size of the problem, before its large arrays take memory.

        l1: if 0, the working set is complete; history: pairs of vectors that the solver stores;
        n_potential: number of weights that may be non-zero, None = all.
        """
        ...

    def forget(self) -> None:
        """Forget the last point and what depends on it before another working set is laid out."""
        return

    def rest(self) -> None:
        """Free the vectors and residuals of tokens; the next evaluation writes them again."""
        return

    def close(self) -> None:
        """End threads or release workers; another evaluation by threads starts new ones."""
        ...
