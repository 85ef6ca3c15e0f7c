"""SGD-L1 and the warm start."""

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.examples import MinibatchDescent
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.warm_start import WarmStart

from ..support.learning_cases import learnable
from ..support.runs import training_of


@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_observed_pairs_only(l1):
    problem = learnable()
    options = {"l1": l1, "l2": 0.1, "observed_only": True}
    training = training_of(problem.corpus, list("abcd"), OWLQN(window=0.0), **options)
    assert any(training.step().converged for _ in range(200))
    loss = ChainLoss(problem.corpus, 4, Workers(1))
    observed = loss.coordinates("observed")
    assert training.size.n_potential == len(observed) < loss.n_potential
    coordinates, values = training.weights
    assert set(coordinates) <= set(observed)
    # The result is the minimum over those weights.
    theta = np.zeros(len(observed))
    theta[np.searchsorted(observed, coordinates)] = values
    _, gradient = loss.restrict(observed).value_and_grad(theta)
    assert ElasticNet(l1, 0.1).distance(theta, gradient) <= 2e-3


def test_warm_start_gets_near_the_minimum_and_is_reproducible():
    problem = learnable()
    penalty = ElasticNet(0.5, 0.01)
    names = list("abcd")
    options = {"l1": 0.5, "l2": 0.01, "warm_start": WarmStart(epochs=0)}
    cold = training_of(problem.corpus, names, OWLQN(), **options)
    loss = ChainLoss(problem.corpus, 4, Workers(1))
    starts = [WarmStart(epochs=10, averaged=False, seed=s)(loss, penalty) for s in (0, 0, 1)]
    np.testing.assert_array_equal(starts[0][0], starts[1][0])
    np.testing.assert_array_equal(starts[0][1], starts[1][1])
    assert not np.array_equal(starts[0][1], starts[2][1])
    coordinates, theta = starts[0]
    assert (theta != 0.0).all()
    at_zero = loss.restrict(np.empty(0, np.int64)).value_and_grad(np.empty(0))[0]
    reached = loss.restrict(coordinates).value_and_grad(theta)[0] + penalty.value(theta)
    for _ in range(30):
        minimum = cold.step().objective
    assert minimum < reached < minimum + 0.2 * (at_zero - minimum)


def test_the_warm_start_gives_means_of_its_second_half(monkeypatch):
    taken, run = [], MinibatchDescent.run

    def run_and_note(descent, order, etas):
        value = run(descent, order, etas)
        taken.append((descent.due, descent.theta.copy()))
        return value

    loss, penalty = ChainLoss(learnable().corpus, 4, Workers(1)), ElasticNet(0.5, 0.01)
    monkeypatch.setattr(MinibatchDescent, "run", run_and_note)
    coordinates, means = WarmStart(epochs=3)(loss, penalty)
    # Of three passes in eight rounds, after the trials: half of the second pass, and the third.
    assert len({due for due, _ in taken[-24:]}) == 24
    last = taken[-1][1]
    expected = np.mean([theta for _, theta in taken[-12:]], axis=0)[last != 0.0]
    np.testing.assert_allclose(means, expected, rtol=1e-12)
    np.testing.assert_array_equal(coordinates, loss.coordinates("descent")[np.flatnonzero(last)])
    taken.clear()
    WarmStart(epochs=3, averaged=False)(loss, penalty)
    # Penalties due are applied at once or in parts, with slightly different results.
    np.testing.assert_allclose(taken[-1][1], last, atol=1e-3)


@pytest.mark.parametrize(("averaged", "evaluated"), [(False, True), (True, True), (True, False)])
def test_warm_and_cold_starts_reach_the_same_minimum(averaged, evaluated):
    """A warm start that is evaluated counts as an outer iteration."""
    problem, objectives = learnable(), []
    loss, penalty = ChainLoss(problem.corpus, 4, Workers(1)), ElasticNet(0.5, 0.01)
    for epochs in (0, 5):
        start = WarmStart(epochs=epochs, averaged=averaged, evaluated=evaluated)
        options = {"l1": 0.5, "l2": 0.01, "warm_start": start}
        solver = OWLQN(tolerance=1e-6, window=0.0)
        training = training_of(problem.corpus, list("abcd"), solver, **options)
        first = training.step()
        if evaluated and epochs > 0:
            coordinates, theta = start(loss, penalty)
            np.testing.assert_array_equal(training.weights[0], coordinates)
            np.testing.assert_array_equal(training.weights[1], theta)
            value = loss.restrict(coordinates).value_and_grad(theta)[0] + penalty.value(theta)
            assert first.objective == pytest.approx(value)
            assert (first.passes, first.n_active, first.converged) == (epochs, len(theta), False)
            assert training.step().passes >= solver.inner_iterations
        else:
            assert first.passes > epochs or first.converged
        assert any(training.step().converged for _ in range(100))
        objectives.append(training.objective)
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-7)
