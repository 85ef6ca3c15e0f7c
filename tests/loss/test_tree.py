"""Sums over a fixed tree are bit-identical, for any division of the leaves."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.distributed.tree import (
    count_leaves,
    cut_leaves,
    maximal_subtrees,
    sum_over_tree,
)

from ..reference import random_problem, tree_sum
from ..support.layouts import LAYOUTS

LEAVES = 16
partials = st.dictionaries(
    st.integers(0, LEAVES - 1), st.floats(-1e6, 1e6, allow_nan=False), max_size=LEAVES
)


def summed(values: dict[int, float]) -> float | None:
    total = sum_over_tree((leaf, np.array([values[leaf]])) for leaf in sorted(values))
    return None if total is None else float(total[0])


@given(partials)
def test_the_tree_equals_recursion(values):
    assert summed(values) == tree_sum(values, 0, LEAVES)


@given(partials, st.lists(st.integers(0, LEAVES), max_size=4))
def test_machines_that_own_ranges_compute_the_same(values, cuts):
    bounds = [0, *sorted(cuts), LEAVES]
    nodes: dict[int, float] = {}
    for first, last in pairwise(bounds):
        for begin, end in maximal_subtrees(first, last):
            own = summed({leaf: x for leaf, x in values.items() if begin <= leaf < end})
            if own is not None:
                nodes[begin] = own
    assert summed(nodes) == summed(values)


@pytest.mark.parametrize(
    ("n_tokens", "n"), [(0, 8), (131_072, 8), (131_073, 16), (262_144, 16), (262_145, 32)]
)
def test_leaves_are_a_power_of_two_of_at_most_16384_tokens(n_tokens, n):
    assert count_leaves(n_tokens) == n


@given(st.lists(st.integers(0, 9), max_size=20), st.sampled_from([1, 2, 8, 16]))
def test_a_sequence_is_in_the_leaf_of_its_middle(lengths, n):
    costs = [length + 1 for length in lengths]
    middles = [2 * sum(costs[:i]) + cost for i, cost in enumerate(costs)]
    leaves = [n * middle // (2 * sum(costs)) for middle in middles]
    expected = np.searchsorted(leaves, np.arange(n + 1))
    assert cut_leaves(np.array(lengths, np.int64), n).tolist() == expected.tolist()


# Sums over leaves, and gradients at weights that were evaluated earlier.


def test_a_gradient_is_taken_at_weights_that_were_evaluated_before():
    for layout in LAYOUTS.values():
        problem, _ = random_problem(5, 4, [4, 3, 5, 2, 1, 6], n_unigram=9, n_bigram=4)
        loss = ChainLoss(problem.corpus, 4, Workers(1), limits=layout)
        every = loss.coordinates("all")
        some = every[::3]
        working, more = loss.restrict(some), loss.restrict(every)
        theta = 0.2 * np.random.default_rng(1).standard_normal(len(some))
        at = np.zeros(len(every))
        at[::3] = theta
        _, expected = more.value_and_grad(at)
        contents = working.marginals(theta)
        np.testing.assert_allclose(more.gradient_from(contents), expected, atol=1e-12)
        assert loss.space.contents.are_of(working, theta)
