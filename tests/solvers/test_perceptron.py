"""The averaged perceptron."""

import copy
import dataclasses

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.training.training import Training

from ..reference import Problem, random_problem
from .test_sgd import assert_equal_states, lattice_order, stochastic_loss

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
def test_passes_equal_a_slow_twin(options):
    problem, _ = random_problem(91, 3, [4, 3, 5, 2, 1], n_values=2, **options)
    # The longest has a missing label, and is left out.
    problem.corpus.labels[8] = -1
    working = stochastic_loss(problem)
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
    working, solver = stochastic_loss(problem), AveragedPerceptron()
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


def test_resuming_is_bit_identical_and_weights_are_carried_over():
    problem, _ = random_problem(93, 3, [5, 3, 6, 4] * 4, missing=0.05)
    loss = ChainLoss(problem.corpus, 3, Workers(1))
    working = loss.restrict(loss.all_coordinates(), stochastic=True)
    solver = AveragedPerceptron()
    state = solver.start(working, NONE, np.zeros(loss.n_potential))
    solver.step(working, NONE, state)
    for field in dataclasses.fields(state):
        assert isinstance(getattr(state, field.name), (np.ndarray, float, int, bool))
    saved = copy.deepcopy(state)
    kept = np.flatnonzero((state.iterate != 0.0) | (state.moves != 0.0))
    assert 0 < len(kept) < loss.n_potential
    smaller = loss.restrict(kept, stochastic=True)
    less = solver.remap(smaller, NONE, copy.deepcopy(state), kept, state.gradient[kept])
    source = np.full(loss.n_potential, -1)
    source[kept] = np.arange(len(kept))
    back = solver.remap(working, NONE, less, source, state.gradient)
    for other in (saved, back):
        assert_equal_states(state, other)
    solver.step(working, NONE, state)
    solver.step(stochastic_loss(problem), NONE, saved)
    assert_equal_states(state, saved)
    other = AveragedPerceptron(seed=1)
    different = other.start(working, NONE, np.zeros(loss.n_potential))
    for _ in range(2):
        other.step(working, NONE, different)
    assert not np.array_equal(different.theta, state.theta)


def test_penalties_are_refused():
    problem, _ = random_problem(94, 3, [4])
    with pytest.raises(SparseCRFError, match="SC336.*AveragedPerceptron.*l2 = 0.1"):
        Training(problem.corpus, list("abc"), AveragedPerceptron(), l1=0.0, l2=0.1).step()
    with pytest.raises(SparseCRFError, match="SC308.*AveragedPerceptron"):
        Training(problem.corpus, list("abc"), AveragedPerceptron(), l1=0.5, l2=0.0)


def test_a_corpus_without_complete_sequences_is_refused():
    problem, _ = random_problem(95, 3, [4, 3])
    problem.corpus.labels[[0, 5]] = -1
    with pytest.raises(SparseCRFError, match="SC337.*AveragedPerceptron"):
        Training(problem.corpus, list("abc"), AveragedPerceptron(), l1=0.0, l2=0.0).step()
