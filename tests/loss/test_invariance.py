"""Results do not depend on threads, sizes of work, matrices, interleaving or precision."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.hessian_products import HessianProduct
from spacy_sparsecrf.crf.loss.working import ChainWorkingLoss
from spacy_sparsecrf.crf.loss.workspace import LIMITS, Limits
from spacy_sparsecrf.crf.parallel import Workers

from ..reference import Problem, random_problem
from ..support.layouts import LAYOUTS, in_all_layouts
from ..support.learning_cases import loss_of, partial_problem
from ..support.reference_values import random_value_problem

SHORT = [5, 3, 1, 6, 4, 2, 5, 5]


def in_waves_of(together: int, limits: Limits = LIMITS, n_chunks: int = 1) -> Limits:
    """Return limits with interleaved batches of so many sequences; 1 disables interleaving."""
    return limits._replace(together=together, n_chunks=n_chunks)


def sparse_problem(seed: int, n_labels: int, lengths: list[int], **options) -> Problem:
    """Draw a random problem, most of whose weights are zero."""
    problem, _ = random_problem(seed, n_labels, lengths, **options)
    rng = np.random.default_rng(seed)
    problem.theta[rng.random(len(problem.theta)) < 0.7] = 0.0
    return problem


def restricted(
    problem: Problem, precision: str = "float64", n_threads: int = 1, limits: Limits = LIMITS
) -> ChainWorkingLoss:
    workers = Workers(n_threads)
    loss = ChainLoss(problem.corpus, problem.n_labels, workers, precision=precision, limits=limits)
    return loss.restrict(np.flatnonzero(problem.theta))


def evaluate(problem: Problem, **options) -> tuple[float, np.ndarray]:
    theta = problem.theta[problem.theta != 0.0]
    return restricted(problem, **options).value_and_grad(theta)


def test_layouts_are_what_their_names_say():
    problem = sparse_problem(62, 4, [9] * 6, n_bigram=3)
    for layout, limits in LAYOUTS.items():
        contexts = restricted(problem, limits=limits).pairs.contexts
        if layout == "matrices":
            assert len(contexts.arrays.corr_place) == 0
            assert len(contexts.matrix_blocks.indptr) - 1 == len(contexts.arrays.matrix_of)
        elif layout == "frequent":
            assert len(contexts.arrays.corr_place) > 0
            assert 2 < len(contexts.matrix_blocks.indptr) <= len(contexts.arrays.matrix_of)
        else:
            assert contexts.arrays.constant.all()
            assert len(contexts.arrays.corr_place) > 0


@pytest.mark.parametrize("n_threads", [1, 3, 7])
@pytest.mark.parametrize("lengths", [[1], SHORT * 5])
def test_sites_have_the_blocks_of_the_features_of_tokens(lengths, n_threads):
    problem = sparse_problem(61, 3, lengths, n_values=5)
    loss = loss_of(problem, n_threads=n_threads, limits=LIMITS._replace(shared=2))
    chosen = np.flatnonzero(problem.theta)
    working, lattice = loss.restrict(chosen), loss.space.lattice
    assert (lattice.n_bundles > 0) == (len(lengths) > 1)
    number, n = working.unigram.number(), sum(lengths)
    expected = [sorted({*number[problem.unigram_tests(t)]} - {-1}) for t in range(n)]
    of_tokens = loss.by_example(chosen).site_blocks
    for found in (of_tokens, lattice.by_token(working.site_blocks)):
        rows = np.split(found.indices, found.indptr[1:-1])
        assert sorted(sorted(own.tolist()) for own in rows) == sorted(expected)
    tokens = lattice.feature_tokens
    assert len(tokens.indices) == len(problem.corpus.uni_indices)
    rows = np.split(tokens.indices, tokens.indptr[1:-1])
    assert all((np.diff(own) > 0).all() for own in rows)


@pytest.mark.parametrize("together", [1, 99])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scale", [-30.0, 30.0])
def test_extreme_entries_lose_no_digits(scale, layout, together):
    problem = sparse_problem(63, 3, SHORT, n_bigram=3)
    # The last bigram feature is always active; its weights of one previous label are extreme.
    problem.lam[-1, 1] = scale
    value, gradient = evaluate(problem, limits=in_waves_of(1, LAYOUTS["matrices"]))
    other, other_gradient = evaluate(problem, limits=in_waves_of(together, LAYOUTS[layout]))
    assert other == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-9, atol=1e-11)


def test_matrices_keep_to_their_memory():
    problem, _ = random_problem(67, 6, [50] * 4, n_bigram=3)
    limits = Limits(matrix_bytes=1 << 10)
    contexts = restricted(problem, limits=limits).pairs.contexts
    assert len(contexts.matrix_blocks.indptr) <= 3
    value, _ = evaluate(problem, limits=limits)
    assert value == pytest.approx(evaluate(problem)[0], rel=1e-12)


# All remainders modulo 8, to which labels are padded.
@pytest.mark.parametrize("n_labels", [*range(1, 18), 23, 24, 25, 31, 32, 33, 39, 40])
@pytest.mark.parametrize(("precision", "atol"), [("float64", 1e-12), ("float32", 1e-4)])
def test_neither_layouts_nor_waves_change_anything_at_every_padding(n_labels, precision, atol):
    options = {"n_bigram": 3, "missing": 0.1, "weighted": True}
    problem = sparse_problem(n_labels, n_labels, [*SHORT, 30, 17], **options)
    value, gradient = evaluate(problem, limits=in_waves_of(1, LAYOUTS["matrices"]))
    for limits in LAYOUTS.values():
        for together in (1, 99):
            waves = in_waves_of(together, limits)
            other, other_gradient = evaluate(problem, precision=precision, limits=waves)
            assert other == pytest.approx(value, rel=atol, abs=atol)
            np.testing.assert_allclose(other_gradient, gradient, atol=atol * len(gradient))


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
    "all bundles": {"shared": 1},
    "few bundles": {"shared": 12},
}


@cache
def results(
    name: str, limits: Limits, n_threads: int = 1, family: int | None = None
) -> list[np.ndarray]:
    """Return loss, gradient, Hessian product, curvature and violators, for the non-zero weights.

    family: of all unigram features.
    """
    problem = PROBLEMS[name]()
    if family is not None:
        families = np.full(len(problem.corpus.unigram_keys), family, np.uint8)
        problem.corpus = replace(problem.corpus, families=families)
    # Few bigram weights, so that contexts have matrices and sparse corrections.
    problem.lam[np.random.default_rng(1).random(problem.lam.shape) < 0.5] = 0.0
    chosen = np.flatnonzero(problem.theta)
    loss, theta = loss_of(problem, n_threads=n_threads, limits=limits), problem.theta[chosen]
    working = loss.restrict(chosen)
    value, gradient = working.value_and_grad(theta)
    gradient, curvature = gradient.copy(), working.curvature(gradient)
    found = loss.screen(working, theta, 0.1, 10_000)
    hessian = HessianProduct(working)
    hessian.prepare(theta)
    product = hessian.product(np.cos(np.arange(len(theta))))
    if limits.shard_bytes < LIMITS.shard_bytes:
        assert len(working.space.shards) > 3
    return [np.array([value]), gradient, product, *found, curvature]


@pytest.mark.parametrize("n_threads", [2, 7])
@in_all_layouts
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


@pytest.mark.parametrize("family", [0, 255])
@pytest.mark.parametrize("name", PROBLEMS)
def test_families_change_only_rounding(name, family):
    expected, found = results(name, LIMITS), results(name, LIMITS, family=family)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-10)
