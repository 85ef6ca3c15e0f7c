"""Newton in orthants: the minimiser with l1, whatever its quadratic models are worth."""

import itertools

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.working import WorkingLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers import orthant_newton
from spacy_sparsecrf.solvers.base import StepReport
from spacy_sparsecrf.solvers.orthant_newton import OrthantNewton, State, proximal_point

from .layouts import LAYOUTS, force_layout
from .reference import Problem, random_problem
from .test_solvers import dense_weights, smooth_minimum, train


def working_loss(problem: Problem) -> WorkingLoss:
    loss = ChainLoss(problem.corpus, problem.n_labels, Workers(1))
    return loss.restrict(loss.all_coordinates())


def run(
    problem: Problem, penalty: ElasticNet, theta: np.ndarray, n_steps: int, **settings
) -> tuple[State, list[StepReport]]:
    solver = OrthantNewton(**({"tolerance": 1e-7, "window": 0.0} | settings))
    loss = working_loss(problem)
    state = solver.start(loss, penalty, theta)
    reports = []
    for _ in range(n_steps):
        reports.append(solver.step(loss, penalty, state))
        if reports[-1].converged:
            break
    return state, reports


def never_rises(start: float, reports: list[StepReport]) -> bool:
    values = [start, *(report.objective for report in reports)]
    return all(b <= a + 1e-12 * abs(a) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("l1", "l2"), [(0.5, 0.1), (0.5, 1e-5), (0.0, 1.0), (2.0, 0.0)])
@pytest.mark.parametrize("options", [{}, {"weighted": True, "start_label": False}])
def test_it_reaches_the_minimiser_with_any_layout(monkeypatch, layout, l1, l2, options):
    force_layout(monkeypatch, layout)
    problem, _ = random_problem(91, 3, [4, 3, 5, 5, 4], n_bigram=3, n_values=2, **options)
    expected, _ = smooth_minimum(problem, l1, l2)
    solver = OrthantNewton(tolerance=1e-7, window=0.0)
    training = train(problem, l1, l2, solver)
    assert training.objective == pytest.approx(expected, rel=1e-6)
    problem.theta = dense_weights(training, len(problem.theta))
    assert ElasticNet(l1, l2).distance(problem.theta, problem.loss()[1]) <= 1e-6


@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0])
def test_far_starts_lead_to_the_same_minimum(scale):
    problem, _ = random_problem(92, 3, [6, 4, 7, 5, 8], n_bigram=3)
    penalty = ElasticNet(0.3, 0.01)
    expected, _ = smooth_minimum(problem, 0.3, 0.01)
    start = scale * problem.theta
    first = working_loss(problem).value_and_grad(start)[0] + penalty.value(start)
    state, reports = run(problem, penalty, start, 500)
    assert never_rises(first, reports)
    assert state.value == pytest.approx(expected, rel=1e-6)
    assert reports[-1].optimality <= 1e-6


@pytest.mark.parametrize("l2", [1e-3, 0.0])
def test_flat_and_badly_scaled_problems(l2):
    problem, _ = random_problem(93, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8)
    start = np.where(np.arange(len(problem.theta)) % 2, 30.0, -30.0)
    penalty = ElasticNet(1e-3, l2)
    first = working_loss(problem).value_and_grad(start)[0] + penalty.value(start)
    state, reports = run(problem, penalty, start, 40)
    assert never_rises(first, reports)
    assert np.isfinite(state.theta).all()
    assert reports[-1].objective < 0.2 * first


def test_constrained_copies_make_the_loss_concave_in_places():
    problem, _ = random_problem(94, 3, [5, 4, 5, 2] * 3, missing=0.7, weighted=True, n_bigram=3)
    penalty = ElasticNet(0.1, 0.05)
    first = working_loss(problem).value_and_grad(problem.theta)[0] + penalty.value(problem.theta)
    state, reports = run(problem, penalty, problem.theta, 200, tolerance=1e-6)
    assert never_rises(first, reports)
    problem.theta = state.theta
    assert penalty.distance(state.theta, problem.loss()[1]) <= 1e-5


def spoilt(kind: str):
    """A Newton step that is none: it leads up, nowhere, or beyond all bounds."""

    def step(product, gradient, metric, radius, xi, max_products):
        product(gradient)
        found = {"up": gradient / metric, "none": 0.0 * gradient, "far": -1e12 * gradient}[kind]
        return found, -gradient

    return step


@pytest.mark.parametrize("kind", ["up", "none", "far"])
@pytest.mark.parametrize("l1", [0.5, 0.0])
def test_proximal_steps_converge_where_every_newton_step_fails(monkeypatch, kind, l1):
    monkeypatch.setattr(orthant_newton, "truncated_newton_step", spoilt(kind))
    problem, _ = random_problem(95, 3, [6, 4, 7, 5, 8], n_values=2)
    penalty = ElasticNet(l1, 0.5)
    expected, _ = smooth_minimum(problem, l1, 0.5)
    start = 3.0 * problem.theta
    first = working_loss(problem).value_and_grad(start)[0] + penalty.value(start)
    state, reports = run(problem, penalty, start, 2000, tolerance=1e-5)
    assert never_rises(first, reports)
    assert state.value == pytest.approx(expected, rel=1e-6)
    assert reports[-1].optimality <= 1e-5


@pytest.mark.parametrize("l1", [0.0, 0.4])
@pytest.mark.parametrize("width", [1.0, 0.1])
def test_the_proximal_point_minimises_its_model(l1, width):
    rng = np.random.default_rng(5)
    theta, gradient, metric = rng.normal(size=30), rng.normal(size=30), rng.uniform(0.2, 3.0, 30)
    theta[::3] = 0.0
    point, promised = proximal_point(ElasticNet(l1, 9.0), theta, gradient, metric, width)

    def model(w):
        near = metric * (w - theta) ** 2 / (2.0 * width)
        return gradient * (w - theta) + near + l1 * np.abs(w)

    for offset in (-1e-4, 1e-4):
        assert (model(point) <= model(point + offset) + 1e-15).all()
    assert (model(point) <= model(np.zeros(30)) + 1e-15).all()
    slope = gradient @ (point - theta) + l1 * (np.abs(point).sum() - np.abs(theta).sum())
    assert promised == pytest.approx(-slope)
    # Tseng & Yun 2009, lemma 1.
    assert promised >= (metric * (point - theta) ** 2).sum() / width - 1e-12


def test_no_newton_step_lets_a_weight_cross_zero(monkeypatch):
    def forbidden(*args):
        raise AssertionError("a proximal step was needed")

    monkeypatch.setattr(orthant_newton, "_proximal_search", forbidden)
    problem, _ = random_problem(96, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8)
    loss, penalty = working_loss(problem), ElasticNet(0.3, 0.01)
    solver = OrthantNewton()
    state = solver.start(loss, penalty, problem.theta)
    for _ in range(8):
        before = state.theta
        solver.step(loss, penalty, state)
        assert np.all(before * state.theta >= 0.0)
    assert np.count_nonzero(state.theta) < np.count_nonzero(problem.theta)


def test_what_is_stored_changes_no_iterate():
    problem, _ = random_problem(97, 4, [9, 8, 10, 3] * 5, n_bigram=3, weighted=True, missing=0.05)
    penalty = ElasticNet(0.3, 0.1)
    runs = [run(problem, penalty, problem.theta, 6, stored=n) for n in (-1, 0, 1, 7, 999)]
    for state, reports in runs[1:]:
        np.testing.assert_array_equal(state.theta, runs[0][0].theta)
        assert reports == runs[0][1]


def test_curvatures_are_right_where_the_corpus_is_cut_into_blocks(monkeypatch):
    problem, _ = random_problem(98, 4, [9, 8, 10, 3] * 5, n_bigram=3, weighted=True)
    penalty = ElasticNet(0.3, 0.1)
    whole = run(problem, penalty, problem.theta, 5)[0]
    monkeypatch.setattr("spacy_sparsecrf.loss.workspace._BLOCK_BYTES", 20 * 8 * 8)
    blocks = run(problem, penalty, problem.theta, 5)[0]
    np.testing.assert_allclose(blocks.theta, whole.theta, atol=1e-9)
    assert blocks.radius == pytest.approx(whole.radius, rel=1e-9)


@pytest.mark.parametrize("l1", [0.5, 1e-3])
def test_a_working_set_that_starts_empty(l1):
    problem, _ = random_problem(99, 4, [9, 8, 10, 3] * 3, n_bigram=3, n_values=8)
    solver = OrthantNewton(tolerance=1e-6, window=0.0, warm_start_epochs=0)
    training = train(problem, l1, 0.1, solver)
    expected, _ = smooth_minimum(problem, l1, 0.1)
    assert training.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"stored": -2}, "stored"),
        ({"xi": -0.1}, "xi"),
        ({"max_cg": 0}, "max_cg"),
        ({"max_line_search": 0}, "max_line_search"),
        ({"tolerance": float("nan")}, "tolerance"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(settings, key):
    with pytest.raises(SparseCRFError, match=f"SC306.*{key}"):
        OrthantNewton(**settings)
