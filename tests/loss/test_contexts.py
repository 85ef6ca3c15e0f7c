"""Matrices, entries, blocks and precisions: the loss is the same however it is computed."""

import numpy as np
import pytest

from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.working import WorkingLoss
from spacy_sparsecrf.loss.workspace import LIMITS, Limits
from spacy_sparsecrf.parallel import Workers

from ..reference import Problem, random_problem
from .layouts import LAYOUTS, in_every_layout

OPTIONS = [
    {"n_bigram": 3},
    {"n_bigram": 3, "start_label": False},
    {"n_bigram": 2, "missing": 0.3, "weighted": True},
    {"n_bigram": 0},
]


def sparse_problem(seed: int, n_labels: int, lengths: list[int], **options) -> Problem:
    """A random problem most of whose weights are zero."""
    problem, _ = random_problem(seed, n_labels, lengths, **options)
    rng = np.random.default_rng(seed)
    problem.theta[rng.random(len(problem.theta)) < 0.7] = 0.0
    return problem


def restricted(
    problem: Problem,
    precision: str = "float64",
    n_threads: int = 1,
    limits: Limits = LIMITS,
) -> WorkingLoss:
    workers = Workers(n_threads)
    loss = ChainLoss(problem.corpus, problem.n_labels, workers, precision, limits=limits)
    return loss.restrict(np.flatnonzero(problem.theta))


def evaluate(problem: Problem, **options) -> tuple[float, np.ndarray]:
    theta = problem.theta[problem.theta != 0.0]
    return restricted(problem, **options).value_and_grad(theta)


@in_every_layout
@pytest.mark.parametrize("options", OPTIONS)
def test_every_layout_equals_enumeration(limits, options):
    problem = sparse_problem(61, 4, [4, 1, 5], **options)
    value, gradient = evaluate(problem, limits=limits)
    expected, expected_gradient = problem.loss()
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient[problem.theta != 0.0], atol=1e-11)


def test_layouts_are_what_their_names_say():
    problem = sparse_problem(62, 4, [9] * 6, n_bigram=3)
    for layout, limits in LAYOUTS.items():
        contexts = restricted(problem, limits=limits).pairs.contexts
        if layout == "matrices":
            assert contexts.n_corrections == 0
            assert len(contexts.matrix_blocks) == len(contexts.arrays.matrix_of)
        elif layout == "frequent":
            assert contexts.n_corrections > 0
            assert 1 < len(contexts.matrix_blocks) < len(contexts.arrays.matrix_of)
        else:
            assert contexts.arrays.constant.all()
            assert contexts.n_corrections > 0


@pytest.mark.parametrize("n_labels", range(1, 41))
def test_sparse_and_dense_agree_at_every_padding(n_labels):
    problem = sparse_problem(n_labels, n_labels, [30, 2, 17, 1], n_bigram=3, weighted=True)
    value, gradient = evaluate(problem, limits=LAYOUTS["matrices"])
    for layout in ("frequent", "entries"):
        other, other_gradient = evaluate(problem, n_threads=2, limits=LAYOUTS[layout])
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(other_gradient, gradient, atol=1e-12 * len(problem.theta))


@pytest.mark.parametrize("n_labels", range(1, 41))
def test_float32_arrays_are_near_float64(n_labels):
    problem = sparse_problem(n_labels, n_labels, [30, 2, 17, 1], n_bigram=3, weighted=True)
    value, gradient = evaluate(problem)
    for limits in LAYOUTS.values():
        other, other_gradient = evaluate(problem, precision="float32", limits=limits)
        assert other == pytest.approx(value, rel=1e-5, abs=1e-4)
        np.testing.assert_allclose(other_gradient, gradient, atol=1e-4)


@in_every_layout
@pytest.mark.parametrize("scale", [-30.0, 30.0])
def test_extreme_entries_lose_no_digits(limits, scale):
    problem = sparse_problem(63, 3, [6, 4], n_bigram=3)
    # The last bigram test is always on; what it adds for one previous label is extreme.
    problem.lam[-1, 1] = scale
    value, gradient = evaluate(problem, limits=LAYOUTS["matrices"])
    other, other_gradient = evaluate(problem, limits=limits)
    assert other == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-9, atol=1e-11)


@in_every_layout
def test_blocks_change_nothing_but_memory(limits):
    problem = sparse_problem(64, 5, [9, 3, 40, 1, 12, 7], n_bigram=2, missing=0.1)
    theta = problem.theta[problem.theta != 0.0]
    results = []
    for n_bytes in (1 << 28, 8 * 8 * 16):
        blocks = limits._replace(shard_bytes=n_bytes)
        loss = ChainLoss(problem.corpus, 5, Workers(2), limits=blocks)
        working = loss.restrict(np.flatnonzero(problem.theta))
        value, gradient = working.value_and_grad(theta)
        results.append((value, gradient, *loss.screen(working, theta, 0.1, 10_000)))
    assert len(working.space.shards) > 3
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-13)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-12)
    np.testing.assert_array_equal(results[0][2], results[1][2])
    np.testing.assert_allclose(results[0][3], results[1][3], atol=1e-12)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n_labels", [3, 8, 25])
def test_the_number_of_chunks_changes_only_the_order_of_sums(n_labels, precision):
    problem = sparse_problem(68, n_labels, [9, 3, 40, 1, 12, 7], n_bigram=2, missing=0.1)
    results = []
    for n_chunks in (1, 2, 7, 64):
        limits = Limits(n_chunks=n_chunks)
        results.append(evaluate(problem, precision=precision, n_threads=2, limits=limits))
    for value, gradient in results[1:]:
        assert value == pytest.approx(results[0][0], rel=1e-13)
        np.testing.assert_allclose(gradient, results[0][1], atol=1e-12 * len(gradient))


@in_every_layout
def test_screening_sees_entries(limits):
    problem = sparse_problem(65, 4, [5, 4, 6], n_bigram=3)
    loss = ChainLoss(problem.corpus, 4, Workers(1), limits=limits)
    working = loss.restrict(np.flatnonzero(problem.theta))
    found, values = loss.screen(working, problem.theta[problem.theta != 0.0], 0.2, 10_000)
    _, gradient = problem.loss()
    np.testing.assert_array_equal(found, np.flatnonzero(np.abs(gradient) > 0.2))
    np.testing.assert_allclose(values, gradient[found], atol=1e-11)


def test_the_rule_takes_matrices_when_dense_and_entries_when_sparse():
    problem, _ = random_problem(66, 30, [40] * 10, n_bigram=1, n_values=2)
    n = len(problem.corpus.unigram_keys) * 30
    dense = restricted(problem).pairs.contexts
    assert dense.n_corrections == 0
    assert not dense.arrays.constant.all()
    # One pair of labels in a hundred.
    pairs = np.arange(n, len(problem.theta))
    problem.theta[np.setdiff1d(pairs, pairs[::100])] = 0.0
    sparse = restricted(problem).pairs.contexts
    assert sparse.arrays.constant.all()
    assert sparse.n_corrections > 0


def test_matrices_keep_to_their_memory():
    problem, _ = random_problem(67, 6, [50] * 4, n_bigram=3)
    limits = Limits(matrix_bytes=1 << 10)
    contexts = restricted(problem, limits=limits).pairs.contexts
    assert len(contexts.matrix_blocks) <= 2
    value, _ = evaluate(problem, limits=limits)
    assert value == pytest.approx(evaluate(problem)[0], rel=1e-12)
