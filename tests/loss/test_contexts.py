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
    problem: Problem, precision: str = "float64", n_threads: int = 1, limits: Limits = LIMITS
) -> WorkingLoss:
    workers = Workers(n_threads)
    loss = ChainLoss(problem.corpus, problem.n_labels, workers, precision, limits=limits)
    return loss.restrict(np.flatnonzero(problem.theta))


def evaluate(problem: Problem, **options) -> tuple[float, np.ndarray]:
    theta = problem.theta[problem.theta != 0.0]
    return restricted(problem, **options).value_and_grad(theta)


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
