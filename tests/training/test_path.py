"""The regularisation path: each point equals the solution of a cold start."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.analysis.regularization_path import (
    begin_at_zero,
    check_l1s,
    check_solver,
    choose,
    falling_l1s,
    finish,
    follow,
)
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training.training import Training

from ..reference import Problem, local_loss, random_problem
from ..solvers.test_solvers import ALL_SOLVERS, dense_weights, kind_of, make_loss, precise, train

L2 = 0.1
L1S = [4.0, 2.0, 0.9, 0.8, 0.3]
NO_ROOM = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.5), (1.0, 2.0)]
NO_L1S = [[], [1.0, 0.0], [-1.0], [float("nan")], [float("inf"), 1.0]]
INEXACT = ["NewtonCG", "SGD", "SGDL1", "AdaGrad", "SMD", "Perceptron"]
EXACT = [name for name in ALL_SOLVERS if name not in ("newton-cg", "oeg")]


def small(**options: Any) -> Problem:
    return random_problem(21, 3, [6, 4, 7, 5, 8], **{"n_values": 2, **options})[0]


def begun(problem: Problem, solver=None, l1=0.25, **options) -> Training:
    solver = OWLQN(tolerance=1e-7, window=0.0) if solver is None else solver
    return Training(problem.corpus, list("abc"), solver, l1=l1, l2=L2, **options)


def full(problem: Problem, theta: np.ndarray, kind: str = "chain") -> tuple[float, np.ndarray]:
    """Return the loss, and the gradient of all potential weights."""
    loss = make_loss(problem, kind)
    return loss.restrict(loss.all_coordinates()).value_and_grad(theta)


@cache
def cold_objective(name: str, l1: float) -> float:
    """Return the final objective of a cold start with this l1."""
    return train(small(), l1, L2, precise(name), kind=kind_of(name)).objective


@pytest.mark.parametrize(
    ("name", "from_zero"), [*((name, True) for name in EXACT), ("owlqn", False), ("bcd", False)]
)
def test_each_point_is_what_a_cold_run_finds(name: str, from_zero: bool):
    problem, kind = small(), kind_of(name)
    training = begun(problem, precise(name), kind=kind)
    if from_zero:
        begin_at_zero(training)
    for solution in follow(training, L1S, max_steps=300):
        cold = cold_objective(name, solution.l1)
        assert solution.objective == pytest.approx(cold, rel=1e-6)
        theta = dense_weights(training, training.n_potential)
        distance = ElasticNet(solution.l1, L2).distance(theta, full(problem, theta, kind)[1])
        assert distance <= 1e-6
        assert solution.optimality == pytest.approx(distance, abs=1e-6)
        assert solution.n_active == np.count_nonzero(theta)
        assert solution.converged


def test_a_path_of_labels_in_clusters():
    problem, solver = small(n_bigram=0), OWLQN(tolerance=1e-7, window=0.0)
    options = {"kind": "maxent", "clusters": 2}
    training = begun(problem, solver, **options)
    for solution in follow(training, [2.0, 0.5]):
        cold = train(problem, solution.l1, L2, solver, **options)
        assert solution.objective == pytest.approx(cold.objective, rel=1e-6)


def test_a_window_ends_points_early_and_the_chosen_one_is_finished():
    exact = list(follow(begun(small()), L1S))
    training = begun(small())
    near, weights = [], []
    for solution in follow(training, L1S, window=1e-2):
        near.append(solution)
        weights.append(training.weights)
    assert sum(s.n_steps for s in near) < sum(s.n_steps for s in exact)
    assert not all(s.converged for s in near)
    for early, late in zip(near, exact, strict=True):
        assert early.objective == pytest.approx(late.objective, rel=1e-2)
    for i in (3, 1, 4):
        end = finish(training, L1S[i], weights[i])
        assert (end.l1, end.converged) == (L1S[i], True)
        assert end.objective == pytest.approx(exact[i].objective, rel=1e-9)
        assert end.n_active == exact[i].n_active


def test_steps_that_end_too_early_are_warned_of():
    training = begun(small(), OWLQN(inner_iterations=1))
    with pytest.warns(SparseCRFWarning, match=r"SCW701.*l1 = 0\.5 .*2 outer"):
        solution = next(follow(training, [0.5], max_steps=2))
    assert (solution.n_steps, solution.converged) == (2, False)


def test_an_objective_that_is_not_finite_is_an_error(monkeypatch: pytest.MonkeyPatch):
    training = begun(small())
    broken = replace(training.step(), objective=float("nan"))
    monkeypatch.setattr(training, "step", lambda: broken)
    with pytest.raises(SparseCRFError, match=r"SC705.*l1 = 0\.5"):
        next(follow(training, [0.5]))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("chain", {}),
        ("chain", {"start_label": False}),
        ("chain", {"missing": 0.2, "weighted": True}),
        ("chain", {"n_bigram": 0}),
        ("memm", {}),
    ],
)
def test_largest_gradient(kind: str, options: dict[str, object]):
    problem, _ = random_problem(5, 3, [4, 3, 5, 1, 2], **options)
    training = Training(problem.corpus, list("abc"), OWLQN(), l1=1.0, l2=0.1, kind=kind)
    problem.theta = np.zeros(len(problem.theta))
    gradient = (problem.loss() if kind == "chain" else local_loss(problem, pairs=True))[1]
    assert training.largest_gradient() == pytest.approx(np.abs(gradient).max(), rel=1e-12)


@given(st.floats(0.01, 0.99), st.floats(1e-6, 1e6), st.integers(1, 50))
def test_automatic_values_fall_geometrically(share: float, highest: float, n: int):
    lowest = share * highest
    values = falling_l1s(highest, lowest, n)
    assert len(values) == n
    assert values[-1] == lowest
    ratios = np.divide(values, [highest, *values[:-1]])
    np.testing.assert_allclose(ratios, share ** (1 / n), rtol=1e-9)


def solver_named(name: str) -> Any:
    return crf_solvers.get(f"spacy_sparsecrf.{name}.v1")()


@pytest.mark.parametrize(
    ("do", "message"),
    [
        *((partial(falling_l1s, *ends, 3), "SC704.*l1 = ") for ends in NO_ROOM),
        (partial(falling_l1s, 1.0, 0.5, 0), "SC703.*not 0"),
        *((partial(check_l1s, values), "SC702") for values in NO_L1S),
        *((lambda name=name: check_solver(solver_named(name)), "SC701") for name in INEXACT),
        (lambda: begun(small()).change_l1(-1.0), "SC303"),
        (lambda: begun(small(), l1=0.5).change_l1(0.4), r"SC322.*l1 = 0.4 is below 0.5"),
    ],
)
def test_what_is_no_path_is_refused(do: Callable[[], object], message: str):
    with pytest.raises(SparseCRFError, match=message):
        do()


POINTS = st.lists(
    st.tuples(st.sampled_from([0.5, 0.9, 0.95, 0.951]), st.integers(1, 4)), min_size=1, max_size=6
)


@given(POINTS, st.sampled_from([0.0, 0.001, 0.05, 1.0]))
def test_the_choice_is_the_smallest_near_the_best(points: list[tuple[float, int]], within: float):
    scores, sizes = [score for score, _ in points], [size for _, size in points]
    chosen = choose(scores, sizes, within)
    near = [i for i, score in enumerate(scores) if score >= max(scores) - within]
    assert chosen in near
    assert sizes[chosen] == min(sizes[i] for i in near)
    assert all(scores[i] <= scores[chosen] for i in near if sizes[i] == sizes[chosen])
