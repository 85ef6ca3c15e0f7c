"""Screening of bigram weights computes few pairs, and finds what computing all of them finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.kernels import screening as kernels
from spacy_sparsecrf.loss import screening as pair_screening
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.workspace import LIMITS, Limits
from spacy_sparsecrf.parallel import Workers

from ..reference import Problem, random_problem
from .layouts import in_every_layout


def found_and_expected(
    problem: Problem,
    threshold: float,
    share: float = 0.3,
    n_threads: int = 1,
    limits: Limits = LIMITS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What screening finds with some of the weights working, and by the gradient of all."""
    n = len(problem.theta)
    chosen = np.flatnonzero(np.random.default_rng(0).random(n) < share)
    theta = problem.theta[chosen]
    options = {"legal": problem.legal, "limits": limits}
    loss = ChainLoss(problem.corpus, problem.n_labels, Workers(n_threads), **options)
    found, gradients = loss.screen(loss.restrict(chosen), theta, threshold, n)
    whole = np.zeros(n)
    whole[chosen] = theta
    _, gradient = loss.restrict(np.arange(n)).value_and_grad(whole)
    expected = np.flatnonzero(np.abs(gradient) > threshold)
    return found, gradients, expected, gradient[expected]


def check(problem: Problem, threshold: float, **options: Limits) -> int:
    found, gradients, expected, values = found_and_expected(problem, threshold, **options)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(gradients, values, atol=1e-12)
    return len(found)


@in_every_layout
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"start_label": False},
        {"weighted": True, "missing": 0.4},
        {"missing": 0.5, "start_label": False},
        {"scale": 6.0},
    ],
)
@pytest.mark.parametrize("threshold", [0.0, 0.2, 1.0, 2.0])
def test_the_violators_are_those_of_the_whole_gradient(limits, options, threshold):
    problem, _ = random_problem(3, 5, [5, 1, 9, 4] * 3, n_bigram=3, n_values=6, **options)
    assert check(problem, threshold, limits=limits) > 0


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.floats(0.01, 2.0), st.floats(0.0, 1.0))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_violator_is_left_out(seed, n_labels, threshold, missing):
    options = {"n_bigram": 2, "n_values": 5, "missing": missing, "weighted": True, "scale": 2.0}
    problem, _ = random_problem(seed, n_labels, [3, 7, 1, 6], **options)
    problem.corpus.labels[0] = 0
    check(problem, threshold)


def test_half_precision_leaves_no_violator_out():
    problem, _ = random_problem(6, 8, [40] * 20, n_bigram=2, n_values=30, scale=3.0)
    n = len(problem.theta)
    for threshold in (0.5, 1.0):
        results = []
        for precision in ("float32", "float64"):
            loss = ChainLoss(problem.corpus, 8, Workers(1), precision)
            working = loss.restrict(np.arange(n))
            results.append(loss.screen(working, problem.theta, threshold, n))
        (found, gradients), (exact, values) = results
        # But for those that are no violators by rounding.
        near = np.abs(np.abs(values) - threshold) < 1e-4
        assert np.isin(exact[~near], found).all()
        both = np.isin(exact, found)
        np.testing.assert_allclose(gradients[np.isin(found, exact)], values[both], atol=1e-4)


def test_gold_labels_that_may_be_several_count():
    problem, _ = random_problem(7, 4, [6, 4, 8] * 4, n_bigram=2)
    sets = np.array([[True, True, False, False], [False, True, True, True]])
    problem.corpus.labels[::5] = -2
    problem.corpus.labels[2::7] = -3
    object.__setattr__(problem.corpus, "sets", sets)
    assert check(problem, 0.3) > 0


def test_few_pairs_are_computed(monkeypatch):
    """A test that occurs w times cannot have more than w / threshold labels beside it."""
    problem, _ = random_problem(8, 30, [20] * 30, n_bigram=2, n_values=400)
    loss = ChainLoss(problem.corpus, 30, Workers(1))
    areas = []

    def collect(*arguments: object) -> int:
        areas.append(arguments[4].area_ptr[-1])
        return kernels.screen_pairs(*arguments)

    monkeypatch.setattr(pair_screening, "screen_pairs", collect)
    nothing = np.empty(0, np.int64)
    loss.screen(loss.restrict(nothing), np.empty(0), 0.99, 10_000)
    n_tests = len(problem.corpus.bigram_keys)
    assert 0 < max(areas) < 0.1 * n_tests * 31 * 30
