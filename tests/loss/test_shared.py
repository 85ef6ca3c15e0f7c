"""Sums over leaves, and gradients at other weights than those that were evaluated."""

import numpy as np

from spacy_sparsecrf.distributed.loss import ShardLosses, ShardProblem
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.tree import sum_over_tree
from spacy_sparsecrf.parallel import Workers

from ..reference import random_problem
from .layouts import LAYOUTS


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
