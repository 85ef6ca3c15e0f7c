"""The averaged perceptron."""

import dataclasses

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.training.training import Training

from ..reference import Problem, random_problem
from .cases import working_loss
from .test_sgd import lattice_order

NONE = ElasticNet(0.0, 0.0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"start_label": False, "n_bigram": 3},
        {"weighted": True, "n_bigram": 3},
        {"n_bigram": 0},
        {"n_unigram": 0},
    ],
)
def test_passes_equal_the_reference(options):
    problem, _ = random_problem(91, 3, [4, 3, 5, 2, 1], n_values=2, **options)
    # The longest has a missing label, and is left out.
    problem.corpus.labels[8] = -1
    working = working_loss(problem)
    solver = AveragedPerceptron(seed=4)
    # No ties.
    start = 0.1 * problem.theta
    state = solver.start(working, NONE, start)
    numbers = lattice_order(problem, working)
    theta, iterates = start.copy(), []
    for epoch in range(3):
        solver.step(working, NONE, state)
        whole = np.flatnonzero(numbers != 2)
        wrong = 0
        for s in np.random.default_rng([4, epoch]).permutation(whole):
            there = Problem(problem.corpus, 3, theta)
            tokens = there.sequences()[numbers[s]]
            gold = tuple(problem.corpus.labels[tokens.start : tokens.stop])
            best = there.best_path(tokens)
            change = there.counts(tokens, gold) - there.counts(tokens, best)
            theta = theta + problem.corpus.weights[numbers[s]] * change
            wrong += sum(a != b for a, b in zip(gold, best, strict=True))
            iterates.append(theta)
        np.testing.assert_allclose(state.iterate, theta, atol=1e-12)
        np.testing.assert_allclose(state.theta, np.mean(iterates, axis=0), atol=1e-12)
        assert state.n_wrong == wrong
        assert wrong > 0 or epoch > 0


def test_it_ends_when_it_decodes_a_separable_corpus():
    problem, _ = random_problem(92, 3, [4, 3, 5, 2] * 10, n_values=4)
    for tokens in problem.sequences():
        problem.corpus.labels[tokens.start : tokens.stop] = problem.best_path(tokens)
    working, solver = working_loss(problem), AveragedPerceptron()
    state = solver.start(working, NONE, np.zeros_like(problem.theta))
    wrong = []
    for _ in range(60):
        converged = solver.step(working, NONE, state).converged
        wrong.append(state.n_wrong)
        assert converged == (state.n_wrong == 0)
        if converged:
            break
    assert wrong[0] > 20
    assert wrong[-1] == 0
    # The mean of the iterates decodes nearly as well as the last.
    found = dataclasses.replace(problem, theta=state.theta)
    gold = problem.corpus.labels
    errors = sum(
        np.sum(np.array(found.best_path(tokens)) != gold[tokens.start : tokens.stop])
        for tokens in problem.sequences()
    )
    assert errors <= 0.02 * len(gold)


def test_a_corpus_without_complete_sequences_is_refused():
    problem, _ = random_problem(95, 3, [4, 3])
    problem.corpus.labels[[0, 5]] = -1
    with pytest.raises(SparseCRFError, match="SC337.*AveragedPerceptron"):
        Training(problem.corpus, list("abc"), AveragedPerceptron(), l1=0.0, l2=0.0).step()
