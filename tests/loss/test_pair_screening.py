"""Screening of bigram weights computes few pairs, and finds what computing all of them finds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.kernels import screening as kernels
from spacy_sparsecrf.loss import screening as pair_screening
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.parallel import Workers

from ..reference import random_problem


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.floats(0.01, 2.0), st.floats(0.0, 1.0))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_violator_is_left_out(seed, n_labels, threshold, missing):
    options = {"n_bigram": 2, "n_values": 5, "missing": missing, "weighted": True, "scale": 2.0}
    problem, _ = random_problem(seed, n_labels, [3, 7, 1, 6], **options)
    problem.corpus.labels[0] = 0
    n = len(problem.theta)
    chosen = np.flatnonzero(np.random.default_rng(0).random(n) < 0.3)
    loss = ChainLoss(problem.corpus, n_labels, Workers(1))
    found, gradients = loss.screen(loss.restrict(chosen), problem.theta[chosen], threshold, n)
    whole = np.zeros(n)
    whole[chosen] = problem.theta[chosen]
    _, gradient = loss.restrict(np.arange(n)).value_and_grad(whole)
    np.testing.assert_array_equal(found, np.flatnonzero(np.abs(gradient) > threshold))
    np.testing.assert_allclose(gradients, gradient[found], atol=1e-12)


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
