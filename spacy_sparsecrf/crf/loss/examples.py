"""Losses as sums over examples: gradients of some examples, and stochastic passes over them."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.coordinates import Coordinates
from ..corpus.numbering import Floats, Longs, Mask
from ..corpus.ragged import row_numbers
from ..kernels import minibatch
from ..kernels.example_gradients import add_gradients
from ..kernels.hessian import TangentWorkspace
from ..kernels.layout import Csr, SequenceWorkspace, Tangents, Vectors
from ..kernels.minibatch import Moving, StepRule, Visited
from ..penalty import ElasticNet
from .context_layout import SequentialCostModel
from .feature_blocks import FeatureBlocks, by_site
from .protocols import ExampleLoss
from .working import ChainWorkingLoss
from .workspace import Workspace

# Tokens from which on a sequence is long: its gradient is a sum over tokens, so that a step that
# suits others would overshoot.
LONG = 2000
# Tokens of a sample; and examples from which on a corpus is divided into parts.
_SAMPLED, _WORTH_PARTS = 10_000, 1000


class DenseSteps(ExampleLoss):
    """Base class of losses whose passes step on all weights after each minibatch."""

    @cached_property
    def sizes(self) -> Longs:
        """Tokens of each example, or 1, [S]."""
        return np.ones(len(self.sequences), np.int64)

    def views(self, n: int) -> Sequence[ExampleLoss]:
        """Return views of the loss; see `ExampleLoss.views`."""
        return [self]

    def descend_in_batches(
        self,
        order: Longs,
        *,
        batch: int,
        etas: Floats,
        rule: StepRule,
        theta: Floats,
        extra: Floats,
    ) -> float:
        """Pass over examples once; see `MinibatchDescent.run`."""
        gradient, loss = np.zeros_like(theta), 0.0
        for number, eta in enumerate(etas):
            members = order[number * batch : (number + 1) * batch]
            loss += self.add(members, theta, gradient)
            moving = Moving(rule, eta, gradient=gradient, theta=theta, extra=extra)
            minibatch.step_all(number, moving)
        return loss


def new_workspace(working: ChainWorkingLoss) -> SequenceWorkspace:
    """Allocate workspaces for any sequence of the corpus, in float64."""
    space, pairs = working.space, working.pairs
    longest = int(np.diff(space.lattice.offsets).max())
    arrays = pairs.new_arrays()
    most_entries = int(np.diff(pairs.contexts.arrays.corr_ptr).max(initial=0))
    matrix = arrays.potentials.psi.shape[1:]

    def new_vectors() -> Vectors:
        return Vectors(
            alpha=np.zeros((longest, space.padded)),
            backward=np.zeros((longest, space.padded)),
            marginals=np.zeros((longest, space.padded)),
            scales=np.zeros(longest),
            norms=np.zeros(longest),
            scratch=np.zeros(matrix),
        )

    return SequenceWorkspace(
        pairs=arrays,
        vectors=new_vectors(),
        clamped=new_vectors(),
        tokens=np.arange(longest, dtype=np.int32),
        correction_sums=np.zeros(most_entries),
        pair_sums=np.zeros(matrix),
    )


class _Scratch:
    """Memory that the passes of one thread write to, apart from weights; no part of any state.

    work: of one sequence; gradient: [K], of a minibatch, zeros between passes; n_calls: numbers the
    points at which potentials are evaluated.
    """

    def __init__(self, working: ChainWorkingLoss) -> None:
        self.work = new_workspace(working)
        self._pairs, self._table = working.pairs, working.table
        self._n_weights, self.n_calls = len(working.coordinates), 0

    def number(self) -> int:
        """Return the number of another point."""
        self.n_calls += 1
        return self.n_calls

    @cached_property
    def gradient(self) -> Floats:
        """Gradient of a minibatch, [K]; zeros between passes."""
        return np.zeros(self._n_weights)

    @cached_property
    def changes(self) -> TangentWorkspace:
        """Workspaces of Hessian-vector products."""
        shape = self.work.vectors.alpha.shape
        tangents, clamped = (Tangents(*(np.zeros(shape) for _ in range(4))) for _ in range(2))
        return TangentWorkspace(
            slopes=self._pairs.new_slopes(np.float64),
            tangents=tangents,
            clamped=clamped,
            table=np.zeros_like(self._table),
            counts=np.zeros_like(self.work.pair_sums),
            correction_counts=np.zeros_like(self.work.correction_sums),
        )


class ChainExampleLoss(ChainWorkingLoss, ExampleLoss):
    """The chain loss laid out to visit single sequences; see `ExampleLoss`.

    An *example* is a sequence with gold labels, or a sequence with missing labels and its clamped
    lattice. All unigram blocks are those of tokens: weights change too often for bundles.

    workspace, coordinates, coding: see `ChainWorkingLoss`; origin: [K] float64 w0, None = 0:
    solvers optimise v, and the weights of the model are w0 + v. Kernels add w0 for each token.
    """

    cost_model = SequentialCostModel

    def __init__(
        self,
        workspace: Workspace,
        coordinates: Longs,
        coding: Coordinates,
        origin: Floats | None = None,
    ) -> None:
        super().__init__(workspace, coordinates, coding)
        lattice = workspace.lattice
        self.site_blocks = lattice.by_token(self.site_blocks)
        self._origin = origin
        of_unigrams = np.zeros(self.split) if origin is None else origin[: self.split]
        self._bundles, self.table = _origin_of_tokens(workspace, self.unigram, of_unigrams)
        if origin is not None:
            self.pairs.bigrams = self.pairs.bigrams._replace(origin=origin[self.split :])
        self.sequences: Longs = np.arange(lattice.n_examples)
        self.complete: Mask = lattice.clamped[: lattice.n_examples] < 0
        self.workers = workspace.workers

    def model_weights(self, theta: Floats) -> Floats:
        """Return the weights of the model [K] for weights theta [K] of a solver."""
        return theta if self._origin is None else theta + self._origin

    def score_bundles(self, theta: Floats, table: NDArray[np.floating]) -> None:
        """Leave the table, which contains the origin, as it is."""

    @cached_property
    def _scratch(self) -> _Scratch:
        return _Scratch(self)

    @cached_property
    def _weights_of(self) -> Longs:
        """First weight of each feature block, bigram blocks last, and the end."""
        return np.concatenate((self.unigram.ptr[:-1], self.split + self.bigram.ptr))

    @cached_property
    def sizes(self) -> Longs:
        """Tokens of each example, [S]."""
        return np.diff(self.tables.sequences.offsets)[: len(self.sequences)]

    def views(self, n: int) -> Sequence[ExampleLoss]:
        """Return views of the loss, n of a large corpus; see `ExampleLoss.views`."""
        n_views = n if len(self.sequences) >= _WORTH_PARTS else 1
        return [self, *(copy(self) for _ in range(n_views - 1))]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which writes to its own scratch."""
        return {name: value for name, value in vars(self).items() if name != "_scratch"}

    def add(self, members: Longs, theta: Floats, gradient: Floats) -> float:
        """Add the weighted gradients of examples; see `ExampleLoss.add`."""
        scratch = self._scratch
        loss = add_gradients(
            members,
            number=scratch.number(),
            tables=self.tables,
            theta=theta,
            gradient=gradient,
            work=scratch.work,
        )
        return float(loss)

    def add_product(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add gradients and Hessian-vector products; see `ExampleLoss.add_product`."""
        scratch = self._scratch
        loss = minibatch.add_gradient_and_product(
            members,
            number=scratch.number(),
            tables=self.tables,
            theta=theta,
            direction=direction,
            gradient=gradient,
            product=product,
            work=scratch.work,
            changes=scratch.changes,
        )
        return float(loss)

    def descend_in_batches(
        self,
        order: Longs,
        *,
        batch: int,
        etas: Floats,
        rule: StepRule,
        theta: Floats,
        extra: Floats,
    ) -> float:
        """Pass over examples once; see `ExampleLoss.descend_in_batches`."""
        scratch = self._scratch
        # A pass numbers its minibatches from 0.
        scratch.n_calls += len(order)
        blocks = Visited(self._weights_of, np.zeros(len(self._weights_of) - 1, np.int64))
        loss = minibatch.minibatch_pass(
            order,
            batch=batch,
            etas=etas,
            rule=rule,
            tables=self.tables,
            blocks=blocks,
            theta=theta,
            extra=extra,
            gradient=scratch.gradient,
            work=scratch.work,
        )
        moving = Moving(rule, etas[-1], gradient=scratch.gradient, theta=theta, extra=extra)
        minibatch.finish_pass(len(etas), blocks, moving)
        return float(loss)


def _origin_of_tokens(
    space: Workspace, rows: FeatureBlocks, origin: Floats
) -> tuple[Csr, NDArray[np.floating]]:
    """Return the features of tokens where the origin of the weights is not zero, and the origin.

    Solvers do not change it. rows: unigram feature blocks; origin: [split] float64.
    RETURNS: such features of each token; their weights, [features, Yp], in the precision of the
        workspace.
    """
    row, is_set = row_numbers(rows.ptr), origin != 0.0
    blocks, row_of_block = np.unique(row[is_set], return_inverse=True)
    table = np.zeros((len(blocks), space.padded), space.dtype)
    table[row_of_block, rows.places[is_set]] = origin[is_set]
    return space.lattice.by_token(by_site(space, rows.features[blocks])), table


class Sample:
    """The loss on a sample of N examples as a function of the weights, scaled up to N.

    examples: all N examples; members: [b] int64, the sample.
    scale: N / b.
    """

    def __init__(self, examples: ExampleLoss, members: Longs) -> None:
        self._examples = examples
        self._members = members
        self.scale = len(examples.sequences) / len(members)

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value, and the gradient [K], at theta [K]."""
        gradient = np.zeros_like(theta)
        value = self._examples.add(self._members, theta, gradient)
        return self.scale * value, self.scale * gradient


@dataclass(eq=False)
class MinibatchDescent:
    """SGD, SGD-L1 or AdaGrad, a minibatch of examples at a time.

    examples: the loss on the working set [K]; penalty: each minibatch applies an equal share;
    batch: examples per minibatch; rule: see `kernels.minibatch`; theta: [K] float64, weights, in
    and out; extra: [K] float64, in and out, the rule's state, see `kernels.minibatch.Moving`;
    delta: the constant of AdaGrad; due: the l1 rate of SGD-L1 cumulated so far; missing: whether to
    include examples with missing gold labels.
    sequences: [n] int64, the examples; share: the penalty of a minibatch.
    """

    examples: ExampleLoss
    penalty: ElasticNet
    batch: int
    rule: int
    theta: Floats
    extra: Floats
    delta: float = 1.0
    due: float = 0.0
    missing: bool = True

    def __post_init__(self) -> None:
        self.sequences: Longs = self.examples.sequences[self.examples.complete | self.missing]
        share = 1.0 / max(1, -(-len(self.sequences) // self.batch))
        self.share = ElasticNet(share * self.penalty.l1, share * self.penalty.l2)

    def visited_before(self, order: Longs) -> Longs:
        """Return the number of examples before each minibatch of an order [n]."""
        return np.arange(0, len(order), self.batch)

    def run(self, order: Longs, etas: Floats, averaging: bool = False) -> float:
        """Pass over examples once.

        order: [n] int64; etas: step size of each minibatch, which long sequences reduce; averaging:
        whether SGD sums its iterates.
        RETURNS: the weighted sum of the losses of the examples, each before its step.
        """
        if len(order) == 0:
            return 0.0
        # In inverse proportion to the length of long sequences.
        shares = np.minimum(1.0, LONG / self.examples.sizes[order])
        etas = etas * np.minimum.reduceat(shares, self.visited_before(order))
        l1, l2 = self.share.l1, self.share.l2
        shrinkage, cumulated = np.zeros(len(etas) + 1), np.zeros(len(etas) + 1)
        if self.rule == minibatch.SGD_L1:
            rates = np.cumsum(etas)
            shrinkage[1:], cumulated[1:] = l2 * rates, self.due + l1 * rates
            self.due = float(cumulated[-1])
        else:
            minibatch.sum_shrinkage(etas, l2, averaging, shrinkage=shrinkage, cumulated=cumulated)
        rule = StepRule(
            self.rule,
            self.delta,
            l1=l1,
            l2=l2,
            shrinkage=shrinkage,
            cumulated=cumulated,
            averaging=averaging,
        )
        return self.examples.descend_in_batches(
            order, batch=self.batch, etas=etas, rule=rule, theta=self.theta, extra=self.extra
        )

    def sample(self, order: Longs) -> Longs:
        """Return the first examples of an order [n], up to a number of tokens."""
        ends = np.cumsum(self.examples.sizes[order])
        return order[: 1 + int(np.searchsorted(ends, _SAMPLED))]

    def loss_after(self, sample: Longs, eta: float) -> float:
        """Return the loss of a sample [n] int64 after a pass over it; the pass is undone."""
        trial, _ = self._tried(sample, eta)
        return self.examples.add(sample, trial.theta, np.zeros_like(self.theta))

    def loss_of_unseen(self, sample: Longs, eta: float) -> float:
        """Return the loss of a sample [n] int64 in a pass, each example's before its step.

        The pass is undone (progressive validation, Blum, Kalai & Langford 1999).
        """
        return self._tried(sample, eta)[1]

    def _tried(self, sample: Longs, eta: float) -> tuple["MinibatchDescent", float]:
        """Return a descent after a pass over a sample, and the loss that `run` returns."""
        trial = replace(self, theta=self.theta.copy(), extra=self.extra.copy())
        return trial, trial.run(sample, np.full(len(self.visited_before(sample)), eta))


def run_parts(descents: Sequence[MinibatchDescent], order: Longs, etas: Floats) -> None:
    """Pass over examples once, a part of them with each descent, in parallel.

    order, etas: see `MinibatchDescent.run`; every second example is of the second of two parts.
    """
    n = len(descents)
    parts = [(descent, order[i::n].copy(), etas[i::n]) for i, descent in enumerate(descents)]
    descents[0].examples.workers.map(MinibatchDescent.run, parts)
    due = sum(descent.due for descent in descents) / n
    for descent in descents:
        descent.due = due
