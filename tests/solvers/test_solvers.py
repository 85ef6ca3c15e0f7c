"""Every solver reaches the same minimiser, with a certificate."""

import itertools

import numpy as np
import pytest

from spacy_sparsecrf.crf.kernels.weight_vectors import two_loops
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers import rprop
from spacy_sparsecrf.crf.solvers.oeg.oeg import OEG
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN, OwlqnState, smooth_direction
from spacy_sparsecrf.crf.solvers.rprop import RPROP
from spacy_sparsecrf.crf.solvers.sag.sag import SAG
from spacy_sparsecrf.crf.solvers.solver import EvaluatedPoint, evaluate, take

from ..reference import bfgs_inverse, local_loss, random_problem
from ..support.data import ORACLE, needs, read_oracle
from ..support.minimisers import (
    ALL_SOLVERS,
    SOLVERS,
    dense_weights,
    kind_of,
    make_loss,
    precise,
    skip_where_refused,
    smooth_minimum,
    train,
)
from ..support.oracle_cases import oracle_corpus, oracle_run
from ..support.solver_cases import METHODS, working_loss

# Of a state of OWL-QN with l1.
NO_PRODUCTS = np.zeros((2, 0, 0))


# Cases with almost no curvature are marked as slow for the slowest solvers.
CASES = []
for solver, options in itertools.product(ALL_SOLVERS, ({}, {"missing": 0.1, "weighted": True})):
    for l1, l2 in ((0.5, 0.1), (0.5, 1e-5), (0.0, 1.0), (2.0, 0.01)):
        is_slow = solver in ("gis", "saga", "saga2") and options and l2 < 1e-3
        marks = [pytest.mark.slow] if is_slow else []
        CASES.append(pytest.param(solver, options, l1, l2, marks=marks))


@pytest.mark.parametrize(("solver", "options", "l1", "l2"), CASES)
def test_minimiser_equals_scipy_on_the_split_variable_problem(solver, options, l1, l2):
    skip_where_refused(solver, l1, options.get("missing", 0.0))
    problem, _ = random_problem(21, 3, [6, 4, 7, 5, 8], n_values=2, **options)
    kind = kind_of(solver)
    expected_value, expected = smooth_minimum(problem, l1, l2, kind)
    training = train(problem, l1, l2, precise(solver), expected_value, kind=kind)
    assert training.objective == pytest.approx(expected_value, rel=1e-7)
    if options.get("missing") and kind == "chain":
        assert training.report.gap == np.inf
    elif l2 >= 0.01:
        assert training.report.gap <= 1e-6 * expected_value
    theta = dense_weights(training, len(expected))
    problem.theta = theta
    _, gradient = problem.loss() if kind == "chain" else local_loss(problem, pairs=True)
    assert ElasticNet(l1, l2).distance(theta, gradient) <= 1e-6
    # Except for ties, at the border of being active.
    idle = np.abs(gradient) < l1 - 1e-3
    assert not theta[idle].any() and idle.any() == (l1 > 0.0)
    if l2 >= 0.01:
        np.testing.assert_allclose(theta, expected, atol=1e-3)


@pytest.mark.parametrize(
    "solver",
    [
        *(SAG(sampling=sampling, method=method) for method, sampling in METHODS),
        OEG(),
    ],
)
def test_convergence_is_linear(solver):
    problem, _ = random_problem(79, 3, [6, 4, 7, 5, 8, 3] * 4, n_values=4)
    is_dual = isinstance(solver, OEG)
    l2 = 5.0 if is_dual else 1.0
    penalty, working = ElasticNet(0.0, l2), working_loss(problem)
    lowest = smooth_minimum(problem, 0.0, l2)[0]
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    gaps = []
    while not gaps or gaps[-1] > 1e-9 * lowest:
        assert len(gaps) < 500
        report = solver.step(working, penalty, state)
        gaps.append(lowest - report.bound if is_dual else report.objective - lowest)
    # Sequences are unseen at first; then the logarithm of the gap falls linearly.
    logs = np.log(gaps[2:])
    assert len(logs) >= 8
    assert np.corrcoef(np.arange(len(logs)), logs)[0, 1] < -0.98
    middle = len(logs) // 2
    if not is_dual:
        assert logs[-1] - logs[middle] < 0.6 * (logs[middle] - logs[0])


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["bcd", "sag", "oeg"])
def test_single_precision_gets_near_the_minimum(solver):
    l1 = 0.0 if solver == "oeg" else 0.3
    problem, _ = random_problem(89, 3, [6, 4, 7, 5], n_values=2)
    expected = smooth_minimum(problem, l1, 0.5)[0]
    make = SOLVERS[solver](tolerance=1e-3, window=0.0)
    training = train(problem, l1, 0.5, make, precision="float32")
    assert training.objective == pytest.approx(expected, rel=1e-5)


def test_no_weight_crosses_zero_in_a_step():
    problem, _ = random_problem(32, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8)
    working, penalty = working_loss(problem, by_example=False), ElasticNet(0.3, 0.01)
    solver = OWLQN()
    state = solver.start(working, penalty, problem.theta)
    for _ in range(20):
        before = state.theta
        solver.step(working, penalty, state)
        assert np.all(before * state.theta >= 0.0)
    assert np.count_nonzero(state.theta) < np.count_nonzero(problem.theta)


@pytest.mark.parametrize(("l1", "l2"), [(0.3, 0.1), (1.0, 0.0)])
def test_the_certificate_is_reached_where_rounding_hides_the_decrease(l1, l2):
    # With gradients of 1e-8, the objective of about 200 still falls by about 1e-16.
    for seed in range(3):
        problem, _ = random_problem(seed, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8)
        training = train(problem, l1, l2, OWLQN(tolerance=1e-8, window=0.0))
        loss = make_loss(problem)
        theta = dense_weights(training, loss.n_potential)
        _, gradient = loss.restrict(loss.coordinates("all")).value_and_grad(theta)
        assert ElasticNet(l1, l2).distance(theta, gradient) <= 1.1e-8


@pytest.mark.parametrize("n_pairs", [0, 3, 4, 11])
def test_inverse_hessian_is_that_of_bfgs_on_free_weights(n_pairs):
    rng = np.random.default_rng(n_pairs)
    root = rng.normal(size=(9, 9))
    steps = rng.normal(size=(max(4, n_pairs), 9))
    # The Hessian is not positive definite: some pairs are skipped.
    changes = steps @ (root @ root.T - 2.0 * np.eye(9))
    metric, free = rng.uniform(0.1, 9.0, 9), rng.random(9) < 0.7
    kept = np.zeros((2, 4, 9))
    for i in range(n_pairs):
        kept[:, i % 4] = steps[i], changes[i]
    if n_pairs > 2:
        # A pair with almost no curvature is skipped, too.
        i, s = (n_pairs - 2) % 4, np.where(free, steps[n_pairs - 2], 0.0)
        changes[n_pairs - 2] -= (s @ changes[n_pairs - 2] / (s @ s) - 1e-12) * s
        kept[1, i] = changes[n_pairs - 2]
    vector = np.where(free, rng.normal(size=9), 0.0)
    got = two_loops(n_pairs, *kept, metric, free, vector)
    last = slice(max(0, n_pairs - 4), n_pairs)
    inverse = bfgs_inverse(steps[last][:, free], changes[last][:, free], metric[free])
    np.testing.assert_allclose(got[free], inverse @ vector[free], rtol=1e-9)
    assert not got[~free].any()


@pytest.mark.parametrize("size", [9, 520])
@pytest.mark.parametrize("reset", [11, 2])
def test_kept_products_give_the_inverse_hessian_of_bfgs(size, reset):
    rng = np.random.default_rng(size)
    curvature, metric = rng.uniform(0.1, 9.0, (2, size))
    pairs = np.zeros((2, 4, size), np.float32)
    state = OwlqnState(*np.zeros((2, size)), 0.0, metric, *pairs, np.zeros((2, 4, 4)))
    last = [*np.zeros((2, 0, size))]
    for i in range(11):
        gradient = rng.normal(size=size)
        got = smooth_direction(state, gradient)
        # The products do not depend on the number of calls.
        assert np.array_equal(smooth_direction(state, gradient), got)
        if i % 3 == 1 or size < 100:
            expected = -bfgs_inverse(*last, metric) @ gradient
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
        if i == reset:
            state.n_pairs, last = 0, [*np.zeros((2, 0, size))]
        step = rng.normal(size=size).astype(np.float32)
        row, pair = state.n_pairs % 4, (step, (curvature * step).astype(np.float32))
        state.steps[row], state.changes[row] = pair
        state.n_pairs += 1
        last = [np.vstack((rows, own))[-4:] for rows, own in zip(last, pair, strict=True)]


@pytest.mark.parametrize("source", [[4, 1], [0, 1, 2, 3, 4], [-1, 3, -1, 0, 1, 2, 4]])
def test_vectors_move_to_another_working_set(source):
    rows, source = np.arange(1.0, 21.0).reshape(4, 5), np.array(source)
    expected = np.where(source >= 0, rows[:3, source], 0.0)
    np.testing.assert_array_equal(take(rows[:3], source), expected)
    # Pairs without curvature are not kept.
    state = OwlqnState(
        np.zeros(2), np.zeros(2), 0.0, np.ones(2), *np.zeros((2, 20, 2)), NO_PRODUCTS
    )
    for gradient, n_pairs in (([0.0, 1.0], 0), ([0.0, 1.0], 1)):
        theta = state.theta + np.array([1.0, float(n_pairs)])
        OWLQN()._accept(state, EvaluatedPoint(theta, -1.0, state.gradient + gradient))
        assert state.n_pairs == n_pairs


def test_classic_directions_leave_weights_without_gradient():
    rng, theta = np.random.default_rng(0), np.array([0.5, 0.0, -0.2, 0.0, 0.0, 1.0])
    vectors = theta, np.zeros(6), 0.0, np.ones(6), *rng.normal(size=(2, 5, 6))
    state = OwlqnState(*vectors, NO_PRODUCTS, n_pairs=5)
    state.changes[:] = state.steps + 0.3 * state.changes
    pseudo = np.array([0.3, 0.0, -0.7, 0.0, 0.4, 0.0])
    direction = OWLQN()._direction(state, ElasticNet(0.1, 0.1), pseudo)
    assert not direction[(theta == 0.0) & (direction * pseudo >= 0.0)].any()
    direction = OWLQN(variant="classic")._direction(state, ElasticNet(0.1, 0.1), pseudo)
    assert not direction[pseudo == 0.0].any()
    assert (direction * pseudo <= 0.0).all() and np.count_nonzero(direction) == 3


def test_rprop_survives_a_point_without_finite_objective(monkeypatch):
    problem, _ = random_problem(30, 3, [6, 5])
    working, penalty = working_loss(problem, by_example=False), ElasticNet(0.0, 0.1)
    monkeypatch.setattr(rprop, "LARGEST", 1e9)
    solver = RPROP(first_width=1e7)
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    first = state.value
    for _ in range(60):
        report = solver.step(working, penalty, state)
    assert report.objective < first


@needs(ORACLE / "oracle.json")
@pytest.mark.parametrize(
    ("case", "n_steps", "rel"), [("l2", 30, 1e-10), ("en", 60, 1e-8), ("l1", 25, 3e-5)]
)
def test_optimum_equals_the_independent_programs(case, n_steps, rel):
    oracle, (training, reports) = read_oracle(), oracle_run(case, n_steps)
    expected, corpus = oracle["cases"][case], oracle_corpus()
    assert corpus.n_potential(len(oracle["labels"])) == oracle["features"]
    assert len(corpus.unigram_keys) + len(corpus.bigram_keys) == oracle["attributes"] + 1
    assert training.objective == pytest.approx(expected["objective"], rel=rel)
    assert training.objective >= expected["objective"] * (1 - 1e-9)
    for report in reports:
        above = report.objective - expected["objective"]
        assert report.gap >= above - 1e-9 * expected["objective"]
    bounded = case in ("l2", "en")
    assert (reports[-1].gap <= 1e-6 * expected["objective"]) == bounded


class Overflowing:
    """A loss (theta - 3)^2 with value -100 and gradient NaN from theta = 5 on."""

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        if theta[0] >= 5.0:
            return -100.0, np.full(1, np.nan)
        return float((theta[0] - 3.0) ** 2), 2.0 * (theta - 3.0)


def test_no_step_leads_where_the_gradient_is_not_finite():
    penalty, solver = ElasticNet(0.1, 0.0), OWLQN(tolerance=1e-6)
    start, gradient = evaluate(Overflowing(), penalty, np.array([1.0]))
    # A metric that makes the first steps too long.
    pair = np.eye(20, 1), 0.01 * np.eye(20, 1)
    state = OwlqnState(np.array([1.0]), gradient, start, np.full(1, 100.0), *pair, NO_PRODUCTS)
    for _ in range(30):
        if solver.step(Overflowing(), penalty, state).converged:
            break
    assert state.theta == pytest.approx([2.95])
