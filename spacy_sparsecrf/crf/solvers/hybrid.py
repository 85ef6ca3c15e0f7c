"""The hybrid method: OWL-QN on a growing sample of the corpus.

Minimises F(theta) = sum_i l_i(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 over N examples (Friedlander
& Schmidt 2012, section 5). Each iteration is one of `owlqn`, on a sample of b examples whose loss
is scaled by N / b; before it, b := growth b + 1. Each sample includes the previous one: only the
new examples are evaluated before the line search, and each pair of differences is of one sample.
When all examples are in the sample, the method is OWL-QN, and stops as OWL-QN does.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ...registry import crf_solvers
from ..corpus.numbering import Floats, Longs
from ..loss.examples import Sample
from ..loss.protocols import ExampleLoss, Function, WorkingLoss
from ..penalty import ElasticNet
from .owlqn import OWLQN, OwlqnState
from .solver import BatchSolver, StepReport, evaluate, requirements
from .warm_start import WarmStart


@dataclass(kw_only=True)
class HybridState(OwlqnState):
    """The state of the hybrid method: the state of OWL-QN, and the sample.

    size: examples in the sample; known: number of examples in the sums; partial: [K], sum of their
    gradients at theta; partial_value: sum of their losses.
    """

    size: int
    known: int
    partial: Floats
    partial_value: float


@crf_solvers("spacy_sparsecrf.Hybrid.v1")
@dataclass(kw_only=True, eq=False)
class Hybrid(OWLQN):
    """The hybrid deterministic-stochastic method; see the module for its iterations.

    Examples with missing gold labels are used. On a partitioned corpus, there are no samples, and
    all iterations are on the whole.

    growth: >= 1; the paper uses 1.1, which takes more passes on chunks.
    first_share: share of the examples in the first sample.
    history, variant, max_line_search: see `OWLQN`.
    Other settings: see `BatchSolver`. One of the `inner_iterations` is iterations on samples that
    visit as many examples as the corpus has, or one iteration on all examples.
    """

    state_type = HybridState
    requires = requirements("indicators", "examples")

    growth: float = 1.5
    first_share: float = 0.01
    warm_start: ClassVar[WarmStart] = BatchSolver.warm_start
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1, "growth")
        self.require(0, "first_share")

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> HybridState:
        """Evaluate the first point; see `BatchSolver.start`."""
        return _with_sample(super().start(loss, penalty, theta), 0)

    def remap(
        self, loss: WorkingLoss, penalty: ElasticNet, state: Any, source: Longs, gradient: Floats
    ) -> HybridState:
        """Move weights and pairs to another working set; the sample is evaluated again."""
        return _with_sample(super().remap(loss, penalty, state, source, gradient), state.size)

    def step(self, loss: Function, penalty: ElasticNet, state: Any) -> StepReport:
        """Iterate on samples for about one pass, then evaluate, or iterate once on all examples."""
        if not isinstance(loss, ExampleLoss) or state.size == len(loss.sequences):
            return super().step(loss, penalty, state)
        n = len(loss.sequences)
        order = np.random.default_rng(self.seed).permutation(loss.sequences)
        visits = 0
        while visits < n and state.size < n:
            visits += self._iterate(loss, order, penalty, state)
        state.value, state.gradient = evaluate(loss, penalty, state.theta)
        return self.report(penalty, state, visits / n)

    def _iterate(
        self, examples: ExampleLoss, order: Longs, penalty: ElasticNet, state: HybridState
    ) -> int:
        """Grow the sample, and do one iteration on it unless it is the whole corpus.

        RETURNS: the number of visits of an example.
        """
        n = len(order)
        least = self.first_share * n
        state.size = min(n, math.ceil(max(self.growth * state.size + 1, least)))
        visits = state.size - state.known
        if state.size == n:
            # The evaluation at the end of the pass covers all examples.
            return visits
        # States share arrays, so the sum is a copy.
        state.partial = state.partial.copy()
        entering = order[state.known : state.size]
        state.partial_value += examples.add(entering, state.theta, state.partial)
        state.known = state.size
        sample = Sample(examples, order[: state.size])
        state.gradient = sample.scale * state.partial + penalty.l2 * state.theta
        state.value = sample.scale * state.partial_value + penalty.value(state.theta)
        report = super().step(sample, penalty, state)
        state.stalled = False
        state.partial = (state.gradient - penalty.l2 * state.theta) / sample.scale
        state.partial_value = (state.value - penalty.value(state.theta)) / sample.scale
        return visits + int(report.passes) * state.size


def _with_sample(inner: OwlqnState, size: int) -> HybridState:
    """Return a state whose sample is not evaluated yet."""
    nothing = np.zeros_like(inner.theta)
    columns = {column.name: getattr(inner, column.name) for column in fields(OwlqnState)}
    return HybridState(**columns, size=size, known=0, partial=nothing, partial_value=0.0)
