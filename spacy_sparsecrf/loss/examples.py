"""The chain loss an example at a time: what stochastic solvers take of a working loss."""

import numpy as np

from ..kernels.descent import Paid, add_gradients
from ..kernels.hessian import Turn
from ..kernels.layout import Tangents, Vectors, Visit
from ..kernels.minibatch import add_gradient_and_product
from .lattice import Floats, Longs, Mask
from .working import WorkingLoss


def new_visit(working: WorkingLoss) -> Visit:
    """Workspaces of visits to any sequence of the corpus, in float64."""
    space, pairs = working.space, working.pairs
    longest = int(np.diff(space.lattice.offsets).max())
    arrays = pairs.new_arrays()
    most_entries = int(np.diff(pairs.contexts.arrays.ent_ptr).max(initial=0))
    matrix = arrays.potentials.psi.shape[1:]

    def new_vectors() -> Vectors:
        alpha, backward, marginals = (np.zeros((longest, space.padded)) for _ in range(3))
        scales, norms = np.zeros(longest), np.zeros(longest)
        return Vectors(alpha, backward, marginals, scales, norms, np.zeros(matrix))

    tokens, sums = np.arange(longest, dtype=np.int32), np.zeros(most_entries)
    return Visit(arrays, new_vectors(), new_vectors(), tokens, sums, np.zeros(matrix))


class Examples:
    """The examples of a working loss, and what kernels take to visit them.

    working: the loss on the weights to learn, [K], laid out for a stochastic solver. An *example*
    is a sequence with gold labels, or one with missing labels and its constrained copy.
    sequences: [S] int64, those that are examples; complete: [S] bool, whether all gold labels are
    known; tables: the corpus and the weights; visit: workspaces, which a pass writes to and which
    mean nothing between passes; split: how many unigram weights there are.
    """

    def __init__(self, working: WorkingLoss) -> None:
        lattice = working.space.lattice
        self.sequences: Longs = np.arange(lattice.n_examples)
        self.complete: Mask = lattice.copies[: lattice.n_examples] < 0
        self.tables = working.tables
        self.visit = new_visit(working)
        self.split = working.split
        self._n_calls = 0

    def gradients(self, gradient: Floats) -> tuple[Paid, Paid]:
        """Sums of gradients [K], as kernels take them: weights on which nothing is due."""
        nothing, no_dues = np.zeros(len(gradient) + 1), np.zeros(2)
        split = self.split
        unigram = Paid(gradient[:split], nothing[:split], nothing, no_dues)
        n_bigram = len(gradient) - split
        return unigram, Paid(gradient[split:], nothing[:n_bigram], nothing, no_dues)

    def add(self, members: Longs, theta: Floats, gradient: Floats) -> float:
        """Add the weighted gradients of examples.

        members: [b] int64; theta: [K]; gradient: [K], added to.
        RETURNS: the weighted sum of their losses.
        """
        self._n_calls += 1
        call = members, self._n_calls, self.tables, theta
        return float(add_gradients(*call, *self.gradients(gradient), self.visit))


class CurvedExamples(Examples):
    """Examples of which also the Hessian is evaluated, times a vector."""

    def __init__(self, working: WorkingLoss) -> None:
        super().__init__(working)
        shape = self.visit.vectors.alpha.shape
        tangents = [Tangents(*(np.zeros(shape) for _ in range(4))) for _ in range(2)]
        self._turn = Turn(working.pairs.new_slopes(np.float64), *tangents)

    def add_product(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add the gradient of examples, and their Hessian times direction, at theta.

        members: [b] int64; theta, direction: [K]; gradient, product: [K], added to.
        RETURNS: the weighted sum of the examples' losses.
        """
        self._n_calls += 1
        call = members, self._n_calls, self.tables, theta, direction, self.gradients(gradient)
        return float(add_gradient_and_product(*call, product, self.visit, self._turn))


class Sample:
    """The loss of some of N examples as a function of the weights, scaled up to all of them.

    examples; members: [b] int64.
    scale: N / b.
    """

    def __init__(self, examples: Examples, members: Longs) -> None:
        self._examples = examples
        self._members = members
        self.scale = len(examples.sequences) / len(members)

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The value, and the gradient [K], at theta [K]."""
        gradient = np.zeros_like(theta)
        value = self._examples.add(self._members, theta, gradient)
        return self.scale * value, self.scale * gradient
