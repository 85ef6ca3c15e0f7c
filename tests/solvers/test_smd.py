"""Stochastic meta-descent: Hessian-vector products, updates, what it reaches."""

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.examples import ChainExamples
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.sgd import SGD
from spacy_sparsecrf.solvers.smd import SMD
from spacy_sparsecrf.training.training import Training

from ..loss.layouts import in_every_layout
from ..loss.test_stages import learnable
from ..reference import Problem, random_problem
from .cases import working_loss
from .test_sgd import MISSING, lattice_order, small_problem

EPSILON = 1e-150


def analytic_expectation(problem: Problem, tokens: range, agree: bool) -> np.ndarray:
    """E F, as an analytic function of complex weights: shifted by the real part only."""
    paths = problem.paths(tokens, agree)
    scores = np.array([problem.score(tokens, path) for path in paths])
    mass = np.exp(scores - scores.real.max())
    counts = np.array([problem.counts(tokens, path) for path in paths])
    return mass @ counts / mass.sum()


def complex_step(problem: Problem, i: int, theta: np.ndarray, v: np.ndarray):
    """Gradient and Hessian times v of one sequence (Vishwanathan 2006, equation 12)."""
    there = Problem(problem.corpus, problem.n_labels, theta + 1j * EPSILON * v)
    tokens = there.sequences()[i]
    g = analytic_expectation(there, tokens, False) - analytic_expectation(there, tokens, True)
    g = problem.corpus.weights[i] * g
    return g.real, g.imag / EPSILON


@in_every_layout
@pytest.mark.parametrize(
    "options",
    [{}, MISSING, {**MISSING, "start_label": False}, {"n_bigram": 0}, {"n_unigram": 0}],
)
def test_products_equal_the_complex_step(options, limits):
    problem, _ = random_problem(81, 3, [5, 3, 4, 1], **options)
    problem.corpus.labels[0] = 0
    v = np.random.default_rng(5).normal(size=len(problem.theta))
    working = working_loss(problem, limits=limits)
    minibatches = ChainExamples(working)
    numbers = lattice_order(problem, working)
    # One by one, then two together.
    for members in ([0], [1], [2], [2, 0]):
        members = np.array(members)
        gradient, product = np.zeros_like(v), np.zeros_like(v)
        minibatches.add_product(members, problem.theta, v, gradient, product)
        parts = [complex_step(problem, i, problem.theta, v) for i in numbers[members]]
        np.testing.assert_allclose(gradient, sum(g for g, _ in parts), atol=1e-12)
        np.testing.assert_allclose(product, sum(h for _, h in parts), atol=1e-12)
    assert np.abs(product).max() > 1e-3


def test_products_stay_finite_at_extreme_weights():
    problem, _ = random_problem(82, 3, [30], scale=60.0)
    v = np.random.default_rng(5).normal(size=len(problem.theta))
    gradient, product = np.zeros_like(v), np.zeros_like(v)
    working = working_loss(problem)
    ChainExamples(working).add_product(np.array([0]), problem.theta, v, gradient, product)
    assert np.isfinite(gradient).all()
    assert np.isfinite(product).all()


@pytest.mark.parametrize("decay", [1.0, 0.7])
def test_passes_equal_the_reference(decay):
    problem, l2 = small_problem(), 0.4
    working, penalty = working_loss(problem), ElasticNet(0.0, l2)
    solver = SMD(eta0=0.2, mu=0.8, decay=decay, batch=2, seed=4)
    state = solver.start(working, penalty, problem.theta)
    theta, gains = problem.theta.copy(), np.full(len(problem.theta), 0.2)
    v = np.zeros_like(theta)
    numbers = lattice_order(problem, working)
    for epoch in range(2):
        solver.step(working, penalty, state)
        order = numbers[np.random.default_rng([4, epoch]).permutation(np.arange(5))]
        for members in (order[:2], order[2:4], order[4:]):
            parts = [complex_step(problem, i, theta, v) for i in members]
            g = sum(g for g, _ in parts) + l2 / 3 * theta
            h = sum(h for _, h in parts) + l2 / 3 * v
            gains = gains * np.maximum(0.5, 1.0 - 0.8 * g * v)
            theta = theta - gains * g
            v = decay * v - gains * (g + decay * h)
        np.testing.assert_allclose(state.theta, theta, atol=1e-11)
        np.testing.assert_allclose(state.gains, gains, atol=1e-11)
        np.testing.assert_allclose(state.v, v, atol=1e-11)
    assert gains.min() < 0.15
    assert gains.max() > 0.25


@pytest.mark.parametrize("solver", [SMD(eta0=10.0, mu=10.0), SGD(schedule="constant", eta0=1e300)])
def test_steps_that_are_too_long_are_refused(solver):
    training = Training(learnable().corpus, list("abcd"), solver, l1=0.0, l2=0.1)
    with pytest.raises(SparseCRFError, match=f"SC338.*{type(solver).__name__}"):
        for _ in range(20):
            training.step()
