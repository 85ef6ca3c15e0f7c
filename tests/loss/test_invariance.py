"""Results are bit-identical for any number of threads; sizes of work change only rounding."""

from functools import cache

import numpy as np
import pytest

from spacy_sparsecrf.loss.hessian import HessianProduct
from spacy_sparsecrf.loss.workspace import LIMITS, Limits

from ..features.reference_values import random_value_problem
from ..reference import Problem, random_problem
from ..training.learning_cases import loss_of, partial_problem
from .layouts import LAYOUTS

LENGTHS = [7, 1, 3, 12, 5] * 8
MANY = {"n_bigram": 2, "missing": 0.05, "weighted": True}
PARTIAL = {"missing": 0.1, "ambiguous": 0.2, "constrained": True}
PROBLEMS = {
    "3 labels": lambda: random_problem(13, 3, LENGTHS, **MANY)[0],
    "24 labels": lambda: random_problem(13, 24, LENGTHS, **MANY)[0],
    "partial labels": lambda: partial_problem(210, 4, [2, 1, 4] * 30, **PARTIAL),
    "real values": lambda: random_value_problem(13, 6, LENGTHS, n_real=33, missing=0.1)[0],
}
# Other sizes of work items, each of which changes the order of sums.
SIZES = {
    "shards": {"shard_bytes": 8 * 8 * 40, "held_pairs": 100},
    "spans": {"span": 16},
    "1 chunk": {"n_chunks": 1, "sums_bytes": 1},
    "7 chunks": {"n_chunks": 7},
    "no batches": {"together": 1},
    "large batches": {"together": 99, "n_chunks": 2},
    "no frequent features": {"table_bytes": 0},
    "few frequent features": {"table_bytes": 3 * 8 * 8},
}


@cache
def problem_of(name: str) -> Problem:
    problem: Problem = PROBLEMS[name]()
    # Few bigram weights, so that contexts have matrices and sparse corrections.
    rng = np.random.default_rng(1)
    problem.lam[rng.random(problem.lam.shape) < 0.5] = 0.0
    return problem


@cache
def results(name: str, limits: Limits, n_threads: int = 1) -> list[np.ndarray]:
    """Return loss, gradient, Hessian product and violators, for the non-zero weights."""
    problem = problem_of(name)
    chosen = np.flatnonzero(problem.theta)
    loss, theta = loss_of(problem, n_threads=n_threads, limits=limits), problem.theta[chosen]
    working = loss.restrict(chosen)
    value, gradient = working.value_and_grad(theta)
    gradient = gradient.copy()
    found = loss.screen(working, theta, 0.1, 10_000)
    hessian = HessianProduct(working)
    hessian.prepare(theta)
    product = hessian.product(np.cos(np.arange(len(theta))))
    if limits.shard_bytes < LIMITS.shard_bytes:
        assert len(working.space.shards) > 3
    return [np.array([value]), gradient, product, *found]


@pytest.mark.parametrize("n_threads", [2, 7])
@pytest.mark.parametrize("limits", [LIMITS, *LAYOUTS.values()], ids=["rule", *LAYOUTS])
@pytest.mark.parametrize("name", PROBLEMS)
def test_threads_change_no_bit(name, limits, n_threads):
    expected, found = results(name, limits), results(name, limits, n_threads)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_sizes_change_only_rounding(name, layout, size):
    expected = results(name, LAYOUTS[layout])
    found = results(name, LAYOUTS[layout]._replace(**SIZES[size]))
    np.testing.assert_array_equal(found[3], expected[3])
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-10)
