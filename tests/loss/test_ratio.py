"""The expected entity ratio: value and gradient equal enumeration, screening includes it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.loss.ratio import EntityRatio
from spacy_sparsecrf.testing import check_loss

from ..reference import Problem, random_problem
from ..training.learning_cases import loss_of, partial_problem
from .layouts import in_every_layout

LENGTHS = [4, 0, 1, 3]
CASES = [
    {},
    {"constrained": True, "weighted": True, "n_bigram": 3},
    {"missing": 0.7, "ambiguous": 0.0, "start_label": False},
    {"missing": 0.0, "ambiguous": 0.0, "n_unigram": 0},
]


def ratio_of(n_labels: int, rho: float = 0.2, margin: float = 0.05) -> EntityRatio:
    return EntityRatio(np.arange(n_labels) > 0, rho, margin, 30.0)


def twin(problem: Problem, ratio: EntityRatio) -> float:
    """Return the loss with the ratio term, from marginals over all paths."""
    used = [(t, w) for t, w in zip(problem.sequences(), problem.corpus.weights, strict=True) if t]
    expected = sum(w * problem.marginals(t)[:, ratio.labels].sum() for t, w in used)
    n_tokens = sum(w * len(t) for t, w in used)
    excess = max(0.0, abs(expected / n_tokens - ratio.rho) - ratio.margin)
    return float(problem.loss()[0] + 0.5 * ratio.strength * n_tokens * excess**2)


def moved(problem: Problem, direction: np.ndarray) -> Problem:
    return Problem(problem.corpus, problem.n_labels, problem.theta + direction, problem.valid)


@in_every_layout
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_value_and_gradient_equal_enumeration(case, limits, rho):
    problem = partial_problem(301, 3, LENGTHS, **case)
    ratio = ratio_of(3, rho, 0.01)
    loss = loss_of(problem, limits=limits, ratio=ratio)
    working = loss.restrict(loss.all_coordinates())
    value, gradient = working.value_and_grad(problem.theta)
    assert value == pytest.approx(twin(problem, ratio), rel=1e-10)
    assert abs(value - problem.loss()[0]) > 1e-3
    rng = np.random.default_rng(0)
    for step in 1e-5 * rng.normal(size=(3, len(gradient))):
        ahead, behind = (twin(moved(problem, d), ratio) for d in (step, -step))
        assert ahead - behind == pytest.approx(2.0 * float(gradient @ step), rel=1e-6, abs=1e-9)


@in_every_layout
@pytest.mark.parametrize("case", CASES)
def test_screening_finds_exactly_the_violators(case, limits):
    problem = partial_problem(302, 3, LENGTHS, **case)
    chosen = np.arange(0, len(problem.theta), 3)
    problem.theta[np.setdiff1d(np.arange(len(problem.theta)), chosen)] = 0.0
    loss = loss_of(problem, limits=limits, ratio=ratio_of(3))
    whole = loss.restrict(loss.all_coordinates())
    _, gradient = whole.value_and_grad(problem.theta)
    working = loss.restrict(chosen)
    np.testing.assert_allclose(
        working.value_and_grad(problem.theta[chosen])[1], gradient[chosen], atol=1e-12
    )
    found, values, _ = loss.screen(working, problem.theta[chosen], 0.1, limit=10_000)
    np.testing.assert_array_equal(found, np.flatnonzero(np.abs(gradient) > 0.1))
    np.testing.assert_allclose(values, gradient[found], atol=1e-11)


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.sampled_from(["float64", "float32"]))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_gradients_are_differences_for_any_threads(seed, n_labels, precision):
    problem, _ = random_problem(seed, n_labels, [6, 12, 1, 9] * 3, missing=0.6)
    results = []
    for n_threads in (1, 3):
        loss = loss_of(problem, n_threads=n_threads, precision=precision, ratio=ratio_of(n_labels))
        working = loss.restrict(loss.all_coordinates())
        results.append(working.value_and_grad(problem.theta))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
    exact = loss_of(problem, ratio=ratio_of(n_labels))
    check_loss(exact.restrict(exact.all_coordinates()), problem.theta)
