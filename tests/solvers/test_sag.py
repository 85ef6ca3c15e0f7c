"""SAG and SAGA: convergence, state, memory."""

import copy
from dataclasses import dataclass, field

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.workspace import Limits
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.sag import sag
from spacy_sparsecrf.crf.solvers.sag.sag import REVISIT, SAG, StoredGradients
from spacy_sparsecrf.crf.solvers.sag.sag_updates import GROWING, PAIRED, Rules, draw

from ..reference import Problem, random_problem
from ..support.kernel_functions import compiled
from ..support.layouts import in_every_layout
from ..support.runs import training_of
from ..support.solver_cases import LENGTHS, METHODS, everything, example_loss


def test_sums_of_stored_gradients_do_not_drift_and_follow_the_working_set():
    problem, _ = random_problem(80, 3, LENGTHS, n_bigram=3, weighted=True, missing=0.2)
    loss, penalty, solver = ChainLoss(problem.corpus, 3, Workers(1)), ElasticNet(0.1, 0.1), SAG()
    working = loss.by_example(loss.coordinates("all"))
    state = solver.start(working, penalty, problem.theta)
    for _ in range(30):
        solver.step(working, penalty, state)
    again = working.derived(StoredGradients).gradient(working, state.nodes, state.pairs)
    np.testing.assert_allclose(state.total, again, atol=1e-11)
    source = np.flatnonzero(np.random.default_rng(1).random(loss.n_potential) < 0.4)
    part = loss.by_example(source)
    moved = solver.remap(part, penalty, state, source, state.gradient[source])
    np.testing.assert_allclose(moved.total, state.total[source], atol=1e-11)
    np.testing.assert_array_equal(moved.theta, state.theta[source])
    empty = loss.by_example(source[:0])
    nothing = solver.remap(empty, penalty, state, source[:0], state.gradient[:0])
    assert solver.step(empty, penalty, nothing).n_active == 0


def test_stored_gradients_are_those_of_weights_up_to_any_place():
    problem, _ = random_problem(81, 3, [3, 1, 2], n_values=2)
    loss, penalty, solver = ChainLoss(problem.corpus, 3, Workers(1)), ElasticNet(0.0, 0.1), SAG()
    working = loss.by_example(loss.coordinates("all"))
    state = solver.start(working, penalty, problem.theta)
    solver.step(working, penalty, state)
    assert np.count_nonzero(state.total) > 20
    places = np.arange(loss.n_potential)
    # The last working set has four weights of each bigram feature.
    n_unigram = loss.coding.first_pair
    four = places[(places < n_unigram) | ((places - n_unigram) % 12 < 4)]
    for own in [*(places[:m] for m in range(1, len(places))), four]:
        part = loss.by_example(own)
        moved = solver.remap(part, penalty, state, own, state.gradient[own])
        np.testing.assert_allclose(moved.total, state.total[own], atol=1e-12)


def test_by_default_the_gradient_ends_a_run_and_steps_that_are_too_long_are_shortened(monkeypatch):
    problem, _ = random_problem(81, 3, [3, 1, 2], n_values=2)
    penalty, working = ElasticNet(0.0, 0.1), everything(problem.corpus, 3)
    for stopping, converged in (("gradient", True), ("memory", False)):
        solver = SAG(tolerance=1e9, stopping=stopping)
        state = solver.start(working, penalty, problem.theta)
        assert solver.step(working, penalty, state).converged == converged
        # One sequence was not drawn, so its gradient is not stored.
        assert state.curvatures.min() == 0.0
    problem, _ = random_problem(84, 3, LENGTHS * 3)
    penalty, working = ElasticNet(0.0, 0.5), everything(problem.corpus, 3)
    start = np.zeros_like(problem.theta)
    # Without the search, the curvature estimate remains far too small.
    monkeypatch.setattr(sag, "LEAST_NORM", np.inf)
    solver = SAG(sampling="uniform")
    state = solver.start(working, penalty, start)
    state.common[:] = 1e-3
    for _ in range(400):
        report = solver.step(working, penalty, state)
    assert state.caution > 1.0
    assert report.objective < working.value_and_grad(start)[0]


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_the_papers_test_of_stored_gradients_can_tell_when_to_stop(l1):
    problem, _ = random_problem(82, 3, [3, 2, 4, 1] * 3, n_values=4)
    penalty, working = ElasticNet(l1, 0.3), everything(problem.corpus, 3)
    solver = SAG(sampling="uniform", tolerance=0.3, stopping="memory")
    passes_unseen = 0
    for seed in range(3):
        solver.seed = seed
        state = solver.start(working, penalty, np.zeros_like(problem.theta))
        converged = False
        while not converged:
            report = solver.step(working, penalty, state)
            seen = state.curvatures.min() > 0.0
            # Algorithm 1: m = n and |d / n + lambda w| < delta, here for the sum.
            converged = seen and penalty.distance(state.theta, state.total) <= 0.3
            assert report.converged == converged
            passes_unseen += not seen
        _, gradient = working.value_and_grad(state.theta)
        assert report.optimality == pytest.approx(penalty.distance(state.theta, gradient), rel=1e-9)
    assert passes_unseen > 0


def test_a_pass_without_finite_objective_is_undone(monkeypatch):
    problem, _ = random_problem(83, 3, LENGTHS)
    penalty, working, solver = ElasticNet(0.0, 0.5), everything(problem.corpus, 3), SAG()
    state = solver.start(working, penalty, problem.theta)
    solver.step(working, penalty, state)
    before = copy.deepcopy(state)
    evaluate = working.value_and_grad
    monkeypatch.setattr(
        working, "value_and_grad", lambda theta: (np.inf, np.zeros_like(theta)), raising=True
    )
    report = solver.step(working, penalty, state)
    assert not report.converged
    assert report.objective == before.value
    np.testing.assert_array_equal(state.theta, before.theta)
    assert state.caution == 2.0
    assert not state.curvatures.any() and not state.total.any() and not state.nodes.any()
    monkeypatch.setattr(working, "value_and_grad", evaluate)
    solver.step(working, penalty, state)
    assert 1.0 < state.caution < 2.0
    for _ in range(40):
        report = solver.step(working, penalty, state)
    assert report.optimality < 1e-2
    assert state.caution < 2.0


# The iterates of SAG and SAGA against a reference that stores whole gradients.


@dataclass
class Reference:
    """A reference that stores the gradient of each sequence, and updates all weights per draw."""

    problem: Problem
    # Sequences of the corpus, in the solver's order.
    sequences: list[int]
    sampling: str
    method: str
    penalty: ElasticNet
    revisit: float
    theta: np.ndarray
    common: float = 1.0
    order: list[int] = field(init=False)
    slopes: np.ndarray = field(init=False)
    curvatures: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.slopes = np.zeros((len(self.sequences), len(self.theta)))
        self.curvatures = np.zeros(len(self.sequences))

    def evaluate(self, s: int, theta: np.ndarray) -> tuple[float, np.ndarray]:
        weight = self.problem.corpus.weights[self.sequences[s]]
        value, gradient = example_loss(self.problem, self.sequences[s], theta)
        return weight * value, weight * gradient

    def share(self) -> float:
        """Return the probability that the next draw is by curvature."""
        n_seen = np.count_nonzero(self.curvatures)
        seen = n_seen / len(self.sequences)
        shares = {"uniform": 0.0, "nus*": 0.5, "nus": 0.5 * seen, "by L": seen, "memory": 0.0}
        return shares[self.sampling] if n_seen else 0.0

    def draw(self, numbers: np.ndarray) -> tuple[int, float]:
        """Draw a sequence; return it and its probability.

        Sequences that were not seen are drawn as if they had the mean curvature.
        """
        n, share, seen = len(self.sequences), self.share(), self.curvatures > 0.0
        by_curvature = share * self.curvatures / max(self.curvatures.sum(), 1e-300)
        others = np.full(n, (1.0 - share) / n)
        alike = seen.sum() / n - share
        by_order = self.sampling in ("nus", "by L", "memory")
        if by_order:
            others = np.where(seen, alike / max(seen.sum(), 1), 1.0 / n)
        np.testing.assert_allclose((by_curvature + others).sum(), 1.0, rtol=1e-12)
        if numbers[0] < share:
            sums = np.cumsum(self.curvatures)
            s = int(np.searchsorted(sums, numbers[1] * sums[-1], side="right"))
        elif not by_order:
            s = int(numbers[1] * n)
        elif numbers[0] < share + alike:
            s = self.order[int(numbers[1] * seen.sum())]
        else:
            place = int(seen.sum() + numbers[1] * (n - seen.sum()))
            s, first = self.order[place], int(seen.sum())
            self.order[place], self.order[first] = self.order[first], s
        return s, float(by_curvature[s] + others[s])

    def begin_pass(self) -> None:
        """Put sequences that were visited first."""
        self.order = sorted(range(len(self.sequences)), key=lambda s: self.curvatures[s] == 0.0)

    def first_estimate(self, s: int) -> float:
        if self.sampling == "uniform":
            return self.common
        if self.curvatures[s] > 0.0:
            return self.revisit * self.curvatures[s]
        if self.sampling in ("nus*", "by L", "memory") and self.curvatures.any():
            return 0.5 * self.curvatures[self.curvatures > 0.0].mean()
        return 1.0

    def search(self, s: int, gradient: np.ndarray) -> float:
        curvature, norm = self.first_estimate(s), gradient @ gradient
        value, _ = self.evaluate(s, self.theta)
        while True:
            trial, _ = self.evaluate(s, self.theta - gradient / curvature)
            if trial < value - norm / (2.0 * curvature):
                return curvature
            curvature *= 2.0

    def step(self, numbers: np.ndarray) -> None:
        n, decay, share = len(self.sequences), self.penalty.l2 / len(self.sequences), self.share()
        s, probability = self.draw(numbers)
        (_, gradient), old = self.evaluate(s, self.theta), self.slopes[s].copy()
        total = self.slopes.sum(axis=0)
        self.curvatures[s] = self.search(s, gradient)
        if self.method == "saga2":
            self.step_alone(s, gradient, numbers)
            return
        self.slopes[s] = gradient
        largest = self.curvatures.max()
        if self.sampling == "uniform":
            largest = self.curvatures[s]
            self.common = largest * 2.0 ** (-1.0 / n)
        seen = self.curvatures[self.curvatures > 0.0]
        alpha = (1.0 - share) / (largest + decay) + share / (seen.mean() + decay)
        if self.method == "sag":
            m, direction = len(seen), self.slopes.sum(axis=0) / len(seen)
        else:
            alpha = 1.0 / (4.0 / alpha + n * decay)
            m, direction = n, (gradient - old) / (n * probability) + total / n
        self.move(alpha, direction, m)

    def step_alone(self, s: int, gradient: np.ndarray, numbers: np.ndarray) -> None:
        """Step along the gradient of a second sequence; only the first enters the memory."""
        n, seen = len(self.sequences), self.curvatures[self.curvatures > 0.0]
        self.sampling = "by L"
        j, probability = self.draw(numbers[2:])
        self.sampling = "memory"
        if len(seen) == n:
            assert probability == pytest.approx(self.curvatures[j] / self.curvatures.sum())
        _, other = self.evaluate(j, self.theta)
        direction = (other - self.slopes[j]) / (n * probability) + self.slopes.sum(axis=0) / n
        self.move(0.25 / (seen.mean() + self.penalty.l2 / n), direction, n)
        self.slopes[s] = gradient

    def move(self, alpha: float, direction: np.ndarray, m: int) -> None:
        moved = (1.0 - alpha * self.penalty.l2 / len(self.sequences)) * self.theta
        moved -= alpha * direction
        least = alpha * self.penalty.l1 / m
        self.theta = np.sign(moved) * np.maximum(np.abs(moved) - least, 0.0)


def assert_equal_to_reference(
    problem: Problem, sampling: str, method: str, penalty: ElasticNet, **options: Limits
) -> None:
    working = everything(problem.corpus, problem.n_labels, **options)
    solver = SAG(sampling=sampling, method=method, seed=3)
    state = solver.start(working, penalty, problem.theta)
    n = len(state.curvatures)
    # Sequences are identified by their weights.
    weights = working.space.lattice.weights[:n]
    sequences = [int(np.flatnonzero(problem.corpus.weights == w)[0]) for w in weights]
    theta, revisit = problem.theta.copy(), REVISIT[sampling]
    width, drawn = (4, "memory") if method == "saga2" else (2, sampling)
    reference = Reference(problem, sequences, drawn, method, penalty, revisit, theta)
    for epoch in range(3):
        report = solver.step(working, penalty, state)
        reference.begin_pass()
        for numbers in np.random.default_rng([3, epoch]).random((n, width)):
            reference.step(numbers)
        np.testing.assert_allclose(state.curvatures, reference.curvatures, rtol=1e-9)
        np.testing.assert_allclose(state.theta, reference.theta, atol=1e-10)
        np.testing.assert_allclose(state.total, reference.slopes.sum(axis=0), atol=1e-10)
        at = Problem(problem.corpus, problem.n_labels, state.theta)
        value, gradient = at.loss()
        assert report.objective == pytest.approx(value + penalty.value(state.theta), rel=1e-10)
        np.testing.assert_allclose(state.gradient, gradient + penalty.l2 * state.theta, atol=1e-9)
    assert state.caution == 1.0


@pytest.mark.parametrize("l1", [0.0, 0.4])
@pytest.mark.parametrize(("method", "sampling"), METHODS)
def test_stored_residuals_give_the_iterates_of_stored_gradients(sampling, method, l1):
    problem, _ = random_problem(71, 3, LENGTHS, weighted=True, n_bigram=3, scale=0.3)
    assert_equal_to_reference(problem, sampling, method, ElasticNet(l1, 0.5))


@in_every_layout
@pytest.mark.parametrize("method", ["sag", "saga2"])
@pytest.mark.parametrize(
    "options",
    [{"missing": 0.3}, {"start_label": False, "n_bigram": 3}, {"n_bigram": 0}, {"n_unigram": 0}],
)
def test_iterates_of_all_kinds_of_problems(options, method, limits):
    problem, _ = random_problem(72, 3, LENGTHS, weighted=True, scale=0.3, **options)
    assert_equal_to_reference(problem, "nus*", method, ElasticNet(0.1, 0.5), limits=limits)


@pytest.mark.parametrize("n_unseen", [0, 2])
def test_steps_of_saga2_are_unbiased(n_unseen):
    problem, _ = random_problem(73, 3, LENGTHS, weighted=True, scale=0.3)
    working, penalty = everything(problem.corpus, 3), ElasticNet(0.0, 0.5)
    solver = SAG(method="saga2")
    state = solver.start(working, penalty, problem.theta)
    for _ in range(9):
        solver.step(working, penalty, state)
    state.theta += np.random.default_rng(0).normal(size=len(state.theta))
    state.curvatures[:n_unseen] = 0.0
    memory, n, m = working.derived(StoredGradients), len(LENGTHS), len(LENGTHS) - n_unseen
    rules = Rules(PAIRED, True, 0.9, 1e-8, 1.0, 0.0, penalty.l2 / n)

    def move(*numbers: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the change of weights in a step, and the curvatures after it."""
        at = copy.deepcopy(state)
        memory.run(np.array([numbers]), rules, at.average)
        return at.theta - state.theta, at.curvatures

    gradient = working.value_and_grad(state.theta)[1] / n + rules.decay * state.theta
    firsts = [(0.0, (k + 0.5) / m) for k in range(m)]
    firsts += [(0.999, (k + 0.5) / n_unseen) for k in range(n_unseen)]
    for first in firsts:
        _, curvatures = move(*first, 0.0, 0.0)
        share, total = np.count_nonzero(curvatures) / n, curvatures.sum()
        ends, mean = np.cumsum(curvatures) / total, np.zeros_like(gradient)
        for end, part in zip(ends, curvatures / total, strict=True):
            # Without a curvature, the part is empty.
            mean += share * part * move(*first, 0.0, end - part / 2.0)[0]
        n_new = n - np.count_nonzero(curvatures)
        for k in range(n_new):
            mean += move(*first, 0.999, (k + 0.5) / n_new)[0] / n
        alpha = 0.25 / (total / (share * n) + rules.decay)
        np.testing.assert_allclose(mean, -alpha * gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("uniform", "s", "order"),
    [
        # Drawn by curvature, uniformly from visited sequences, and from new ones.
        ((0.2, 0.0), 1, [3, 1, 0, 2]),
        ((0.2, 0.5), 3, [3, 1, 0, 2]),
        ((0.25, 0.0), 3, [3, 1, 0, 2]),
        ((0.49, 0.99), 1, [3, 1, 0, 2]),
        ((0.5, 0.0), 0, [3, 1, 0, 2]),
        ((0.99, 0.5), 2, [3, 1, 2, 0]),
    ],
)
def test_sequences_are_drawn_by_curvature_alike_and_new(uniform, s, order):
    places = np.array([3, 1, 0, 2])
    sums = np.array([0.0, 2.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    assert compiled(draw)(np.array(uniform), GROWING, 0.25, 2, places, sums) == (s, 0.25)
    assert places.tolist() == order


@pytest.mark.parametrize("estimate", [np.nan, -1.0, 0.0])
def test_a_search_ends_where_an_estimate_does_not_grow(estimate):
    problem, _ = random_problem(3, 3, LENGTHS)
    working, penalty = everything(problem.corpus, 3), ElasticNet(0.0, 0.1)
    solver = SAG(sampling="uniform")
    state = solver.start(working, penalty, problem.theta.copy())
    state.common[:] = estimate
    assert np.isfinite(solver.step(working, penalty, state).objective)


def test_a_run_ends_by_the_criterion_of_the_memory():
    problem, _ = random_problem(82, 3, [3, 2, 4, 1] * 3, n_values=4)
    above = []
    for seed in range(6):
        solver = SAG(sampling="uniform", tolerance=0.05, stopping="memory", window=0.0, seed=seed)
        solver.inner_iterations = 1
        training = training_of(problem.corpus, list("abc"), solver, l1=0.0, l2=0.3)
        while not training.step().converged:
            (run,) = training._runs
            state, penalty = run.state.solver, ElasticNet(0.0, 0.3)
            seen = state.curvatures.min() > 0.0
            assert not (seen and penalty.distance(state.theta, state.total) <= 0.05)
        above.append(training.report.optimality > 0.05)
    assert any(above)
