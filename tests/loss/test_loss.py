"""The chain loss against enumeration, finite differences and invariances."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.parallel import Workers

from ..reference import Problem, random_problem
from ..support.checks import check_loss
from ..support.reference_values import random_value_problem
from ..support.solver_cases import working_loss


def full_value_and_grad(problem: Problem) -> tuple[float, np.ndarray]:
    return working_loss(problem, by_example=False).value_and_grad(problem.theta)


@pytest.mark.parametrize("n_labels", [1, 2, 7, 8, 9, 15, 17, 24, 33, 40])
def test_gradient_equals_finite_differences(n_labels):
    problem, _ = random_problem(n_labels, n_labels, [6, 3], missing=0.2, n_bigram=1)
    check_loss(working_loss(problem, by_example=False), problem.theta, atol=1e-9)


def test_a_gradient_stays_as_long_as_someone_has_a_part_of_it():
    problem, _ = random_problem(12, 3, [4, 3, 5], n_bigram=1)
    working = working_loss(problem, by_example=False)
    kept, copies = [], []
    for scale in np.linspace(0.5, 2.0, 6):
        gradient = working.value_and_grad(scale * problem.theta)[1]
        kept.append(gradient[1:])
        copies.append(gradient.copy()[1:])
    np.testing.assert_array_equal(kept, copies)


def test_complete_gold_labels_make_the_loss_convex_and_what_was_evaluated_is_forgotten():
    for missing in (0.0, 0.5):
        problem, _ = random_problem(20, 3, [3, 2], missing=missing)
        loss = ChainLoss(problem.corpus, 3, Workers(1))
        assert loss.is_convex == (missing == 0.0)
        loss.restrict(loss.coordinates("all")).value_and_grad(problem.theta)
        assert loss.space.contents is not None
        loss.forget()
        assert loss.space.contents is None


@pytest.mark.parametrize(
    ("draw", "options"),
    [(random_problem, {}), (random_problem, {"weighted": True}), (random_value_problem, {})],
)
def test_curvature_is_the_diagonal_of_the_hessian_of_single_tokens(draw, options):
    problem, _ = draw(19, 4, [1] * 9, n_bigram=2, n_values=2, **options)
    working, step = working_loss(problem, by_example=False), 1e-6
    _, gradient = working.value_and_grad(problem.theta)
    curvature = working.curvature(gradient)
    for k, moved in enumerate(problem.theta + step * np.eye(len(problem.theta))):
        second = (working.value_and_grad(moved)[1][k] - gradient[k]) / step
        if k < working.split:
            assert curvature[k] == pytest.approx(second, abs=1e-4)
        else:
            assert curvature[k] >= second - 1e-4


def test_curvature_leaves_out_clamped_lattices():
    problem, _ = random_problem(21, 4, [3, 2, 4], missing=0.5, weighted=True)
    found = []
    for family in (0, 1):
        families = np.full(len(problem.corpus.unigram_keys), family, np.uint8)
        problem.corpus = replace(problem.corpus, families=families)
        working = working_loss(problem, by_example=False)
        found.append(working.curvature(working.value_and_grad(problem.theta)[1]))
    np.testing.assert_allclose(*found, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(-500.0, 500.0))
@settings(max_examples=25)
def test_a_constant_added_to_potentials_changes_nothing(seed, constant):
    problem, _ = random_problem(seed, 3, [4, 2], n_bigram=1)
    value, gradient = full_value_and_grad(problem)
    # The last bigram feature is always active: its weights shift all pairs by a constant.
    problem.lam[-1] += constant
    other_value, other = full_value_and_grad(problem)
    assert other_value == pytest.approx(value, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(other, gradient, atol=1e-9)


def test_ten_thousand_tokens_are_finite_and_exact():
    problem, _ = random_problem(15, 5, [10_000], scale=10.0)
    chain = problem.chain(range(10_000))
    log_z, marginals = chain.log_z, np.array(chain.marginals())
    gold = problem.score(range(10_000), tuple(problem.corpus.labels))
    value, gradient = full_value_and_grad(problem)
    assert value == pytest.approx(log_z - gold, rel=1e-9)
    expected = Problem(problem.corpus, 5, np.zeros_like(problem.theta))
    for t in range(10_000):
        for o in problem.unigram_tests(t):
            expected.mu[o] += marginals[t]
            expected.mu[o, problem.corpus.labels[t]] -= 1.0
    n = expected.mu.size
    # Logarithms near 1e5 leave errors near 1e-9 per token, in the reference and not the kernel.
    np.testing.assert_allclose(gradient[:n], expected.mu.ravel(), rtol=1e-6, atol=1e-6)


def test_weights_beyond_float64_give_an_infinite_value():
    problem, _ = random_problem(16, 3, [4], scale=1e6)
    assert full_value_and_grad(problem)[0] > 0.0
    problem.theta[:] = np.nan
    assert full_value_and_grad(problem)[0] == np.inf
