"""Ambiguous and missing gold labels, and invalid sequences: the loss equals enumeration."""

import numpy as np
import pytest

from spacy_sparsecrf.loss.workspace import Limits

from ..reference import Problem
from ..training.learning_cases import loss_of, partial_problem

LENGTHS = [4, 0, 1, 3, 5]


def everything(problem: Problem, **options: Limits):
    loss = loss_of(problem, **options)
    return loss.restrict(loss.all_coordinates())


@pytest.mark.parametrize("n_labels", [64, 65, 70])
def test_more_labels_than_a_word_has_bits(n_labels):
    problem = partial_problem(202, n_labels, [2, 1, 2], constrained=True, n_bigram=1)
    value, gradient = everything(problem).value_and_grad(problem.theta)
    rng = np.random.default_rng(0)
    paths = [(tokens, problem.paths(tokens, agree=True)) for tokens in problem.sequences()]
    assert min(len(found) for _, found in paths) < n_labels
    expected = sum(
        problem.log_z(tokens) - np.logaddexp.reduce([problem.score(tokens, p) for p in found])
        for tokens, found in paths
    )
    assert value == pytest.approx(expected, rel=1e-10)
    step = 1e-5 * rng.normal(size=len(gradient)) / np.sqrt(len(gradient))
    working = everything(problem)
    ahead, behind = (working.value_and_grad(problem.theta + d)[0] for d in (step, -step))
    assert ahead - behind == pytest.approx(2.0 * float(gradient @ step), rel=1e-5, abs=1e-9)


def test_scores_of_labels_that_a_token_cannot_have_do_not_drown_the_others():
    problem = partial_problem(209, 3, [1, 1, 1], missing=0.0, n_bigram=0, n_values=1)
    problem.corpus.labels[:] = -2
    problem.corpus.sets[0] = [True, True, False]
    problem.theta[:] = 0.0
    problem.mu[:, 2] = 500.0
    value, gradient = everything(problem).value_and_grad(problem.theta)
    expected, expected_gradient = problem.loss()
    assert expected > 700.0
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)


@pytest.mark.parametrize("start_label", [True, False])
def test_observed_coordinates_are_of_labels_that_gold_speaks_of(start_label):
    problem = partial_problem(212, 4, [6, 1, 5, 2], n_bigram=3, start_label=start_label)
    counts = np.zeros_like(problem.theta)
    table = Problem(problem.corpus, 4, counts)
    for tokens in problem.sequences():
        for t in tokens:
            if problem.corpus.labels[t] == -1:
                continue
            for o in problem.unigram_tests(t):
                table.mu[o, problem.gold(t)] = 1.0
            if t > tokens.start and problem.corpus.labels[t - 1] == -1:
                continue
            before = [4] if t == tokens.start else problem.gold(t - 1)
            for o in problem.bigram_tests(t):
                for a in before:
                    table.lam[o, a, problem.gold(t)] = 1.0
    expected = np.flatnonzero(counts)
    loss = loss_of(problem, observed_only=True)
    np.testing.assert_array_equal(loss.observed_coordinates(), expected)
    assert loss.n_potential == len(expected) < len(counts)
    np.testing.assert_array_equal(loss.all_coordinates(), expected)
