"""Sums over a fixed tree are the same bits, however the leaves are divided."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.distributed.loss import ShardLosses, ShardProblem
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.tree import (
    LEAF_TOKENS,
    count_leaves,
    cut_leaves,
    maximal_subtrees,
    sum_over_tree,
)
from spacy_sparsecrf.parallel import Workers

from ..reference import random_problem, tree_sum
from .layouts import LAYOUTS

LEAVES = 16
partials = st.dictionaries(
    st.integers(0, LEAVES - 1), st.floats(-1e6, 1e6, allow_nan=False), max_size=LEAVES
)


def summed(values: dict[int, float]) -> float | None:
    total = sum_over_tree((leaf, np.array([values[leaf]])) for leaf in sorted(values))
    return None if total is None else float(total[0])


@given(partials)
def test_the_tree_equals_recursion(values: dict[int, float]) -> None:
    assert summed(values) == tree_sum(values, 0, LEAVES)


@given(partials, st.lists(st.integers(0, LEAVES), max_size=4))
def test_machines_that_own_ranges_compute_the_same(
    values: dict[int, float], cuts: list[int]
) -> None:
    bounds = [0, *sorted(cuts), LEAVES]
    nodes: dict[int, float] = {}
    for first, last in pairwise(bounds):
        for begin, end in maximal_subtrees(first, last):
            own = summed({leaf: x for leaf, x in values.items() if begin <= leaf < end})
            if own is not None:
                nodes[begin] = own
    assert summed(nodes) == summed(values)


@given(st.integers(0, 64), st.integers(0, 64))
def test_maximal_subtrees_are_aligned_and_cover_the_range(a: int, b: int) -> None:
    first, last = sorted((a, b))
    nodes = maximal_subtrees(first, last)
    assert [leaf for node in nodes for leaf in range(*node)] == list(range(first, last))
    for begin, end in nodes:
        size = end - begin
        assert size & (size - 1) == 0 and begin % size == 0
        parent = begin // (2 * size) * 2 * size
        assert parent < first or parent + 2 * size > last


@given(st.lists(st.integers(0, 50), max_size=200))
@settings(max_examples=50)
def test_leaves_have_about_equal_costs(lengths: list[int]) -> None:
    ptr = cut_leaves(np.array(lengths, np.int64), LEAVES)
    assert ptr[0] == 0 and ptr[-1] == len(lengths) and (np.diff(ptr) >= 0).all()
    costs = [sum(lengths[i:j]) + j - i for i, j in pairwise(ptr)]
    mean = (sum(lengths) + len(lengths)) / LEAVES
    assert max(costs) <= mean + max(lengths, default=0) + 1


@pytest.mark.parametrize(
    ("n_tokens", "expected"),
    [(0, 8), (8 * LEAF_TOKENS, 8), (8 * LEAF_TOKENS + 1, 16), (10**9, 65536)],
)
def test_the_number_of_leaves(n_tokens: int, expected: int) -> None:
    assert count_leaves(n_tokens) == expected


# Sums over leaves, and gradients at other weights than those that were evaluated.


def test_a_gradient_is_taken_at_weights_that_were_evaluated_before() -> None:
    for layout in LAYOUTS.values():
        problem, _ = random_problem(5, 4, [4, 3, 5, 2, 1, 6], n_unigram=9, n_bigram=4)
        loss = ChainLoss(problem.corpus, 4, Workers(1), limits=layout)
        every = loss.all_coordinates()
        some = every[::3]
        working, more = loss.restrict(some), loss.restrict(every)
        theta = 0.2 * np.random.default_rng(1).standard_normal(len(some))
        at = np.zeros(len(every))
        at[::3] = theta
        _, expected = more.value_and_grad(at)
        contents = working.marginals(theta)
        np.testing.assert_allclose(more.gradient_there(contents), expected, atol=1e-12)
        assert loss.space.contents.are_of(working, theta)


def test_leaves_tell_the_sums_of_the_whole() -> None:
    problem, _ = random_problem(6, 3, [4, 3, 5, 2, 1, 6], n_unigram=9, n_bigram=4)
    corpus = problem.corpus
    corpus.labels[[2, 9]] = -1
    loss = ChainLoss(corpus, 3, Workers(1))
    every = loss.all_coordinates()
    some, fewer = every[::2], every[::4]
    leaves = ShardLosses(
        corpus, np.array([0, 2, 2, 5, 6]), 4, ShardProblem(3, None, "float64"), Workers(2)
    )
    theta = 0.2 * np.random.default_rng(1).standard_normal(len(fewer))
    working, at = loss.restrict(every), np.zeros(len(every))
    at[::4] = theta
    value, gradient = working.value_and_grad(at)
    curvature = working.curvature(gradient)
    sums = sum_over_tree(leaves.evaluate(0, fewer, theta))
    assert sums is not None
    np.testing.assert_allclose(sums, [*gradient[::4], value], atol=1e-12)
    found = sum_over_tree(leaves.gradient(1, every, 0, fewer, theta))
    np.testing.assert_allclose(found, gradient, atol=1e-12)
    found = sum_over_tree(leaves.curvature(2, some, 1, every, 0, fewer, theta))
    assert found is not None
    np.testing.assert_allclose(np.maximum(found, 0.0), curvature[::2], atol=1e-12)
