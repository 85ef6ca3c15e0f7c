"""Trust-region Newton: constants, steps, start, stored vectors."""

import itertools
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.working import ChainWorkingLoss
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.newton import newton_cg
from spacy_sparsecrf.crf.solvers.newton.newton_cg import (
    NewtonCG,
    NewtonCGState,
    adapted_radius,
    truncated_newton_step,
)
from spacy_sparsecrf.crf.solvers.solver import StepReport, evaluate
from spacy_sparsecrf.errors import SparseCRFError

from ..reference import Problem, random_problem
from ..support.solver_cases import working_loss

ALL = 1e9


def run(
    problem: Problem, l2: float, theta: np.ndarray, n_steps: int, **settings: Any
) -> tuple[NewtonCGState, list[StepReport]]:
    solver = NewtonCG(**({"tolerance": 1e-9, "window": 0.0} | settings))
    loss, penalty = working_loss(problem, by_example=False), ElasticNet(0.0, l2)
    state = solver.start(loss, penalty, theta)
    reports: list[StepReport] = []
    while len(reports) < n_steps and not (reports and reports[-1].converged):
        reports.append(solver.step(loss, penalty, state))
    return state, reports


@pytest.mark.parametrize(
    ("product", "gradient", "expected"),
    [(lambda v: 2.0 * v, [4.0, -2.0], [-2.0, 1.0]), (np.copy, [3.0, -4.0], [-3.0, 4.0])],
)
def test_an_exact_step_ends_the_products(product, gradient, expected):
    step, residual = truncated_newton_step(product, np.array(gradient), 9.0, 0.0, 10)
    assert step.tolist() == expected and residual.tolist() == [0.0, 0.0]


# A step of length 2 with slope -1; the parabola's minimum lies at length / (2 (1 - actual)).
@pytest.mark.parametrize(
    ("radius", "actual", "predicted", "expected"),
    [
        # Poor: between a quarter of the step and half the radius.
        (2.0, -np.inf, 0.5, 0.5),
        (2.0, -1.0, 0.5, 0.5),
        (2.0, -0.5, 0.5, 2.0 / 3.0),
        (8.0, -np.inf, 0.5, 0.5),
        (1.0, 0.0, 0.5, 0.5),
        # In between: from a quarter of the radius to four times the radius.
        (4.0, 0.25, 0.5, 4.0 / 3.0),
        (8.0, 0.25, 0.5, 2.0),
        (0.2, 0.25, 0.5, 0.8),
        # Good: at least the radius, up to four times.
        (4.0, 0.45, 0.5, 4.0),
        (1.0, 0.45, 0.5, 2.0 / 1.1),
        (0.2, 0.5, 0.5, 0.8),
        # The objective is not convex along the step.
        (2.0, 1.0, 1.0, 8.0),
    ],
)
def test_the_radius_follows_the_ratio_of_reductions(radius, actual, predicted, expected):
    assert adapted_radius(radius, 2.0, actual, predicted, -1.0) == pytest.approx(expected)


def quadratic(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Return a positive definite matrix and a gradient."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return root @ root.T + 0.1 * np.eye(n), rng.normal(size=n)


def scaled_down(vector: np.ndarray) -> np.ndarray:
    return -vector / np.linalg.norm(vector)


@pytest.mark.parametrize(("radius", "shift"), [(ALL, 0.0), (1e-3, 0.0), (0.3, 0.0), (2.0, 5.0)])
def test_steps_minimise_the_model_inside_the_region_or_end_at_its_boundary(radius, shift):
    hessian, gradient = quadratic(2)
    hessian -= shift * np.eye(12)
    step, residual = truncated_newton_step(hessian.dot, gradient, radius, 1e-10, 50)
    if radius == ALL:
        np.testing.assert_allclose(step, np.linalg.solve(hessian, -gradient), rtol=1e-6)
    else:
        assert np.sqrt(step @ step) == pytest.approx(radius, rel=1e-9)
    np.testing.assert_allclose(residual, -gradient - hessian @ step, atol=1e-9)
    # No gradient step of that length is better.
    cauchy = scaled_down(gradient) * np.sqrt(step @ step)
    model = [gradient @ s + 0.5 * s @ hessian @ s for s in (step, cauchy)]
    assert model[0] <= model[1] + 1e-12 and model[0] < 0.0


@pytest.mark.parametrize("xi", [0.9, 0.1, 0.01])
def test_conjugate_gradients_stop_at_a_fraction_of_the_gradient(xi):
    hessian, gradient = quadratic(1)
    n_products = 0

    def product(vector):
        nonlocal n_products
        n_products += 1
        return hessian @ vector

    def left(n: int) -> float:
        step, _ = truncated_newton_step(hessian.dot, gradient, ALL, 0.0, n)
        return np.linalg.norm(hessian @ step + gradient) / np.linalg.norm(gradient)

    truncated_newton_step(product, gradient, ALL, xi, 50)
    assert left(n_products) <= xi
    assert all(left(n) > xi for n in range(1, n_products))


def test_steps_end_where_rounding_hides_the_decrease_and_the_radius_is_kept():
    problem, _ = random_problem(82, 2, [2, 1])
    state, reports = run(problem, 0.5, np.zeros(len(problem.theta)), 30, tolerance=0.0)
    assert state.stalled and reports[-1].converged and reports[-1].optimality < 1e-9


def test_the_last_steps_converge_quadratically_with_no_more_products_than_allowed(monkeypatch):
    problem, _ = random_problem(84, 3, [9, 8, 10, 3] * 5, n_values=5)
    start = np.zeros(len(problem.theta))
    monkeypatch.setattr(newton_cg, "MOST_PRODUCTS", 2000)
    _, reports = run(problem, 0.5, start, 20, xi=1e-10)
    distances = [report.optimality for report in reports]
    assert reports[-1].converged and len(distances) <= 10
    near = [(a, b) for a, b in itertools.pairwise(distances) if a < 0.3]
    assert len(near) >= 2
    assert all(b <= max(2.0 * a * a, 1e-10) for a, b in near)
    monkeypatch.setattr(newton_cg, "MOST_PRODUCTS", 4)
    _, reports = run(problem, 1e-3, start, 3, xi=0.0)
    # Each trial takes some products and an evaluation.
    assert all(report.passes >= 2.0 for report in reports) and reports[0].passes <= 5.0


@pytest.mark.parametrize(
    ("options", "l2", "scale"),
    [
        *(({}, 0.5, scale) for scale in (1.0, 20.0, 200.0)),
        # Flat, because probabilities are near 0 or 1.
        ({"n_values": 8}, 1e-3, None),
        ({"n_values": 8}, 1e-8, None),
        # Clamped lattices make the loss concave in places.
        ({"missing": 0.7, "weighted": True}, 0.05, 1.0),
    ],
)
def test_no_step_ascends_on_the_way_to_a_minimum(options, l2, scale):
    problem, _ = random_problem(88, 3, [6, 4, 7, 5, 8], n_bigram=3, **options)
    start = np.where(np.arange(len(problem.theta)) % 2, 30.0, -30.0)
    start = start if scale is None else scale * problem.theta
    state, reports = run(problem, l2, start, 100, tolerance=1e-6)
    values = [report.objective for report in reports]
    # Near 0, log Z less the score of the gold labels is a difference of numbers of the size of 100.
    assert all(b <= a * (1.0 + 1e-12) + 1e-13 for a, b in itertools.pairwise(values))
    assert np.isfinite(state.theta).all() and values[-1] < values[0]
    if l2 >= 0.01:
        assert reports[-1].optimality <= 1e-5
        problem.theta = state.theta
        assert ElasticNet(0.0, l2).distance(state.theta, problem.loss()[1]) <= 1e-5


class Damaged:
    """A loss with finite values, whose gradient is NaN far from zero."""

    def __init__(self, loss: ChainWorkingLoss, reach: float) -> None:
        self.loss, self.reach = loss, reach

    def __getattr__(self, name: str):
        return getattr(self.loss, name)

    def value_and_grad(self, theta):
        value, gradient = self.loss.value_and_grad(theta)
        return value, gradient if np.abs(theta).max() < self.reach else np.nan * gradient


def test_points_without_a_finite_gradient_are_not_visited():
    problem, _ = random_problem(90, 3, [4, 3, 5, 5])
    loss, penalty = (working_loss(problem, by_example=False), ElasticNet(0.0, 0.1))
    assert not np.isfinite(evaluate(Damaged(loss, 0.0), penalty, problem.theta)[0])
    with pytest.raises(SparseCRFError, match="SC307"):
        NewtonCG().start(Damaged(loss, 0.0), penalty, problem.theta)
    point = NewtonCG().start(Damaged(loss, ALL), penalty, problem.theta)
    assert point.value == pytest.approx(problem.loss()[0] + penalty.value(problem.theta))


def test_products_that_are_not_finite_leave_a_step_downhill():
    _, gradient = quadratic(4)
    step, residual = truncated_newton_step(lambda vector: np.nan * vector, gradient, 0.7, 0.1, 50)
    assert np.sqrt(step @ step) == pytest.approx(0.7)
    np.testing.assert_allclose(step / np.linalg.norm(step), scaled_down(gradient))
    np.testing.assert_array_equal(residual, -gradient)
