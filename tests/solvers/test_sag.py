"""SAG and SAGA: their way to the minimum, their state, their memory."""

import copy

import numpy as np
import pytest

from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.sag.memory import StoredGradients
from spacy_sparsecrf.solvers.sag.sag import SAG

from ..reference import random_problem
from .cases import LENGTHS, everything


def test_sums_of_stored_gradients_do_not_drift_and_follow_the_working_set():
    problem, _ = random_problem(80, 3, LENGTHS, n_bigram=3, weighted=True, missing=0.2)
    loss, penalty, solver = ChainLoss(problem.corpus, 3, Workers(1)), ElasticNet(0.1, 0.1), SAG()
    working = loss.restrict(loss.all_coordinates(), stochastic=True)
    state = solver.start(working, penalty, problem.theta)
    for _ in range(30):
        solver.step(working, penalty, state)
    again = working.derived(StoredGradients).gradient(working, state.nodes, state.pairs)
    np.testing.assert_allclose(state.total, again, atol=1e-11)
    source = np.flatnonzero(np.random.default_rng(1).random(loss.n_potential) < 0.4)
    part = loss.restrict(source, stochastic=True)
    moved = solver.remap(part, penalty, state, source, state.gradient[source])
    np.testing.assert_allclose(moved.total, state.total[source], atol=1e-11)
    np.testing.assert_array_equal(moved.theta, state.theta[source])
    empty = loss.restrict(source[:0], stochastic=True)
    nothing = solver.remap(empty, penalty, state, source[:0], state.gradient[:0])
    assert solver.step(empty, penalty, nothing).n_active == 0


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_the_papers_test_of_stored_gradients_can_tell_when_to_stop(l1):
    problem, _ = random_problem(82, 3, [5, 4, 6, 3] * 10, n_values=4)
    penalty, working = ElasticNet(l1, 0.3), everything(problem.corpus, 3)
    solver = SAG(sampling="uniform", tolerance=0.02, stopping="memory")
    passes_unseen = 0
    for seed in range(6):
        solver.seed = seed
        state = solver.start(working, penalty, np.zeros_like(problem.theta))
        converged = False
        while not converged:
            report = solver.step(working, penalty, state)
            seen = state.curvatures.min() > 0.0
            # Algorithm 1: m = n and |d / n + lambda w| < delta, here of the sum.
            converged = seen and penalty.distance(state.theta, state.total) <= 0.02
            assert report.converged == converged
            passes_unseen += not seen
        _, gradient = working.value_and_grad(state.theta)
        assert report.optimality == pytest.approx(penalty.distance(state.theta, gradient), rel=1e-9)
    assert passes_unseen > 0


def test_a_pass_without_finite_objective_is_undone(monkeypatch):
    problem, _ = random_problem(83, 3, LENGTHS)
    penalty, working, solver = ElasticNet(0.0, 0.5), everything(problem.corpus, 3), SAG()
    state = solver.start(working, penalty, problem.theta)
    solver.step(working, penalty, state)
    before = copy.deepcopy(state)
    evaluate = working.value_and_grad
    monkeypatch.setattr(
        working, "value_and_grad", lambda theta: (np.inf, np.zeros_like(theta)), raising=True
    )
    report = solver.step(working, penalty, state)
    assert not report.converged
    assert report.objective == before.value
    np.testing.assert_array_equal(state.theta, before.theta)
    assert state.caution == 2.0
    assert not state.curvatures.any() and not state.total.any() and not state.nodes.any()
    monkeypatch.setattr(working, "value_and_grad", evaluate)
    for _ in range(100):
        report = solver.step(working, penalty, state)
    assert report.optimality < 1e-5
    assert state.caution < 2.0


def test_steps_that_are_too_long_are_shortened():
    problem, _ = random_problem(84, 3, LENGTHS * 3)
    penalty, working = ElasticNet(0.0, 0.5), everything(problem.corpus, 3)
    # Without a search the curvature stays far too small.
    solver = SAG(sampling="uniform", first_curvature=1e-3, least_norm=np.inf)
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    for _ in range(400):
        report = solver.step(working, penalty, state)
    assert state.caution > 1.0
    assert report.objective < working.value_and_grad(np.zeros_like(problem.theta))[0]
