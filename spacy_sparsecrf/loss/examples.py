"""Losses as sums over examples: gradients of some examples, and stochastic passes over them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels import minibatch
from ..kernels.hessian import TangentWorkspace
from ..kernels.layout import SequenceWorkspace, Tangents, Vectors
from ..kernels.minibatch import Moving, StepRule, Visited
from ..kernels.sgd import add_gradients
from ..parallel import Workers
from ..penalty import ElasticNet
from .lattice import Floats, Longs, Mask
from .working import WorkingLoss

# Tokens from which on a sequence is long: its gradient is a sum over tokens, so that a step that
# suits others would overshoot.
LONG = 2000
# Tokens of a sample; and examples from which on a corpus is divided into parts.
_SAMPLED, _WORTH_PARTS = 10_000, 1000


class ExampleLoss:
    """Base class of losses that are sums over examples.

    sequences: [S] int64, the examples; complete: [S] bool, whether all gold labels are known;
    n_weights: K. The passes of this class step on all weights.
    """

    sequences: Longs
    complete: Mask
    n_weights: int
    workers = Workers(1)

    @cached_property
    def sizes(self) -> Longs:
        """Tokens of each example, or 1, [S]."""
        return np.ones(len(self.sequences), np.int64)

    def add(self, members: Longs, theta: Floats, gradient: Floats) -> float:
        """Add the weighted gradients of examples.

        members: [b] int64; theta: [K]; gradient: [K], added to.
        RETURNS: the weighted sum of their losses.
        """
        raise NotImplementedError

    def add_product(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add the gradient of examples and the product of their Hessian with a direction, at theta.

        members: [b] int64; theta, direction: [K]; gradient, product: [K], added to.
        RETURNS: the weighted sum of the examples' losses.
        """
        raise NotImplementedError

    def descend_in_batches(
        self, order: Longs, batch: int, etas: Floats, rule: StepRule, theta: Floats, extra: Floats
    ) -> float:
        """Pass over examples once; see `MinibatchDescent.run`."""
        gradient, loss = np.zeros_like(theta), 0.0
        for number, eta in enumerate(etas):
            members = order[number * batch : (number + 1) * batch]
            loss += self.add(members, theta, gradient)
            minibatch.step_all(number, Moving(rule, eta, gradient, theta, extra))
        return loss


def new_workspace(working: WorkingLoss) -> SequenceWorkspace:
    """Allocate workspaces for any sequence of the corpus, in float64."""
    space, pairs = working.space, working.pairs
    longest = int(np.diff(space.lattice.offsets).max())
    arrays = pairs.new_arrays()
    most_entries = int(np.diff(pairs.contexts.arrays.corr_ptr).max(initial=0))
    matrix = arrays.potentials.psi.shape[1:]

    def new_vectors() -> Vectors:
        alpha, backward, marginals = (np.zeros((longest, space.padded)) for _ in range(3))
        scales, norms = np.zeros(longest), np.zeros(longest)
        return Vectors(alpha, backward, marginals, scales, norms, np.zeros(matrix))

    tokens, sums = np.arange(longest, dtype=np.int32), np.zeros(most_entries)
    return SequenceWorkspace(arrays, new_vectors(), new_vectors(), tokens, sums, np.zeros(matrix))


class ChainExamples(ExampleLoss):
    """The chain loss as a sum over examples; see `ExampleLoss`.

    working: the loss on the working set [K], laid out for a stochastic solver. An *example* is a
    sequence with gold labels, or a sequence with missing labels and its clamped lattice.
    tables: the corpus and the weights; split: number of unigram weights.
    """

    def __init__(self, working: WorkingLoss) -> None:
        lattice = working.space.lattice
        self.sequences: Longs = np.arange(lattice.n_examples)
        self.complete: Mask = lattice.clamped[: lattice.n_examples] < 0
        self.tables = working.tables
        self._work, self.workers = new_workspace(working), working.space.workers
        self.split = working.split
        self.n_weights = len(working.coordinates)
        # Not the loss itself, which keeps this object: only a garbage collector ends a cycle.
        self._pairs = working.pairs
        # First weight of each feature block, bigram blocks last, and the end.
        pair_ptr = working.split + working.bigram.ptr
        self._weights_of: Longs = np.concatenate((working.unigram.ptr[:-1], pair_ptr))
        self._n_calls = 0

    @cached_property
    def sizes(self) -> Longs:
        """Tokens of each example, [S]."""
        return np.diff(self.tables.sequences.offsets)[: len(self.sequences)]

    def add(self, members: Longs, theta: Floats, gradient: Floats) -> float:
        """Add the weighted gradients of examples; see `ExampleLoss.add`."""
        self._n_calls += 1
        call = members, self._n_calls, self.tables, theta, gradient
        return float(add_gradients(*call, self._work))

    @cached_property
    def _changes(self) -> TangentWorkspace:
        shape = self._work.vectors.alpha.shape
        own, clamped = (Tangents(*(np.zeros(shape) for _ in range(4))) for _ in range(2))
        table = np.zeros_like(self.tables.unigrams.table)
        slopes, work = self._pairs.new_slopes(np.float64), self._work
        counts = np.zeros_like(work.pair_sums), np.zeros_like(work.correction_sums)
        return TangentWorkspace(slopes, own, clamped, table, *counts)

    def add_product(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add gradients and Hessian-vector products; see `ExampleLoss.add_product`."""
        self._n_calls += 1
        call = members, self._n_calls, self.tables, theta, direction, gradient
        return float(minibatch.add_gradient_and_product(*call, product, self._work, self._changes))

    def descend_in_batches(
        self, order: Longs, batch: int, etas: Floats, rule: StepRule, theta: Floats, extra: Floats
    ) -> float:
        """Pass over examples once; see `ExampleLoss.descend_in_batches`."""
        # A pass numbers its minibatches from 0.
        self._n_calls += len(order)
        blocks = Visited(self._weights_of, np.zeros(len(self._weights_of) - 1, np.int64))
        pass_of = order, batch, etas, rule, self.tables, blocks
        loss = float(minibatch.minibatch_pass(*pass_of, theta, extra, self._gradient, self._work))
        last = Moving(rule, etas[-1], self._gradient, theta, extra)
        minibatch.finish_pass(len(etas), blocks, last)
        return loss

    @cached_property
    def _gradient(self) -> Floats:
        """Gradient of a minibatch, [K]; zeros between passes."""
        return np.zeros(self.n_weights)


def examples_of(loss: Any) -> ExampleLoss:
    """Return a loss as an `ExampleLoss`: wrap a chain loss, and return any other unchanged.

    loss: a `WorkingLoss`, which keeps its wrapper and the workspaces there, or an `ExampleLoss`.
    """
    view: ExampleLoss = loss.derived(ChainExamples) if isinstance(loss, WorkingLoss) else loss
    return view


def views_of(loss: Any, n: int) -> list[ExampleLoss]:
    """Return views of a loss for parts of its examples, up to n of a large corpus of chains."""
    view = examples_of(loss)
    if not isinstance(view, ChainExamples) or len(view.sequences) < _WORTH_PARTS:
        return [view]
    return [view, *(ChainExamples(loss) for _ in range(n - 1))]


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


class MinibatchDescent:
    """SGD, SGD-L1 or AdaGrad, a minibatch of examples at a time.

    working: the loss on the working set [K]; penalty: each minibatch applies an equal share; batch:
    examples per minibatch; rule: see `kernels.minibatch`; theta: [K] float64, weights, in and out;
    extra: [K] float64, in and out, the rule's state of each weight, see `kernels.minibatch.Moving`;
    delta: the constant of AdaGrad; due: the l1 rate of SGD-L1 cumulated so far; missing: whether to
    include examples with missing gold labels.
    sequences: [n] int64, the examples; share: the penalty of a minibatch.
    """

    def __init__(
        self,
        working: Any,
        penalty: ElasticNet,
        batch: int,
        rule: int,
        theta: Floats,
        extra: Floats,
        delta: float = 1.0,
        due: float = 0.0,
        missing: bool = True,
    ) -> None:
        self._examples = examples_of(working)
        self.workers = self._examples.workers
        self.sequences: Longs = self._examples.sequences[self._examples.complete | missing]
        self._batch, self._rule, self._delta, self.due = batch, rule, delta, due
        self._theta, self._extra = theta, extra
        share = 1.0 / max(1, -(-len(self.sequences) // batch))
        self.share = ElasticNet(share * penalty.l1, share * penalty.l2)

    def visited_before(self, order: Longs) -> Longs:
        """Return the number of examples before each minibatch of an order [n]."""
        return np.arange(0, len(order), self._batch)

    def run(self, order: Longs, etas: Floats, averaging: bool = False) -> float:
        """Pass over examples once.

        order: [n] int64; etas: step size of each minibatch, which long sequences reduce; averaging:
        whether SGD sums its iterates.
        RETURNS: the weighted sum of the losses of the examples, each before its step.
        """
        if len(order) == 0:
            return 0.0
        # In inverse proportion to the length of long sequences.
        shares = np.minimum(1.0, LONG / self._examples.sizes[order])
        etas = etas * np.minimum.reduceat(shares, self.visited_before(order))
        l1, l2 = self.share.l1, self.share.l2
        shrinkage, cumulated = np.zeros(len(etas) + 1), np.zeros(len(etas) + 1)
        if self._rule == minibatch.SGD_L1:
            rates = np.cumsum(etas)
            shrinkage[1:], cumulated[1:] = l2 * rates, self.due + l1 * rates
            self.due = float(cumulated[-1])
        else:
            minibatch.sum_shrinkage(etas, l2, averaging, shrinkage, cumulated)
        rule = StepRule(self._rule, self._delta, l1, l2, shrinkage, cumulated, averaging)
        batches = order, self._batch, etas
        return self._examples.descend_in_batches(*batches, rule, self._theta, self._extra)

    def sample(self, order: Longs) -> Longs:
        """Return the first examples of an order [n], up to a number of tokens."""
        ends = np.cumsum(self._examples.sizes[order])
        return order[: 1 + int(np.searchsorted(ends, _SAMPLED))]

    def loss_after(self, sample: Longs, eta: float) -> float:
        """Return the loss of a sample [n] int64 after a pass over it; the pass is undone."""
        before = self._theta, self._extra, self.due
        self._theta, self._extra = self._theta.copy(), self._extra.copy()
        self.run(sample, np.full(len(self.visited_before(sample)), eta))
        loss = self._examples.add(sample, self._theta, np.zeros_like(self._theta))
        self._theta, self._extra, self.due = before
        return loss


def run_parts(descents: Sequence[MinibatchDescent], order: Longs, etas: Floats) -> None:
    """Pass over examples once, a part of them with each descent, in parallel.

    order, etas: see `MinibatchDescent.run`; every second example is of the second of two parts.
    """
    n = len(descents)
    parts = [(own, order[i::n].copy(), etas[i::n]) for i, own in enumerate(descents)]
    descents[0].workers.map(MinibatchDescent.run, parts)
    due = sum(own.due for own in descents) / n
    for own in descents:
        own.due = due
