"""The averaged perceptron."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1

from ..features.reference_values import random_value_problem
from ..reference import Problem, random_problem
from ..runs import training_of
from .cases import working_loss
from .test_sgd import lattice_order

NONE = ElasticNet(0.0, 0.0)


def test_a_corpus_without_complete_sequences_is_refused():
    problem, _ = random_problem(95, 3, [4, 3])
    problem.corpus.labels[[0, 5]] = -1
    with pytest.raises(SparseCRFError, match="SC337.*AveragedPerceptron"):
        training_of(problem.corpus, list("abc"), AveragedPerceptron(), l1=0.0, l2=0.0).step()


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
    training = training_of(problem.corpus, list("abc"), solver, l1=l1, l2=0.0)
    assert not any(training.step().converged for _ in range(6))
