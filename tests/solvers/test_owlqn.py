"""OWL-QN: its state on a changed working set, and line searches; the hybrid method."""

from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.examples import ChainExampleLoss, Sample
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.hybrid import Hybrid
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN, OwlqnState, _interpolate, wolfe
from spacy_sparsecrf.crf.solvers.solver import EvaluatedPoint, evaluate, take

from ..reference import random_problem
from ..support.layouts import in_every_layout
from ..support.runs import training_of
from ..support.solver_cases import MISSING, example_loss, lattice_order, working_loss


@pytest.mark.parametrize("source", [[1, 4], [0, -1, -1, 1, 2, -1, 4, -1], [-1, 3, 4], [], [-1] * 7])
@pytest.mark.parametrize("n_pairs", [0, 2, 4, 9])
def test_pairs_move_as_vectors_do(source, n_pairs):
    theta, gradient, *pairs = np.random.default_rng(n_pairs).normal(size=(4, 4, 5))
    pairs = [rows.astype(np.float32) for rows in pairs]
    vectors = theta[0], gradient[0], 1.0, np.ones(5), *map(np.copy, pairs)
    state = OwlqnState(*vectors, np.zeros((2, 4, 4)), n_pairs=n_pairs)
    at, solver = np.array(source, np.int64), OWLQN(variant="classic", history=4)
    no_loss: Any = None
    moved = solver.remap(no_loss, ElasticNet(0.1, 0.0), state, at, np.ones(len(at)))
    assert np.array_equal(moved.theta, take(theta[0], at)) and moved.n_pairs == n_pairs
    for rows, before in zip((moved.steps, moved.changes), pairs, strict=True):
        assert np.array_equal(rows, take(before if n_pairs else 0.0 * before, at))


FUNCTIONS = {
    "quadratic": (lambda x: (x - 1.0) ** 2, lambda x: 2.0 * (x - 1.0)),
    "steep": (lambda x: np.exp(3.0 * x) - 30.0 * x, lambda x: 3.0 * np.exp(3.0 * x) - 30.0),
    "waves": (lambda x: np.cos(2.0 * x) - 0.3 * x, lambda x: -2.0 * np.sin(2.0 * x) - 0.3),
    "high": (lambda x: 1e9 + (x - 1.0) ** 2, lambda x: 2.0 * (x - 1.0)),
    "hill": (lambda x: 2.0 - np.cos(x) - 0.1 * x, lambda x: np.sin(x) - 0.1),
    "hidden": (lambda x: 1e9 + 1e-9 * (x - 1.0) ** 2, lambda x: 2e-9 * (x - 1.0)),
}


def bounds(f, slope, low, high):
    return [(x, f(x), slope(x)) for x in (low, high)]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        *((0.0, 1.2, 1.0), (1.2, 0.0, 1.0), (0.85, 2.0, 1.0), (-3.0, 6.0, 1.0)),
        # Too close to an end.
        *((0.0, 1.05, 0.525), (1.05, 0.0, 0.525), (0.95, 2.0, 1.475), (0.8, 3.0, 1.9)),
        *((-8.0, 2.0, 1.0), (0.0, 10.0, 1.0), (1.0, 1.0, 1.0)),
    ],
)
def test_a_quadratic_is_minimised_inside_the_bracket(low, high, expected):
    assert _interpolate(*bounds(*FUNCTIONS["quadratic"], low, high)) == pytest.approx(expected)


def test_a_cubic_is_minimised_and_others_are_halved():
    def cubic(x):
        return x**3 - 3.0 * x

    def slope(x):
        return 3.0 * x**2 - 3.0

    for low, high in ((0.5, 3.0), (3.0, 0.5), (-0.5, 2.0)):
        assert _interpolate(*bounds(cubic, slope, low, high)) == pytest.approx(1.0)
    assert _interpolate((1.0, 0.0, -1.0), (4.0, np.inf, 1.0)) == 2.5
    assert _interpolate((1.0, 0.0, -1.0), (4.0, 1.0, np.nan)) == 2.5
    # Without a minimum in between: x^3 + x; and a straight line.
    assert _interpolate((0.0, 0.0, 1.0), (2.0, 10.0, 13.0)) == 1.0
    assert _interpolate((0.0, 0.0, -1.0), (2.0, -2.0, -1.0)) == 1.0


# Function, first step and maximum evaluations; accepted step, and number of evaluations.
WOLFE = [
    ("quadratic", 0.01, 2, 0.02, 2),
    ("quadratic", 0.01, 20, 0.16, 5),
    ("quadratic", 1.3, 20, 1.3, 1),
    ("quadratic", 5.0, 2, 1.0, 2),
    ("quadratic", 100.0, 2, 0.0, 2),
    ("quadratic", 100.0, 20, 1.0, 6),
    ("steep", 0.01, 20, 0.32, 6),
    ("steep", 1.3, 20, 0.7458140540938354, 2),
    ("steep", 5.0, 20, 0.9185569138552508, 4),
    ("steep", 100.0, 20, 0.7332894953289423, 12),
    ("waves", 0.01, 20, 1.5991819970111139, 10),
    ("waves", 0.3, 20, 1.6140896100333904, 5),
    ("waves", 1.3, 20, 1.5977045207114269, 3),
    ("waves", 5.0, 20, 4.796164685999264, 3),
    ("waves", 100.0, 2, 100.0, 2),
    ("high", 0.01, 20, 0.16, 5),
    ("high", 100.0, 20, 1.0, 6),
    # A smaller gradient only ends a search if rounding hides the change of the objective.
    ("hill", 3.09, 20, 0.09720279828174538, 4),
    ("hidden", 0.5, 20, 0.5, 1),
]


@pytest.mark.parametrize(("name", "first", "most", "step", "n"), WOLFE)
def test_steps_of_strong_wolfe_searches(name, first, most, step, n):
    f, slope = FUNCTIONS[name]
    origin = EvaluatedPoint(np.zeros(1), f(0.0), np.array([2.0 * slope(0.0)]))

    def evaluate(x):
        return f(2.0 * x[0]), np.array([2.0 * slope(2.0 * x[0])])

    point, evaluations = wolfe(
        evaluate, origin, direction=np.array([0.5]), first_step=first, max_trials=most
    )
    found = np.nan if point is None else 2.0 * point.theta[0]
    assert evaluations == n and found == pytest.approx(step, nan_ok=True)
    assert n == most or abs(slope(found)) <= 0.9 * abs(slope(0.0))


class Bowl:
    """The loss |theta - centre|^2 of two weights."""

    centre = np.array([3.0, -2.0])

    def value_and_grad(self, theta):
        return float(((theta - self.centre) ** 2).sum()), 2.0 * (theta - self.centre)


class Slope:
    """A loss without curvature."""

    def value_and_grad(self, theta):
        return float(theta @ [1.0, -2.0]), np.array([1.0, -2.0])


def test_pairs_without_curvature_are_not_remembered():
    penalty, solver = ElasticNet(0.5, 0.0), OWLQN(variant="classic")
    state = solver.start(Slope(), penalty, np.array([3.0, 4.0]))
    solver.step(Slope(), penalty, state)
    assert state.value < -3.5 and state.n_pairs == 0 and not state.stalled


def test_a_model_that_misleads_is_dropped():
    penalty, solver = ElasticNet(0.5, 0.0), OWLQN(max_line_search=1)
    theta = np.array([1.0, 0.0])
    value, gradient = evaluate(Bowl(), penalty, theta)
    # Pairs whose curvature is far too low: the first direction overshoots.
    pairs = np.array([[1.0, 0.0]]), np.array([[1e-6, 0.0]]), np.zeros((2, 1, 1))
    state = OwlqnState(theta, gradient, value, np.array([1.0, 4.0]), *pairs, n_pairs=1)
    report = solver.step(Bowl(), penalty, state)
    pseudo = np.array([-3.5, 3.5])
    direction = -np.array([1.0, 4.0]) * pseudo
    if solver.variant == "steep":
        direction = -np.array([1.0, 8.0]) * pseudo
    np.testing.assert_allclose(state.theta, theta + direction / np.linalg.norm(direction))
    assert report.passes == 2 and state.n_pairs == 1 and not state.stalled


@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_a_search_that_is_used_up_is_not_stalled(l1):
    """The first step has length 1, from a point that is a tenth from the minimum."""
    penalty, solver = ElasticNet(l1, 0.0), OWLQN(variant="classic", max_line_search=1)
    state = solver.start(Bowl(), penalty, Bowl.centre + np.array([0.1, 0.0]))
    report = solver.step(Bowl(), penalty, state)
    assert not (state.stalled or report.converged) and report.end == "no longer improves"


@pytest.mark.parametrize(("factor", "passes"), [(0.01, 10), (-1.0, 1), (0.0, 1), (np.inf, 1)])
def test_a_pair_that_misleads_is_dropped_without_l1(factor, passes):
    penalty, solver = ElasticNet(0.0, 0.0), OWLQN(variant="classic", max_line_search=9, history=1)
    state = solver.start(Bowl(), penalty, np.zeros(2))
    state.steps[0], state.changes[0], state.n_pairs = [1.0, 0.0], [2.0 * factor, 0.0], 1
    with np.errstate(all="ignore"):
        report = solver.step(Bowl(), penalty, state)
    assert report.objective < 13.0 and not state.stalled


@pytest.mark.parametrize(
    ("l1", "labels", "history", "m"),
    [(0.0, 9, 20, 5), (0.0, 9, 3, 3), (0.0, 2, 20, 20), (0.2, 9, 20, 20), (0.2, 2, 30, 30)],
)
@pytest.mark.parametrize("l2", [0.1, 10.0])
def test_fewer_pairs_are_kept_where_most_weights_are_hardly_observed(l1, l2, labels, history, m):
    problem, _ = random_problem(31, labels, [9, 8, 10, 3] * 3, n_values=2)
    solver, names = OWLQN(history=history), list("abcdefghi")[:labels]
    training = training_of(problem.corpus, names, solver, l1=l1, l2=l2)
    training.step()
    assert len(training._runs[0].state.solver.steps) == m


@in_every_layout
@pytest.mark.parametrize(
    "options", [{}, MISSING, {**MISSING, "start_label": False}, {"n_bigram": 0}, {"n_unigram": 0}]
)
def test_sums_of_examples_equal_enumeration(options, limits):
    problem, _ = random_problem(101, 3, [5, 3, 4, 1], **options)
    problem.corpus.labels[[0, 5, 8, 12]] = 0
    working = working_loss(problem, limits=limits)
    numbers = lattice_order(problem, working)
    # Cached potentials of other weights or examples must not be reused.
    for members, factor in (([0], 1.0), ([2, 0, 3], 0.5), ([1, 2], 0.5), ([], 1.0)):
        theta = factor * problem.theta
        gradient = np.ones_like(theta)
        value = working.add(np.array(members, dtype=np.int64), theta, gradient)
        weights = problem.corpus.weights[numbers[members]]
        parts = [example_loss(problem, i, theta) for i in numbers[members]]
        expected = sum(w * v for w, (v, _) in zip(weights, parts, strict=True))
        assert value == pytest.approx(expected, abs=1e-10)
        expected = 1.0 + sum(w * g for w, (_, g) in zip(weights, parts, strict=True))
        np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_subsets_are_scaled_up_to_the_whole():
    problem, _ = random_problem(102, 3, [5, 3, 4, 1])
    working = working_loss(problem)
    parts = working.sequences[:2], working.sequences[2:]
    values, gradients = zip(
        *(Sample(working, part).value_and_grad(problem.theta) for part in parts), strict=True
    )
    value, gradient = working.value_and_grad(problem.theta)
    assert 0.5 * sum(values) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(0.5 * sum(gradients), gradient, atol=1e-12)


def test_samples_grow_and_have_those_before(monkeypatch):
    problem, penalty = random_problem(103, 3, [2, 1] * 20)[0], ElasticNet(0.0, 1.0)
    working = working_loss(problem)
    visited: list[np.ndarray] = []
    add = ChainExampleLoss.add

    def spy(self, members, theta, gradient):
        visited.append(members)
        return add(self, members, theta, gradient)

    monkeypatch.setattr(ChainExampleLoss, "add", spy)
    solver = Hybrid(growth=1.5, first_share=0.05)
    state = solver.start(working, penalty, np.zeros(len(working.coordinates)))
    order = np.random.default_rng(0).permutation(working.sequences)
    passes, n_steps = 0.0, 0
    while state.size < 40:
        passes, n_steps = passes + solver.step(working, penalty, state).passes, n_steps + 1
        gradient = np.zeros_like(state.theta)
        value = add(working, order[: state.known], state.theta, gradient)
        assert state.partial_value == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(state.partial, gradient, atol=1e-9)
    samples = [members for members in visited if members[0] == order[0]]
    sizes = list(dict.fromkeys(map(len, samples)))
    assert sizes == [2, 4, 7, 12, 19, 30] and n_steps == 3
    for members in samples:
        np.testing.assert_array_equal(members, order[: len(members)])
    # The new examples of a larger sample are evaluated before the line search.
    added = [members for members in visited if members[0] != order[0]]
    np.testing.assert_array_equal(np.concatenate(added), order[2:30])
    assert 40 * passes == pytest.approx(sum(map(len, visited)) + 40 - 30)
