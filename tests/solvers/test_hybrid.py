"""The hybrid method: sums over samples, sample growth, convergence."""

import numpy as np
import pytest

from spacy_sparsecrf.loss.examples import ChainExamples, Sample
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.hybrid import Hybrid

from ..loss.layouts import in_every_layout
from ..reference import random_problem
from .cases import working_loss
from .test_sgd import MISSING, example_loss, lattice_order


@in_every_layout
@pytest.mark.parametrize(
    "options", [{}, MISSING, {**MISSING, "start_label": False}, {"n_bigram": 0}, {"n_unigram": 0}]
)
def test_sums_of_examples_equal_enumeration(options, limits):
    problem, _ = random_problem(101, 3, [5, 3, 4, 1], **options)
    problem.corpus.labels[[0, 5, 8, 12]] = 0
    working = working_loss(problem, limits=limits)
    sums, numbers = ChainExamples(working), lattice_order(problem, working)
    # Cached potentials of other weights or examples must not be reused.
    for members, factor in (([0], 1.0), ([2, 0, 3], 0.5), ([1, 2], 0.5), ([], 1.0)):
        theta = factor * problem.theta
        gradient = np.ones_like(theta)
        value = sums.add(np.array(members, dtype=np.int64), theta, gradient)
        weights = problem.corpus.weights[numbers[members]]
        parts = [example_loss(problem, i, theta) for i in numbers[members]]
        expected = sum(w * v for w, (v, _) in zip(weights, parts, strict=True))
        assert value == pytest.approx(expected, abs=1e-10)
        expected = 1.0 + sum(w * g for w, (_, g) in zip(weights, parts, strict=True))
        np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_subsets_are_scaled_up_to_the_whole():
    problem, _ = random_problem(102, 3, [5, 3, 4, 1])
    working = working_loss(problem)
    sums = ChainExamples(working)
    parts = sums.sequences[:2], sums.sequences[2:]
    values, gradients = zip(
        *(Sample(sums, part).value_and_grad(problem.theta) for part in parts), strict=True
    )
    value, gradient = working.value_and_grad(problem.theta)
    assert 0.5 * sum(values) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(0.5 * sum(gradients), gradient, atol=1e-12)


def test_samples_grow_and_have_those_before(monkeypatch):
    problem, penalty = random_problem(103, 3, [2, 1] * 20)[0], ElasticNet(0.0, 1.0)
    working = working_loss(problem)
    visited: list[np.ndarray] = []
    add = ChainExamples.add

    def spy(self, members, theta, gradient):
        visited.append(members)
        return add(self, members, theta, gradient)

    monkeypatch.setattr(ChainExamples, "add", spy)
    solver = Hybrid(growth=1.5, first_share=0.05)
    state = solver.start(working, penalty, np.zeros(len(working.coordinates)))
    order = np.random.default_rng(0).permutation(ChainExamples(working).sequences)
    passes, n_steps = 0.0, 0
    while state.size < 40:
        passes, n_steps = passes + solver.step(working, penalty, state).passes, n_steps + 1
        gradient = np.zeros_like(state.theta)
        value = add(ChainExamples(working), order[: state.known], state.theta, gradient)
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
