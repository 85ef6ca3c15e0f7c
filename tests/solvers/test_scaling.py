"""GIS and SCGIS on per-position models."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.gis.gis import GIS
from spacy_sparsecrf.crf.solvers.gis.gis_kernels import _solve, scaled_weight
from spacy_sparsecrf.crf.solvers.gis.scgis import SCGIS, probabilities
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.errors import SparseCRFError

from ..reference import Problem, random_problem
from ..support.kernel_functions import compiled
from ..support.minimisers import LOCAL_SOLVERS, make_loss
from ..support.runs import training_of
from ..support.solver_cases import working_loss


def local_problem(seed: int = 71, **options) -> tuple[Problem, ChainLoss]:
    options = {"n_bigram": 2, "n_values": 3, "weighted": True, "missing": 0.1} | options
    problem, _ = random_problem(seed, 3, [6, 4, 7, 5, 8], **options)
    return problem, make_loss(problem, "memm")


def bound(weight, observed, expected, slowing, l1, l2, new):
    change = new - weight
    growth = expected / slowing * np.expm1(slowing * change)
    return growth - observed * change + l1 * abs(new) + l2 / 2 * new**2


@pytest.mark.parametrize("l1", [0.0, 0.5])
@pytest.mark.parametrize("l2", [0.0, 1e-5, 0.1, 10.0])
@pytest.mark.parametrize("slowing", [1.0, 7.0])
def test_a_weight_moves_to_the_minimum_of_the_bound(l1, l2, slowing):
    rng = np.random.default_rng(1)
    moved_to_zero = 0
    for _ in range(200):
        weight = rng.choice([0.0, rng.normal()])
        expected = np.exp(rng.normal(scale=3.0))
        observed = rng.choice([0.0, expected * np.exp(rng.normal())])
        if observed == l1 == l2 == 0.0:
            continue
        settings = (weight, observed, expected, slowing, l1, l2)
        found = compiled(scaled_weight)(*settings)
        lowest = minimize_scalar(
            lambda new, settings=settings: bound(*settings, new),
            bounds=(-40.0, 40.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert bound(*settings, found) <= lowest.fun + 1e-9 * abs(lowest.fun)
        # The subdifferential there contains zero.
        smooth = expected * np.exp(slowing * (found - weight)) - observed + l2 * found
        distance = max(abs(smooth) - l1, 0.0) if found == 0.0 else smooth + l1 * np.sign(found)
        assert abs(distance) <= 1e-9 * (expected + observed + abs(weight))
        moved_to_zero += found == 0.0
    assert (moved_to_zero > 0) == (l1 > 0.0)
    # A feature that does not occur has weight zero.
    for weight in np.linspace(0.0, 2.0, 41):
        assert compiled(scaled_weight)(weight, 0.0, 0.0, slowing, l1, l2) == 0.0


@pytest.mark.parametrize(("expected", "slope", "target"), [(1e-3, 1.0, 100.0), (1e-9, 0.1, 50.0)])
def test_roots_far_from_the_start_are_found(expected, slope, target):
    t = compiled(_solve)(expected, slope, target)
    assert expected * np.exp(t) + slope * t == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize("values", [(800.0, 0.0, 0.0, 50.0), (-800.0, 3.0, 1e300, 50.0)])
def test_far_weights_move_by_bounded_finite_steps(values):
    weight, observed, expected, slowing = values
    found = compiled(scaled_weight)(weight, observed, expected, slowing, 0.1, 0.1)
    assert np.isfinite(found)
    assert 0.0 < abs(found - weight) <= 30.0 / slowing + 1e-12
    # All weights within l1 become zero.
    weights = np.linspace(-0.3, 0.3, 41)
    assert not any(compiled(scaled_weight)(w, 1.0, 1.0, 7.0, 9.0, 0.1) for w in weights)


@pytest.mark.parametrize("solver", LOCAL_SOLVERS)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.5), (0.3, 0.0), (0.2, 0.1)])
@pytest.mark.parametrize("options", [{}, {"start_label": False, "n_bigram": 3}])
def test_the_objective_never_rises(solver, l1, l2, options):
    _, loss = local_problem(**options)
    penalty = ElasticNet(l1, l2)
    solver = LOCAL_SOLVERS[solver]()
    working = loss.restrict(loss.coordinates("all"))
    theta = 2.0 * np.random.default_rng(0).normal(size=loss.n_potential)
    state = solver.start(working, penalty, theta)
    first = last = state.value
    for _ in range(30):
        report = solver.step(working, penalty, state)
        assert report.objective <= last * (1.0 + 1e-13)
        assert report.passes == 1.0
        last = report.objective
    assert last < 0.9 * first


@pytest.mark.parametrize("l1", [0.0, 0.2])
@pytest.mark.parametrize("by_feature", [False, True])
def test_a_sweep_equals_one_that_keeps_nothing(by_feature, l1):
    """Evaluate the whole loss for each weight (Goodman 2002, figure 2), or for each feature."""
    problem, loss = local_problem(72)
    penalty, solver = ElasticNet(l1, 0.1), SCGIS(by_feature=by_feature)
    assert SCGIS().by_feature
    working = loss.restrict(loss.coordinates("all"))
    state, theta = solver.start(working, penalty, problem.theta.copy()), problem.theta.copy()
    solver.step(working, penalty, state)
    for k, observed in enumerate(working.observed):
        if not by_feature or k % problem.n_labels == 0:
            counts = working.value_and_grad(theta)[1] + working.observed
        theta[k] = compiled(scaled_weight)(theta[k], observed, counts[k], 1.0, l1, penalty.l2)
    np.testing.assert_allclose(state.theta, theta, atol=1e-9)


@pytest.mark.parametrize("by_feature", [False, True])
def test_masses_kept_over_a_sweep_equal_those_computed_anew(by_feature):
    problem, loss = local_problem(73)
    penalty = ElasticNet(0.0, 1e-4)
    working = loss.restrict(loss.coordinates("all"))
    # Large weights, so that the sums vary by orders of magnitude.
    theta = 15.0 * problem.theta
    mass = probabilities(working, theta)
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, rtol=1e-12)
    total = np.ones(len(mass))
    SCGIS(by_feature=by_feature).sweep(working, penalty, theta, mass, total)
    np.testing.assert_allclose(total, mass.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(mass / total[:, None], probabilities(working, theta), atol=1e-9)


def test_tests_that_occur_twice_at_a_token_do_not_overshoot():
    problem, _ = local_problem(74, n_bigram=0, n_unigram=4)
    # Each column has a single feature.
    problem.corpus.uni_indices[:] = problem.corpus.uni_indices % 3
    problem.corpus.uni_indices.sort()
    loss = make_loss(problem, "memm")
    penalty = ElasticNet(0.0, 0.01)
    working = loss.restrict(loss.coordinates("all"))
    for make in LOCAL_SOLVERS.values():
        solver = make()
        state = solver.start(working, penalty, np.zeros(loss.n_potential))
        for _ in range(200):
            last = state.value
            report = solver.step(working, penalty, state)
            assert report.objective <= last * (1.0 + 1e-13)


def begin(loss: ChainLoss, solver, penalty: ElasticNet):
    """Return a function that runs a pass of a solver from zero weights; returns the objective."""
    working = loss.restrict(loss.coordinates("all"))
    state = solver.start(working, penalty, np.zeros(loss.n_potential))
    return lambda: solver.step(working, penalty, state).objective


def test_scgis_is_ahead_of_gis_the_more_features_are_on():
    """SCGIS is much closer after ten sweeps; GIS takes long to follow (Goodman 2002, table 1)."""
    penalty = ElasticNet(0.0, 0.1)
    needed = []
    for n_features in (2, 5, 12):
        problem, _ = random_problem(75, 3, [9] * 20, n_unigram=n_features, n_bigram=0, n_values=6)
        for t in range(problem.corpus.n_tokens):
            problem.corpus.labels[t] = problem.unigram_tests(t).sum() % 3
        loss = make_loss(problem, "memm")
        solvers = OWLQN(), GIS(), SCGIS(by_feature=False)
        owlqn, gis, scgis = (begin(loss, solver, penalty) for solver in solvers)
        lowest = [owlqn() for _ in range(20)][-1]
        reached = [scgis() for _ in range(10)][-1]
        after_ten = [gis() for _ in range(10)][-1]
        assert lowest < reached
        assert after_ten - lowest > 3.0 * (reached - lowest)
        n = 10
        while gis() > reached:
            n += 1
        needed.append(n)
    assert 20 < needed[0] < needed[1] / 2 < needed[2] / 4


@pytest.mark.parametrize("make", [GIS, SCGIS])
def test_scaling_refuses_chains(make):
    problem, _ = local_problem()
    chain = working_loss(problem, by_example=False)
    with pytest.raises(SparseCRFError, match=f"SC340.*{make.__name__}.*NewtonCG"):
        make().start(chain, ElasticNet(0.0, 1.0), np.zeros_like(problem.theta))


@pytest.mark.parametrize("make", [GIS, SCGIS])
def test_without_penalty_the_objective_falls_to_its_infimum(make):
    problem, _ = local_problem()
    run = training_of(problem.corpus, list("abc"), make(), kind="memm", l1=0.0, l2=0.0)
    # Pairs that never occur are absent, so their weights have no minimiser.
    objectives = [run.step().objective for _ in range(40)]
    assert (np.diff(objectives) < 0.0).all() and 0.0 < objectives[-1] < 0.2 * objectives[0]
