"""The loss equals enumeration for every kind of problem, in every layout of pair potentials.

With one matrix: plain problems, missing and ambiguous labels with valid transitions, real values;
and layouts of pair potentials with and without interleaved batches. Compared are the loss, its
gradient on all weights and on some, screening, Hessian products, and sums over examples.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from spacy_sparsecrf.crf.kernels.sequence import example_loss
from spacy_sparsecrf.crf.loss.examples import new_workspace
from spacy_sparsecrf.crf.loss.hessian_products import HessianProduct
from spacy_sparsecrf.crf.loss.workspace import LIMITS, Limits

from ..reference import Problem, random_problem
from ..support.kernel_functions import compiled
from ..support.layouts import LAYOUTS, in_all_layouts, in_every_layout
from ..support.learning_cases import enumerated_hessian, loss_of, partial_problem
from ..support.reference_values import random_value_problem

PLAIN, PARTIAL, VALUES = random_problem, partial_problem, random_value_problem
VALID = {"constrained": True}
PROBLEMS: dict[str, tuple[Callable[..., object], int, dict[str, object]]] = {
    "2 labels": (PLAIN, 2, {}),
    "no start label": (PLAIN, 3, {"start_label": False, "n_bigram": 3}),
    "weighted": (PLAIN, 4, {"n_bigram": 3, "weighted": True}),
    "missing labels": (PLAIN, 3, {"missing": 0.4, "weighted": True}),
    "1 label": (PLAIN, 1, {}),
    "no bigram features": (PLAIN, 3, {"n_bigram": 0}),
    "no unigram features": (PLAIN, 3, {"n_unigram": 0}),
    "large weights": (PLAIN, 5, {"missing": 0.5, "start_label": False, "scale": 5.0}),
    "partial": (PARTIAL, 3, {}),
    "valid": (PARTIAL, 3, VALID),
    "valid, weighted": (PARTIAL, 3, VALID | {"start_label": False, "weighted": True}),
    "valid, complete": (PARTIAL, 3, VALID | {"missing": 0.0, "ambiguous": 0.0, "n_bigram": 0}),
    "ambiguous": (PARTIAL, 3, {"ambiguous": 0.8, "missing": 0.0, "start_label": False}),
    "ambiguous, valid": (PARTIAL, 3, VALID | {"ambiguous": 0.5, "missing": 0.4, "n_unigram": 0}),
    "real values": (VALUES, 3, {"start_label": False, "n_real": 9}),
    "real values, weighted": (VALUES, 4, {"n_bigram": 3, "weighted": True, "n_real": 17}),
    "real values, missing": (VALUES, 3, {"missing": 0.4}),
    "real values alone": (VALUES, 3, {"n_bigram": 0, "n_unigram": 0}),
    "8 real values": (VALUES, 6, {"n_real": 8}),
}
WAYS = {"rule": LIMITS} | {
    f"{name}, {together} together": limits._replace(together=together)
    for name, limits in LAYOUTS.items()
    for together in (1, 3, 99)
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)
every_way = pytest.mark.parametrize("limits", WAYS.values(), ids=list(WAYS))


@cache
def made(name: str, share: float = 1.0) -> tuple[Problem, np.ndarray, float, np.ndarray]:
    """Return a problem with a share of its weights, their positions, and the enumerated loss."""
    make, n_labels, options = PROBLEMS[name]
    lengths = [4, 0, 1, 3, 2] if n_labels < 5 else [3, 3, 2]
    found = make(list(PROBLEMS).index(name) + 1, n_labels, lengths, **options)
    problem = found[0] if isinstance(found, tuple) else found
    if name == "weighted":
        problem.corpus.weights[0] = 0.0
    n = len(problem.theta)
    chosen = np.flatnonzero(np.random.default_rng(0).random(n) < share)
    problem.theta[np.setdiff1d(np.arange(n), chosen)] = 0.0
    return problem, chosen, *problem.loss()


@every_way
@every_problem
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_value_gradient_and_violators(name, limits, share):
    check_loss_of(*made(name, share), limits)


def check_loss_of(
    problem: Problem, chosen: np.ndarray, expected: float, gradient: np.ndarray, limits: Limits
) -> None:
    loss = loss_of(problem, limits=limits)
    working, theta = loss.restrict(chosen), problem.theta[chosen]
    value, found = working.value_and_grad(theta)
    assert value == pytest.approx(expected, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found, gradient[chosen], atol=1e-10)
    for threshold in (0.0, 0.3):
        violators, gradients, _ = loss.screen(working, theta, threshold, limit=10_000)
        # With rounding, a gradient of 0 may or may not be a violator.
        wanted = np.flatnonzero(np.abs(gradient) > max(threshold, 1e-9))
        kept = np.abs(gradients) > 1e-9
        np.testing.assert_array_equal(violators[kept], wanted)
        np.testing.assert_allclose(gradients[kept], gradient[wanted], atol=1e-10)
    # The violators with the largest gradients are kept.
    few = np.sort(np.abs(loss.screen(working, theta, 1e-9, limit=3)[1]))
    sizes = np.sort(np.abs(gradient[np.abs(gradient) > 1e-9]))
    np.testing.assert_allclose(few, sizes[-3:], atol=1e-10)


@in_all_layouts
@every_problem
@pytest.mark.parametrize("stored", [-1, 2])
def test_hessian_products(name, limits, stored):
    problem, chosen, _, _ = made(name, 0.6)
    expected = hessian_of(name)[np.ix_(chosen, chosen)]
    product = HessianProduct(loss_of(problem, limits=limits).restrict(chosen), stored)
    product.prepare(problem.theta[chosen])
    found = np.array([product.product(row) for row in np.eye(len(chosen))])
    found = found.reshape(expected.shape)
    np.testing.assert_allclose(found, expected, atol=1e-11 * max(1.0, np.abs(expected).max()))


def test_screening_at_every_threshold():
    problem, _ = random_problem(9, 4, [4, 3, 4], n_bigram=3, n_values=2, start_label=False)
    # One chunk, so that features use the workspaces one after another.
    loss, (_, gradient) = loss_of(problem, limits=LIMITS._replace(n_chunks=1)), problem.loss()
    working = loss.restrict(loss.coordinates("all"))
    sizes = np.unique(np.abs(gradient).round(6))
    for threshold in (sizes[1:] + sizes[:-1]) / 2:
        violators, found, _ = loss.screen(working, problem.theta, threshold, limit=10_000)
        np.testing.assert_array_equal(violators, np.flatnonzero(np.abs(gradient) > threshold))
        np.testing.assert_allclose(found, gradient[violators], atol=1e-10)


# Shards, spans and chunks of one or two tokens or features.
SMALL = {"shard_bytes": 300, "n_chunks": 3, "chunk_tokens": 1, "span": 1, "together": 2}
SMALL |= {"sums_bytes": 1, "held_pairs": 9, "shared": 2}


@every_problem
def test_small_pieces_of_work(name):
    for limits in LAYOUTS.values():
        test_value_gradient_and_violators(name, limits._replace(**SMALL), 0.4)
        test_hessian_products(name, limits._replace(**SMALL), 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_working_sets_that_end_within_a_feature(layout):
    problem, _ = random_problem(6, 3, [3, 1, 3], n_values=2)
    n = len(problem.theta)
    problem.theta[5:] = 0.0
    expected, gradient = problem.loss()
    loss = loss_of(problem, limits=LAYOUTS[layout])
    # The last set has a weight of the first bigram feature, and all but one of the second.
    first = loss.coding.first_pair
    chosen = [np.arange(m) for m in range(5, n + 1, 2)]
    for own in [*chosen, np.delete(np.arange(n), [*range(first, first + 11), first + 23])]:
        working, sums = loss.by_example(own), np.zeros(len(own))
        value, found = working.value_and_grad(problem.theta[own])
        assert value == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(found, gradient[own], atol=1e-10)
        working.add(working.sequences, problem.theta[own], sums)
        np.testing.assert_allclose(sums, gradient[own], atol=1e-10)


@in_every_layout
def test_losses_of_examples_alone(limits):
    for n_labels in (3, 8, 20):
        check_losses_alone(n_labels, limits)


def check_losses_alone(n_labels: int, limits: Limits) -> None:
    problem, _ = random_problem(61, n_labels, [2, 1, 2, 2], n_bigram=3, weighted=True)
    problem.corpus.labels[:] = [1, min(9, n_labels - 1), 2, -1, 1, 2, 1]
    # Some previous labels have no weights.
    problem.lam[:, ::2] = 0.0
    chosen, (expected, gradient) = np.flatnonzero(problem.theta), problem.loss()
    working = loss_of(problem, limits=limits).by_example(chosen)
    value, found = working.value_and_grad(problem.theta[chosen])
    np.testing.assert_allclose(found, gradient[chosen], atol=1e-10)
    theta, work = np.split(problem.theta[chosen], [working.split]), new_workspace(working)
    weights = working.space.lattice.weights[: working.space.lattice.n_examples]
    losses = [
        compiled(example_loss)(s, s + 1, working.tables, *theta, work) for s in range(len(weights))
    ]
    assert weights @ losses == pytest.approx(expected, rel=1e-10)
    sums = np.zeros(len(chosen))
    assert value == pytest.approx(expected, rel=1e-10)
    working.add(working.sequences, problem.theta[chosen], sums)
    np.testing.assert_allclose(sums, gradient[chosen], atol=1e-10)


@cache
def hessian_of(name: str) -> np.ndarray:
    return enumerated_hessian(made(name, 0.6)[0])


@in_all_layouts
@pytest.mark.parametrize("name", [name for name in PROBLEMS if "real" not in name])
def test_examples_add_up(name, limits):
    problem, chosen, expected, gradient = made(name, 0.6)
    examples, theta = loss_of(problem, limits=limits).by_example(chosen), problem.theta[chosen]
    direction = np.random.default_rng(3).normal(size=len(chosen))
    sums, product = np.zeros(len(chosen)), np.zeros(len(chosen))
    value = examples.add(examples.sequences, theta, sums)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(sums, gradient[chosen], atol=1e-9)
    sums[:] = 0.0
    value = examples.add_product(examples.sequences, theta, direction, sums, product)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(sums, gradient[chosen], atol=1e-9)
    whole = hessian_of(name)[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(product, whole @ direction, atol=1e-8)
