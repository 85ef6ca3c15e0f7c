"""The averaged structured perceptron (Collins 2002), a sequence at a time.

    theta := theta + w_i (F(x_i, y_i) - F(x_i, argmax_y theta . F(x_i, y)))

with F the counts of features and w_i the weight of sequence i. The result is the mean of theta
after each visit. The perceptron learns to decode the training sequences and minimises no objective.
It reports the loss of the CRF with these weights, whose scale is arbitrary. It has converged after
a pass without an error, if the mean, which follows the last weights, makes none either; `window`
(see `base`) is 0 by default.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import Errors, SparseCRFError
from ...registry import crf_solvers
from ..corpus.numbering import Floats, Longs
from ..kernels.layout import Scored, search_all
from ..kernels.perceptron_pass import Averaged, Guess, ValueBlocks, perceptron_pass
from ..loss.examples import ChainExampleLoss
from ..loss.value_weights import ValueWeights
from ..penalty import ElasticNet
from .solver import SolverState, StepReport, evaluate, evaluate_start, requirements
from .stochastic import StochasticSolver


@dataclass
class PerceptronState(SolverState):
    """The state of the perceptron.

    theta: [K], the mean of the weights after each visit; gradient: [K], of the CRF's loss at theta;
    value: this loss; iterate: [K], the last weights; moves: [K], sum of the changes of a weight,
    each times the number of visits before it; count: visits so far; epoch: passes done; n_wrong:
    wrong labels in the last pass.
    """

    iterate: Floats
    moves: Floats
    count: int
    epoch: int
    n_wrong: int


@crf_solvers("spacy_sparsecrf.Perceptron.v1")
@dataclass(kw_only=True, eq=False)
class AveragedPerceptron(StochasticSolver[ChainExampleLoss]):
    """The averaged structured perceptron (Collins 2002); see the module for the update.

    Penalties are not supported: l1 and l2 must be 0. Sequences with missing gold labels are
    skipped. `window` is 0 by default: it ends the run only if the loss no longer falls.
    """

    own_rule = True

    state_type = PerceptronState
    # Decoding considers all label sequences.
    requires = requirements(
        "examples", "whole corpus", "no l1", "no l2", "all sequences", "no prior"
    )

    tolerance: float = field(default=0.0, init=False)
    tolerance_gap: float = field(default=0.0, init=False)
    window: float = 0.0

    @property
    def columns(self) -> dict[str, float]:
        """The mean of the weights, the last weights, and the sum of moves."""
        return {"theta": 0.0, "iterate": 0.0, "moves": 0.0}

    def start(self, loss: ChainExampleLoss, penalty: ElasticNet, theta: Floats) -> PerceptronState:
        """Evaluate the first point; see `BatchSolver.start`.

        RAISES: SparseCRFError also if no sequence has all gold labels.
        """
        if len(_complete(loss)) == 0:
            raise SparseCRFError(Errors.SC337.format(solver=type(self).__name__))
        value, gradient = evaluate_start(loss, penalty, theta)
        return PerceptronState(
            theta=theta,
            gradient=gradient,
            value=value,
            iterate=theta.copy(),
            moves=np.zeros_like(theta),
            count=0,
            epoch=0,
            n_wrong=0,
        )

    def step(
        self, loss: ChainExampleLoss, penalty: ElasticNet, state: PerceptronState
    ) -> StepReport:
        """Pass over all complete sequences once, in a random order, and evaluate."""
        order = self.shuffled(_complete(loss), state.epoch)
        # States share arrays, so the pass writes to copies.
        state.iterate, state.moves = state.iterate.copy(), state.moves.copy()
        values, guess = ValueWeights(loss.space, loss.unigram), _new_guess(loss)

        def visit(weights: Averaged, count: int) -> int:
            n_wrong = perceptron_pass(
                order,
                loss.tables,
                values=ValueBlocks(values.features, values.blocks),
                weights=weights,
                count=count,
                guess=guess,
            )
            return int(n_wrong)

        state.n_wrong = visit(Averaged(state.iterate, state.moves), state.count)
        state.count += len(order)
        state.epoch += 1
        state.theta = state.iterate - state.moves / state.count
        state.value, state.gradient = evaluate(loss, penalty, state.theta)
        mean = Averaged(state.theta.copy(), np.zeros_like(state.moves))
        is_right = state.n_wrong == 0 and visit(mean, 0) == 0
        return replace(self.report(penalty, state), converged=is_right)


def _complete(loss: ChainExampleLoss) -> Longs:
    """Return the sequences whose tokens all have gold labels."""
    lattice = loss.space.lattice
    return np.flatnonzero(np.minimum.reduceat(lattice.labels, lattice.offsets[:-1]) >= 0)


def _new_guess(loss: ChainExampleLoss) -> Guess:
    """Allocate workspaces for any sequence."""
    space, lattice = loss.space, loss.space.lattice
    context, n_labels, padded = lattice.context, space.n_labels, space.padded
    changes = np.append(True, context[1:] != context[:-1]) | lattice.begins
    most = int(np.add.reduceat(changes.astype(np.int64), lattice.offsets[:-1]).max())
    longest = int(np.diff(lattice.offsets).max())
    return Guess(
        scored=Scored(
            n_labels=n_labels,
            offsets=lattice.offsets,
            scores=np.zeros((longest, padded)),
            context=np.zeros(longest, np.int32),
            pairs=np.zeros((most, n_labels + 1, padded)),
        ),
        slack=np.full((most, padded), np.inf),
        search=search_all(n_labels),
        best=np.zeros(padded),
        labels=np.zeros(longest, np.int32),
    )
