"""Blocks of the chain loss: gradients, updates, reuse of vectors."""

from collections.abc import Iterator

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.crf.loss.working import ChainWorkingLoss
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.bcd.block_loss import BlockDescent, BlockLayout

from ..reference import Problem, random_problem
from ..support.layouts import in_every_layout
from ..support.solver_cases import working_loss as everything

# Options of random problems.
OPTIONS = [{}, {"n_bigram": 3, "weighted": True}, {"start_label": False, "n_bigram": 3}]
OPTIONS += [{"n_bigram": 0}, {"n_unigram": 0}, {"missing": 0.3, "weighted": True}]


def sweep(working: ChainWorkingLoss, penalty: ElasticNet, theta: np.ndarray) -> BlockDescent:
    return BlockDescent(working, penalty, 1.0, False, theta, np.ones(len(theta)))


def weights_of(working: ChainWorkingLoss, b: int) -> np.ndarray:
    layout, parts = working.derived(BlockLayout), []
    if layout.unigram[b] >= 0:
        parts.append(np.arange(*working.unigram.ptr[layout.unigram[b] :][:2]))
    if layout.bigram[b] >= 0:
        parts.append(working.split + np.arange(*working.bigram.ptr[layout.bigram[b] :][:2]))
    return np.concatenate(parts)


def slow_curvature(problem: Problem) -> np.ndarray:
    """Return the sum of w p (1 - p) over tokens where a weight can be active, by enumeration."""
    total = Problem(problem.corpus, problem.n_labels, np.zeros_like(problem.theta))
    n = problem.n_labels
    for tokens, weight in problem.weighted_sequences():
        if (problem.corpus.labels[tokens.start : tokens.stop] < 0).all():
            continue
        pairs = np.zeros((len(tokens), n + 1, n))
        log_z = problem.log_z(tokens)
        for path in problem.paths(tokens):
            p = np.exp(problem.score(tokens, path) - log_z)
            pairs[np.arange(len(tokens)), (n, *path[:-1]), path] += p
        for i, t in enumerate(tokens):
            p = pairs[i].sum(axis=0)
            for o in problem.unigram_tests(t):
                total.mu[o] += weight * p * (1 - p)
            for o in problem.bigram_tests(t):
                there = pairs[i, : problem.n_previous]
                total.lam[o] += weight * there * (1 - there)
    return total.theta


def descended(
    problem: Problem, working: ChainWorkingLoss
) -> Iterator[tuple[BlockDescent, np.ndarray]]:
    """Yield the descent of each block, whose gradient is the enumerated one, and its weights."""
    _, gradient = problem.loss()
    for b in range(len(working.derived(BlockLayout))):
        descent = sweep(working, ElasticNet(0.1, 0.1), problem.theta.copy())
        descent.descend(np.array([b]))
        own = weights_of(working, b)
        np.testing.assert_allclose(descent.gradient[own], gradient[own], atol=1e-12)
        yield descent, own


@in_every_layout
@pytest.mark.parametrize("options", OPTIONS)
def test_gradients_of_blocks_equal_enumeration(options, limits):
    problem, _ = random_problem(61, 3, [4, 1, 3], **options)
    working = everything(problem, limits=limits)
    curvature, seen = slow_curvature(problem), []
    for descent, own in descended(problem, working):
        np.testing.assert_allclose(descent.curvature[own], curvature[own], atol=1e-12)
        others = np.setdiff1d(np.arange(len(curvature)), own)
        np.testing.assert_array_equal(descent.theta[others], problem.theta[others])
        seen.extend(own)
    assert sorted(seen) == list(range(len(curvature)))


@in_every_layout
@pytest.mark.parametrize("options", OPTIONS)
def test_truncated_and_kept_vectors_give_the_full_gradient_for_less(options, limits):
    problem, _ = random_problem(62, 3, [9, 1, 8, 7], n_values=6, **options)
    working, full = everything(problem, limits=limits), everything(problem, limits=limits)
    descent = sweep(working, ElasticNet(0.1, 0.1), problem.theta.copy())
    everywhere = 0
    lengths = np.diff(working.space.lattice.offsets)
    for b in [*range(len(working.derived(BlockLayout))), 1, 0]:
        before, visits = descent.theta.copy(), descent.counts[0]
        descent.descend(np.array([b]))
        own = weights_of(working, b)
        _, gradient = full.value_and_grad(before)
        np.testing.assert_allclose(descent.gradient[own], gradient[own], atol=1e-11)
        tokens = working.derived(BlockLayout).tokens
        mine = tokens.indices[tokens.indptr[b] : tokens.indptr[b + 1]]
        sequences = np.unique(working.derived(BlockLayout).sequence_of[mine])
        n_evaluations = (descent.counts[0] - visits) / max(1, len(sequences))
        assert n_evaluations >= 1
        # The gradient needs both recursions, each trial at least one.
        everywhere += lengths[sequences].sum() * (1 + n_evaluations)
    # Full recursions each time, or discarded vectors, would take more than this.
    assert descent.counts[1:].sum() < 0.45 * everywhere


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(0.1, 0.3), (0.0, 0.3), (0.1, 0.0)])
def test_update_equals_equations_10_and_11(l1, l2, common):
    problem, _ = random_problem(63, 3, [5, 4, 6], scale=0.1)
    working, kappa = everything(problem), 1e3
    theta = problem.theta.copy()
    descent = BlockDescent(
        working, ElasticNet(l1, l2), kappa, common, theta, np.full(len(theta), kappa)
    )
    descent.descend(np.arange(1))
    parts = [np.arange(*working.unigram.ptr[:2]), np.arange(0)]
    if working.derived(BlockLayout).unigram[0] < 0:
        parts = [weights_of(working, 0)]
    for own in parts:
        g, old = descent.gradient[own], problem.theta[own]
        slope = np.abs(g + l2 * old + l1 * np.sign(old))
        damping = np.maximum(1.0, np.abs(g / descent.curvature[own])).max() if common else 1.0
        h = kappa * np.maximum(damping * descent.curvature[own], slope)
        z = h * old - g
        expected = np.sign(z) * np.maximum(np.abs(z) - l1, 0.0) / (h + l2)
        np.testing.assert_allclose(theta[own], expected, rtol=1e-12)
        assert not np.array_equal(theta[own], old)


def same_tests(start_label: bool) -> Problem:
    """Return a corpus whose features all have unigram and bigram weights, but one bigram only."""
    rng = np.random.default_rng(0)
    hashes = rng.integers(1, 5, (20, 2)).astype(np.uint64)
    hashes[:, 1] += np.uint64(100)
    observations = Observations(
        hashes=np.hstack((hashes, np.full((20, 1), 99, np.uint64))),
        offsets=np.array([0, 6, 7, 13, 20]),
        unigram_columns=np.array([0, 1], np.int32),
        bigram_columns=np.array([0, 1, 2], np.int32),
        start_label=start_label,
    )
    builder = CorpusBuilder()
    builder.add(observations, rng.integers(0, 3, 20).astype(np.int32))
    corpus = builder.build()
    return Problem(corpus, 3, rng.normal(size=corpus.n_potential(3)))


@pytest.mark.parametrize("start_label", [True, False])
def test_a_test_with_weights_of_both_kinds_is_one_block(start_label):
    problem = same_tests(start_label)
    working = everything(problem)
    layout = BlockLayout(working)
    both = (layout.unigram >= 0) & (layout.bigram >= 0)
    assert both.sum() == len(problem.corpus.unigram_keys)
    assert len(layout) == len(problem.corpus.bigram_keys)
    assert (np.diff(np.diff(layout.tokens.indptr)) <= 0).all()
    for u, r in zip(layout.unigram[both], layout.bigram[both], strict=True):
        assert problem.corpus.unigram_keys[u] == problem.corpus.bigram_keys[r]
    assert len([*descended(problem, working)]) == len(layout)


def test_the_first_step_that_is_enough_makes_the_next_one_longer_or_weights_are_restored():
    problem, _ = random_problem(63, 3, [5, 4, 6], scale=0.1)
    working, theta = everything(problem), problem.theta.copy()
    own = weights_of(working, 0)
    # Trials at 8; at 0.001, which is too long, and doubled from there.
    for kappa, after in ((8.0, {4.0}), (1e-3, {1e-3 * 2.0**i for i in range(2, 14)})):
        start, steps = theta.copy(), np.full(len(theta), kappa)
        descent = BlockDescent(working, ElasticNet(0.0, 0.1), 1e-9, False, start, steps)
        descent.descend(np.arange(1))
        assert set(steps[own]) <= after and np.abs(start - theta)[own].min() > 0.0
    kappa = np.zeros(len(theta))
    descent = BlockDescent(working, ElasticNet(0.0, 0.0), 1e-300, False, theta, kappa)
    descent.descend(np.arange(1))
    np.testing.assert_array_equal(theta, problem.theta)
    assert np.isinf(kappa[own]).all()
