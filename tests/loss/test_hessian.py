"""Hessian-vector products against the enumerated Hessian and finite differences."""

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.hessian_products import HessianProduct
from spacy_sparsecrf.crf.parallel import Workers

from ..reference import random_problem
from ..support.layouts import LAYOUTS, in_every_layout
from ..support.learning_cases import enumerated_hessian
from ..support.solver_cases import working_loss


@pytest.mark.parametrize("scale", [-30.0, 30.0])
def test_products_with_extreme_weights_are_those_of_matrices(scale):
    problem, _ = random_problem(63, 3, [3, 2, 1, 2], n_bigram=3)
    rng = np.random.default_rng(0)
    problem.lam[rng.random(problem.lam.shape) < 0.5] = 0.0
    problem.lam[:-1, 1] = scale
    chosen, found = np.flatnonzero(problem.theta), []
    for limits in LAYOUTS.values():
        loss = ChainLoss(problem.corpus, 3, Workers(1), limits=limits)
        hessian = HessianProduct(loss.restrict(chosen))
        hessian.prepare(problem.theta[chosen])
        found.append(hessian.product(np.cos(np.arange(len(chosen)))))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_labels", [2, 7, 8, 9, 17])
@in_every_layout
def test_products_equal_differences_of_the_gradient(n_labels, limits):
    problem, _ = random_problem(n_labels, n_labels, [30, 1, 12] * 4, missing=0.1, n_bigram=3)
    working = working_loss(problem, by_example=False, limits=limits)
    hessian, rng = HessianProduct(working), np.random.default_rng(0)
    for _ in range(3):
        vector = rng.normal(size=len(problem.theta))
        hessian.prepare(problem.theta)
        got, step = hessian.product(vector), 1e-5 * vector
        ahead, behind = (working.value_and_grad(problem.theta + d)[1] for d in (step, -step))
        tolerance = 2e-7 * np.abs(got).max()
        np.testing.assert_allclose(got, (ahead - behind) / 2e-5, atol=tolerance)


@in_every_layout
def test_pairs_that_all_but_vanish_are_no_differences_of_large_numbers(limits):
    problem, _ = random_problem(72, 3, [5, 4], n_bigram=3, n_values=2)
    problem.lam[:, :2, 1] -= 12.0
    hessian = HessianProduct(working_loss(problem, by_example=False, limits=limits))
    hessian.prepare(problem.theta)
    got = np.array([hessian.product(row) for row in np.eye(len(problem.theta))])
    np.testing.assert_allclose(got, enumerated_hessian(problem), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("stored", [-1, 2])
def test_a_product_is_of_the_prepared_point_whatever_was_evaluated_since(stored):
    problem, _ = random_problem(75, 4, [9, 8, 10], n_bigram=2)
    working = working_loss(problem, by_example=False)
    hessian = HessianProduct(working, stored)
    hessian.prepare(problem.theta)
    vector = np.random.default_rng(4).normal(size=len(problem.theta))
    first = hessian.product(vector)
    value, gradient = working.value_and_grad(2.0 * problem.theta)
    np.testing.assert_array_equal(hessian.product(vector), first)
    again = working.value_and_grad(2.0 * problem.theta)
    assert again[0] == value
    np.testing.assert_array_equal(again[1], gradient)
