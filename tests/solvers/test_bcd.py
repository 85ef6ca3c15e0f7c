"""Block coordinate descent: safeguards, threads, minimisers."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.solvers.bcd.block_loss import BlockLayout
from spacy_sparsecrf.training.training import Training

from ..loss.layouts import in_every_layout
from ..loss.test_blocks import single_test
from ..reference import random_problem
from .cases import working_loss as everything
from .test_solvers import dense_weights, train


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_labels=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    missing=st.sampled_from([0.0, 0.4]),
    penalty=st.sampled_from([(0.5, 1e-5), (0.0, 0.0), (0.0, 1.0), (2.0, 0.0)]),
    scale=st.sampled_from([0.0, 1.0, 30.0]),
    kappa=st.sampled_from([0.01, 1.0]),
)
def test_no_sweep_ascends(seed, n_labels, lengths, missing, penalty, scale, kappa):
    problem, _ = random_problem(seed, n_labels, lengths, missing=missing, scale=scale, n_values=2)
    if (problem.corpus.labels < 0).all():
        return
    working, net, solver = everything(problem), ElasticNet(*penalty), BCD(kappa=kappa)
    state = solver.start(working, net, problem.theta)
    for _ in range(6):
        before = state.value
        solver.step(working, net, state)
        assert state.value <= before + 1e-12 * max(1.0, abs(before))
        assert np.isfinite(state.theta).all()


@in_every_layout
def test_minimiser_with_missing_labels_is_stationary(limits):
    problem, _ = random_problem(65, 3, [6, 4, 7, 5], n_values=2, missing=0.2, n_bigram=3)
    solver = BCD(tolerance=1e-6, window=0.0)
    training = train(problem, 0.5, 0.1, solver, n_threads=1, limits=limits)
    problem.theta = dense_weights(training, len(problem.theta))
    value, gradient = problem.loss()
    assert ElasticNet(0.5, 0.1).distance(problem.theta, gradient) <= 2e-6
    reached = value + ElasticNet(0.5, 0.1).value(problem.theta)
    assert training.objective == pytest.approx(reached, rel=1e-10)


def test_weights_without_curvature_still_move():
    # The label of these weights has a probability of exactly zero.
    working = single_test([0, 1], 3)
    solver, penalty = BCD(), ElasticNet(0.5, 0.0)
    state = solver.start(working, penalty, np.array([0.0, -900.0, 0.0]))
    values = [state.value]
    for _ in range(30):
        solver.step(working, penalty, state)
        values.append(state.value)
        assert np.isfinite(state.theta).all()
    assert all(b <= a for a, b in itertools.pairwise(values))
    assert -900.0 < state.theta[1] <= -860.0


def test_an_objective_that_is_not_finite_is_never_accepted():
    # A step of 1 / kappa that leaves the range of numbers.
    problem, _ = random_problem(66, 3, [5, 4])
    working, penalty = everything(problem), ElasticNet(0.0, 0.1)
    solver = BCD(kappa=1e-3)
    state = solver.start(working, penalty, 1e3 * problem.theta)
    for _ in range(20):
        before = state.value
        solver.step(working, penalty, state)
        assert state.value <= before
    assert np.isfinite(state.value)


@in_every_layout
def test_sweeps_do_not_depend_on_threads(limits):
    problem, _ = random_problem(68, 9, [9, 8, 10, 3] * 5, n_bigram=3, n_values=40, weighted=True)
    names, solver = [str(y) for y in range(9)], BCD(inner_iterations=2)
    options = {"l1": 0.3, "l2": 0.1, "limits": limits._replace(least_tokens=1)}
    runs = [Training(problem.corpus, names, solver, n_threads=n, **options) for n in (1, 2, 7)]
    for _ in range(4):
        assert len({run.step() for run in runs}) == 1
    assert len({run.model().to_bytes() for run in runs}) == 1


def test_a_step_reports_visits_and_leaves_the_last_weights_alone():
    problem, _ = random_problem(70, 3, [9, 8, 10], n_values=3)
    working, penalty, solver = everything(problem), ElasticNet(1e6, 0.0), BCD()
    first = np.zeros(len(problem.theta))
    state = solver.start(working, penalty, first)
    report = solver.step(working, penalty, state)
    layout = working.derived(BlockLayout)
    visits = sum(
        len(set(layout.sequence_of[layout.tokens.indices[a:b]]))
        for a, b in itertools.pairwise(layout.tokens.indptr)
    )
    assert report.passes == visits / 3
    assert report.converged
    assert report.n_active == 0
    assert state.theta is not first
