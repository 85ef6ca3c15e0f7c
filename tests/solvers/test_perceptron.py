"""The averaged perceptron."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.corpus.index import sliced
from spacy_sparsecrf.distributed.loss import ShardLosses, ShardProblem
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.subproblems import with_distinct_contexts
from spacy_sparsecrf.loss.tree import sum_over_tree
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.parameter_mixing import MEAN, Pass
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.solvers.streaming import Batch, Terms
from spacy_sparsecrf.training.training import Training

from ..features.reference_values import random_value_problem
from ..reference import Problem, random_problem
from .cases import working_loss
from .test_sgd import lattice_order

NONE = ElasticNet(0.0, 0.0)


def test_a_corpus_without_complete_sequences_is_refused():
    problem, _ = random_problem(95, 3, [4, 3])
    problem.corpus.labels[[0, 5]] = -1
    with pytest.raises(SparseCRFError, match="SC337.*AveragedPerceptron"):
        Training(problem.corpus, list("abc"), AveragedPerceptron(), l1=0.0, l2=0.0).step()


@pytest.mark.parametrize("n_labels", [3, 20])
def test_a_pass_moves_weights_from_guessed_to_gold_labels(n_labels: int) -> None:
    problem, _ = random_problem(8, n_labels, [2, 1, 3][: 5 - n_labels // 10], weighted=True)
    working, solver = working_loss(problem), AveragedPerceptron(seed=3)
    state = solver.start(working, NONE, problem.theta.copy())
    solver.step(working, NONE, state)
    last, mean = averaged_pass(problem, working)
    np.testing.assert_allclose(state.iterate, last, atol=1e-12)
    np.testing.assert_allclose(state.theta, mean, atol=1e-12)


def averaged_pass(problem: Problem, working: Any) -> tuple[Any, Any]:
    """Return the weights after a pass in the order of seed 3, and their mean over visits."""
    numbers = lattice_order(problem, working)
    there, total = replace(problem, theta=problem.theta.copy()), np.zeros_like(problem.theta)
    for i in np.random.default_rng([3, 0]).permutation(np.arange(len(numbers))):
        tokens = problem.sequences()[numbers[i]]
        gold = tuple(problem.corpus.labels[tokens.start : tokens.stop].tolist())
        change = problem.counts(tokens, gold) - problem.counts(tokens, there.best_path(tokens))
        there.theta += problem.corpus.weights[numbers[i]] * change
        total += there.theta
    return there.theta, total / len(numbers)


def test_a_pass_moves_the_weights_of_real_values() -> None:
    problem, _ = random_value_problem(8, 3, [4, 1, 6, 5], n_real=6)
    working, solver = working_loss(problem), AveragedPerceptron(seed=3)
    state = solver.start(working, NONE, problem.theta.copy())
    solver.step(working, NONE, state)
    expected = averaged_pass(problem, working)
    for found, theta in zip((state.iterate, state.theta), expected, strict=True):
        np.testing.assert_allclose(found, theta, atol=1e-12)
    features = problem.corpus.value_features[:, None] * 3 + np.arange(3)
    assert (state.iterate != problem.theta)[features].any()


@pytest.mark.parametrize("solver", [SGDL1(), AveragedPerceptron()])
def test_a_run_goes_on_while_passes_change_the_objective(solver: Any) -> None:
    problem, _ = random_problem(7, 3, [4, 3, 5, 2, 1, 3])
    l1 = 0.1 if isinstance(solver, SGDL1) else 0.0
    training = Training(problem.corpus, list("abc"), solver, l1=l1, l2=0.0)
    assert not any(training.step().converged for _ in range(6))


# Iterative parameter mixing: passes over shards, averaged.

TOTALS = {"seen": 5.0, "eta": 0.2, "due": 0.01, "decayed": 0.0}


@pytest.mark.parametrize(
    ("solver", "penalty", "totals"),
    [
        (SGDL1(seed=3), ElasticNet(0.4, 0.1), TOTALS),
        (AveragedPerceptron(seed=3), ElasticNet(0.0, 0.0), {"count": 0}),
    ],
)
def test_leaves_are_visited_as_if_each_had_all_weights(
    solver: Any, penalty: ElasticNet, totals: dict[str, float]
) -> None:
    problem, _ = random_problem(7, 3, [4, 3, 5, 2, 1, 3], n_unigram=9, n_bigram=4)
    corpus, workers, shard_ptr = problem.corpus, Workers(1), np.array([0, 2, 2, 5, 6])
    theta, n = 0.1 * problem.theta, corpus.n_sequences
    columns = {name: 0.02 * np.ones_like(theta) for name in solver.stream_columns} | {
        "theta": theta
    }
    begun = Pass(solver, columns, totals, 2, penalty, n)
    coordinates = np.arange(len(theta))
    leaves = ShardLosses(corpus, shard_ptr, 4, ShardProblem(3, None, "float64"), workers)
    total = sum_over_tree(leaves.visit(coordinates, begun.over))
    means, told, lost = begun.averaged(total, 3)
    expected, losses = [], []
    for i in (0, 2, 3):
        # The order of sequences depends on contexts.
        own = with_distinct_contexts(sliced(corpus, *shard_ptr[i : i + 2]))
        whole = ChainLoss(own, 3, workers)
        batch = Batch(whole.restrict(coordinates, True), np.random.default_rng((3, 2, 4 + i)))
        there, after = {k: v.copy() for k, v in columns.items()}, dict(totals)
        losses.append(solver.learn(batch, there, after, Terms(penalty, n)))
        expected.append([*there.values(), solver.stream_weights(there, after)])
    for name, mean in zip([*columns, MEAN], np.mean(expected, axis=0), strict=True):
        np.testing.assert_allclose(means[name], mean, atol=1e-12)
    assert lost == pytest.approx(sum(losses))
    counted = "seen" if "seen" in totals else "count"
    assert told[counted] == pytest.approx(totals[counted] + n / 3)


class Divided:
    """The loss of a corpus divided into three shards."""

    is_divided = True
    n_examples = 6

    def __init__(self) -> None:
        problem, _ = random_problem(7, 3, [4, 3, 5, 2, 1, 3], n_unigram=9, n_bigram=4)
        arguments = 4, ShardProblem(3, None, "float64"), Workers(1)
        self._leaves = ShardLosses(problem.corpus, np.array([0, 2, 2, 5, 6]), *arguments)
        self._working = working_loss(problem)
        self.value_and_grad, self.theta = self._working.value_and_grad, 0.1 * problem.theta
        self.passes: list[Pass] = []

    def passed(self, begun: Pass) -> tuple[Any, int]:
        self.passes.append(begun)
        return sum_over_tree(self._leaves.visit(np.arange(len(self.theta)), begun.over)), 3


def averages(solver: Any, penalty: ElasticNet) -> tuple[Any, list[Any], list[tuple[Any, ...]]]:
    """Return the state after three passes, their reports, and their averages over shards."""
    loss = Divided()
    state, reports = solver.start(loss, penalty, loss.theta), []
    for _ in range(3):
        reports.append(solver.step(loss, penalty, state))
    passes = [(begun, *begun.averaged(*loss.passed(begun))) for begun in [*loss.passes]]
    return state, reports, passes


def test_the_mean_of_a_perceptron_is_over_leaves_and_passes() -> None:
    state, reports, passes = averages(AveragedPerceptron(seed=3), NONE)
    means = [columns[MEAN] for _, columns, *_ in passes]
    np.testing.assert_allclose(state.theta, np.mean(means, axis=0), atol=1e-12)
    np.testing.assert_array_equal(state.iterate, passes[-1][1]["theta"])
    # As if all visits were in one place: the mean is the iterate minus moves per visit.
    np.testing.assert_allclose(state.theta, state.iterate - state.moves / state.count, atol=1e-12)
    assert (state.epoch, state.count) == (3, 18)
    assert [begun.epoch for begun, *_ in passes] == [0, 1, 2]
    wrong = [lost for *_, lost in passes]
    assert state.n_wrong == wrong[-1] > 0
    assert [report.converged for report in reports] == [n == 0 for n in wrong]
    np.testing.assert_array_equal(passes[1][0].columns["theta"], passes[0][1]["theta"])


def test_leaves_without_complete_sequences_are_refused() -> None:
    loss, solver = Divided(), AveragedPerceptron()
    state, passed = solver.start(loss, NONE, loss.theta), loss.passed
    loss.passed = lambda begun: (0.0 * passed(begun)[0], 3)  # type: ignore[method-assign]
    with pytest.raises(SparseCRFError, match="SC337"):
        solver.step(loss, NONE, state)


def test_steps_of_divided_passes_shrink_from_pass_to_pass() -> None:
    state, reports, passes = averages(SGDL1(seed=3, eta0=0.2), ElasticNet(0.2, 0.1))
    assert [begun.totals["seen"] for begun, *_ in passes] == [0.0, 6.0, 12.0]
    assert [begun.totals["eta"] for begun, *_ in passes] == pytest.approx([0.2] * 3)
    for (_, columns, totals, _), (following, *_) in pairwise(passes):
        for name in ("theta", "received"):
            np.testing.assert_array_equal(following.columns[name], columns[name])
        assert following.totals["due"] == totals["due"] > 0.0
    assert state.epoch == 3 and [report.passes for report in reports] == [1.0] * 3
