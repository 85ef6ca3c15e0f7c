"""Block coordinate descent: safeguards, threads, minimisers."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.crf.solvers.bcd.block_loss import BlockDescent

from ..reference import random_problem
from ..support.layouts import in_every_layout
from ..support.runs import training_of
from ..support.solver_cases import single_test
from ..support.solver_cases import working_loss as everything


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


def test_weights_without_curvature_still_move_and_do_not_hold_up_the_others():
    # The label of these weights has probability exactly zero.
    working, solver, penalty = single_test([0, 1], 3), BCD(), ElasticNet(0.5, 0.0)
    state = solver.start(working, penalty, np.array([0.0, -900.0, 0.0]))
    values = [state.value]
    for _ in range(30):
        solver.step(working, penalty, state)
        values.append(state.value)
        assert np.isfinite(state.theta).all()
    assert all(b <= a for a, b in itertools.pairwise(values))
    assert -900.0 < state.theta[1] <= -860.0
    # The gold label has a probability near zero.
    solver, penalty = BCD(common=True), ElasticNet(0.0, 0.1)
    state = solver.start(working, penalty, np.array([-900.0, 0.0, 0.0]))
    solver.step(working, penalty, state)
    assert -900.0 < state.theta[0] <= -899.0
    assert (state.theta[1:] < -0.5).all()


def test_an_objective_that_is_not_finite_is_never_accepted_and_blocks_without_step_are_restored():
    problem, _ = random_problem(66, 3, [5, 4])
    working, theta = everything(problem), problem.theta.copy()
    # A step of 1 / kappa overflows.
    penalty, solver = ElasticNet(0.0, 0.1), BCD(kappa=1e-3)
    state = solver.start(working, penalty, 1e3 * problem.theta)
    for _ in range(20):
        before = state.value
        solver.step(working, penalty, state)
        assert state.value <= before
    assert np.isfinite(state.value)
    descent = BlockDescent(working, ElasticNet(0.3, 0.1), 1.0, False, theta, np.ones(len(theta)))
    # No decrease is sufficient.
    descent._settings = descent._settings._replace(noise=-1e9)
    descent.run()
    np.testing.assert_array_equal(theta, problem.theta)
    assert descent.counts[0] > 60


@in_every_layout
def test_sweeps_do_not_depend_on_threads(limits):
    problem, _ = random_problem(68, 9, [9, 8, 10, 3] * 5, n_bigram=3, n_values=40, weighted=True)
    names, solver = [str(y) for y in range(9)], BCD(inner_iterations=2)
    options = {"l1": 0.3, "l2": 0.1, "limits": limits}
    runs = [training_of(problem.corpus, names, solver, n_threads=n, **options) for n in (1, 2, 7)]
    for _ in range(4):
        assert len({run.step() for run in runs}) == 1
    assert len({run.model().to_bytes() for run in runs}) == 1
