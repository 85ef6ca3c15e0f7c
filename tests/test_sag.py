"""SAG and SAGA against twins that store whole gradients, and their way to the minimum."""

import copy
import gc
import weakref
from dataclasses import dataclass, field, fields
from functools import cache

import numpy as np
import pytest

from spacy_sparsecrf.corpus import CorpusBuilder, EncodedCorpus, Observations
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.kernels.forward import forward_loss
from spacy_sparsecrf.kernels.lazy import catch_up
from spacy_sparsecrf.kernels.sag_rules import BALANCED, GROWING, UNIFORM, draw, seen_first
from spacy_sparsecrf.kernels.sampling import draw_leaf, set_leaf, set_leaves
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.memory import SequenceMemory
from spacy_sparsecrf.loss.working import WorkingLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.solvers.sag import SAG, State
from spacy_sparsecrf.training import Training
from spacy_sparsecrf.working_set import WorkingSet

from .data import DATA, needs
from .layouts import LAYOUTS, force_layout
from .reference import Problem, random_problem
from .test_solvers import dense_weights, smooth_minimum, train

MODES = {"uniform": UNIFORM, "nus": GROWING, "nus*": BALANCED}
METHODS = ["sag", "saga"]
LENGTHS = [4, 3, 1, 3, 4, 2]
OCR = DATA / "ocr-letters.npz"


def everything(corpus: EncodedCorpus, n_labels: int, precision: str = "float64") -> WorkingLoss:
    loss = ChainLoss(corpus, n_labels, Workers(1), precision)
    return loss.restrict(loss.all_coordinates(), stochastic=True)


@dataclass
class Twin:
    """Stores the whole gradient of each sequence, changes all weights at each draw."""

    problem: Problem
    # Sequences of the corpus, in the order in which the solver counts them.
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

    def value(self, s: int, theta: np.ndarray) -> float:
        at = Problem(self.problem.corpus, self.problem.n_labels, theta)
        tokens = at.sequences()[self.sequences[s]]
        weight = at.corpus.weights[self.sequences[s]]
        return weight * (at.log_z(tokens) - at.log_z(tokens, agree=True))

    def gradient(self, s: int) -> np.ndarray:
        at = Problem(self.problem.corpus, self.problem.n_labels, self.theta)
        tokens = at.sequences()[self.sequences[s]]
        weight = at.corpus.weights[self.sequences[s]]
        return weight * (at.expected(tokens) - at.expected(tokens, agree=True))

    def share(self) -> float:
        """How likely the next draw is by curvature."""
        n_seen = np.count_nonzero(self.curvatures)
        shares = {"uniform": 0.0, "nus*": 0.5, "nus": 0.5 * n_seen / len(self.sequences)}
        return shares[self.sampling] if n_seen else 0.0

    def draw(self, numbers: np.ndarray) -> tuple[int, float]:
        """A sequence, and its probability."""
        n, share, seen = len(self.sequences), self.share(), self.curvatures > 0.0
        by_curvature = share * self.curvatures / max(self.curvatures.sum(), 1e-300)
        others = np.full(n, (1.0 - share) / n)
        if self.sampling == "nus":
            others = np.where(seen, share / max(seen.sum(), 1), 1.0 / n)
        np.testing.assert_allclose((by_curvature + others).sum(), 1.0, rtol=1e-12)
        if numbers[0] < share:
            sums = np.cumsum(self.curvatures)
            s = int(np.searchsorted(sums, numbers[1] * sums[-1], side="right"))
        elif self.sampling != "nus":
            s = int(numbers[1] * n)
        elif numbers[0] < 2.0 * share:
            s = self.order[int(numbers[1] * seen.sum())]
        else:
            place = int(seen.sum() + numbers[1] * (n - seen.sum()))
            s, first = self.order[place], int(seen.sum())
            self.order[place], self.order[first] = self.order[first], s
        return s, float(by_curvature[s] + others[s])

    def begin_pass(self) -> None:
        """Sequences that were seen come first."""
        self.order = sorted(range(len(self.sequences)), key=lambda s: self.curvatures[s] == 0.0)

    def first_estimate(self, s: int) -> float:
        if self.sampling == "uniform":
            return self.common
        if self.curvatures[s] > 0.0:
            return self.revisit * self.curvatures[s]
        if self.sampling == "nus*" and self.curvatures.any():
            return 0.5 * self.curvatures[self.curvatures > 0.0].mean()
        return 1.0

    def search(self, s: int, gradient: np.ndarray) -> float:
        curvature, norm = self.first_estimate(s), gradient @ gradient
        value = self.value(s, self.theta)
        while not (
            self.value(s, self.theta - gradient / curvature) < value - norm / (2.0 * curvature)
        ):
            curvature *= 2.0
        return curvature

    def step(self, numbers: np.ndarray) -> None:
        n, decay, share = len(self.sequences), self.penalty.l2 / len(self.sequences), self.share()
        s, probability = self.draw(numbers)
        gradient, old = self.gradient(s), self.slopes[s].copy()
        total = self.slopes.sum(axis=0)
        self.curvatures[s] = self.search(s, gradient)
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
        moved = (1.0 - alpha * decay) * self.theta - alpha * direction
        least = alpha * self.penalty.l1 / m
        self.theta = np.sign(moved) * np.maximum(np.abs(moved) - least, 0.0)


def assert_equal_to_twin(problem: Problem, sampling: str, method: str, penalty: ElasticNet) -> None:
    working = everything(problem.corpus, problem.n_labels)
    solver = SAG(sampling=sampling, method=method, seed=3)
    state = solver.start(working, penalty, problem.theta)
    n = len(state.curvatures)
    # Sequences are told by their weights.
    weights = working.space.lattice.weights[:n]
    sequences = [int(np.flatnonzero(problem.corpus.weights == w)[0]) for w in weights]
    theta = problem.theta.copy()
    twin = Twin(problem, sequences, sampling, method, penalty, solver.revisit, theta)
    for epoch in range(3):
        report = solver.step(working, penalty, state)
        twin.begin_pass()
        for numbers in np.random.default_rng([3, epoch]).random((n, 2)):
            twin.step(numbers)
        np.testing.assert_allclose(state.curvatures, twin.curvatures, rtol=1e-9)
        np.testing.assert_allclose(state.theta, twin.theta, atol=1e-10)
        np.testing.assert_allclose(state.total, twin.slopes.sum(axis=0), atol=1e-10)
        at = Problem(problem.corpus, problem.n_labels, state.theta)
        value, gradient = at.loss()
        assert report.objective == pytest.approx(value + penalty.value(state.theta), rel=1e-10)
        np.testing.assert_allclose(state.gradient, gradient + penalty.l2 * state.theta, atol=1e-9)
    assert state.caution == 1.0


@pytest.mark.parametrize("l1", [0.0, 0.4])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sampling", MODES)
def test_stored_residuals_give_the_iterates_of_stored_gradients(sampling, method, l1):
    problem, _ = random_problem(71, 3, LENGTHS, weighted=True, n_bigram=3, scale=0.3)
    assert_equal_to_twin(problem, sampling, method, ElasticNet(l1, 0.5))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "options",
    [{"missing": 0.3}, {"start_label": False, "n_bigram": 3}, {"n_bigram": 0}, {"n_unigram": 0}],
)
def test_iterates_of_all_kinds_of_problems(monkeypatch, options, layout):
    force_layout(monkeypatch, layout)
    problem, _ = random_problem(72, 3, LENGTHS, weighted=True, scale=0.3, **options)
    assert_equal_to_twin(problem, "nus*", "sag", ElasticNet(0.1, 0.5))


@pytest.mark.parametrize("l1", [0.0, 0.3])
@pytest.mark.parametrize("decay", [0.0, 0.2])
def test_missed_steps_are_made_up_for(l1, decay):
    rng = np.random.default_rng(73)
    n_steps, n_weights = 40, 3000
    alphas, counts = rng.uniform(0.05, 0.6, n_steps), rng.integers(1, 9, n_steps)
    shrunk, moved = np.zeros(n_steps + 1), np.zeros(n_steps + 1)
    for i, (alpha, m) in enumerate(zip(alphas, counts, strict=True)):
        shrunk[i + 1] = shrunk[i] + np.log1p(-alpha * decay)
        moved[i + 1] = (1.0 - alpha * decay) * moved[i] + alpha / m
    theta = rng.normal(size=n_weights) * (rng.random(n_weights) < 0.8)
    total = 0.8 * rng.normal(size=n_weights)
    expected, first, last = theta.copy(), 7, 33
    crossed = np.zeros(n_weights, dtype=bool)
    for alpha, m in zip(alphas[first:last], counts[first:last], strict=True):
        drawn = (1.0 - alpha * decay) * expected - alpha / m * total
        before = expected
        expected = np.sign(drawn) * np.maximum(np.abs(drawn) - alpha / m * l1, 0.0)
        crossed |= expected * before <= 0.0
    reached = np.array([first])
    catch_up(0, last, np.array([0, n_weights]), theta, total, l1, reached, shrunk, moved)
    np.testing.assert_allclose(theta, expected, atol=1e-12)
    assert reached[0] == last
    assert crossed.any() and not crossed.all()
    if l1 > 0.0:
        np.testing.assert_array_equal(theta == 0.0, expected == 0.0)
        assert 0 < np.count_nonzero(theta) < n_weights


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [{}, {"missing": 0.4}, {"start_label": False, "n_bigram": 3}])
def test_the_forward_recursion_alone_gives_the_loss(monkeypatch, options, layout):
    force_layout(monkeypatch, layout)
    problem, _ = random_problem(74, 3, LENGTHS, weighted=True, **options)
    working = everything(problem.corpus, 3)
    theta, pairs, lattice = problem.theta, working.pairs, working.space.lattice
    pairs.fill(theta[working.split :])
    spans = problem.sequences()
    for s, weight in enumerate(lattice.weights):
        begin, end = lattice.offsets[s], lattice.offsets[s + 1]
        contexts = pairs.contexts
        found = forward_loss(
            3,
            lattice.labels[begin:end],
            lattice.allowed[begin:end],
            working.token_rows.indptr[begin : end + 1],
            working.token_rows.indices,
            working.unigram.ptr,
            working.unigram.places,
            theta[: working.split],
            contexts.context[begin:end],
            contexts.matrix_of,
            pairs.psi,
            pairs.psi_shift,
            contexts.constant,
            contexts.ent_ptr,
            contexts.ent_start,
            contexts.ent_previous,
            contexts.ent_label,
            contexts.ent_place,
            pairs.ent_value,
            pairs.ent_change,
            pairs.rewritten,
            np.empty((end - begin, 8)),
            np.empty(8),
            np.empty((4, 8)),
        )
        # A constrained copy has minus the weight of its sequence, and labels of neither.
        tokens = spans[int(np.flatnonzero(problem.corpus.weights == abs(weight))[0])]
        known = lattice.labels[begin] >= 0
        expected = problem.log_z(tokens, agree=weight < 0.0)
        expected -= problem.log_z(tokens, agree=True) if known else 0.0
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_leaves_are_drawn_in_proportion():
    rng = np.random.default_rng(75)
    weights = rng.exponential(size=11)
    weights[[3, 10]] = 0.0
    sums, tops = np.zeros(32), np.zeros(32)
    set_leaves(sums, tops, rng.exponential(size=11))
    for leaf in rng.permutation(11):
        set_leaf(sums, tops, leaf, weights[leaf])
    fresh = np.zeros(32), np.zeros(32)
    set_leaves(*fresh, weights)
    np.testing.assert_allclose(sums, fresh[0], rtol=1e-14)
    np.testing.assert_array_equal(tops, fresh[1])
    assert sums[1] == pytest.approx(weights.sum(), rel=1e-14)
    assert tops[1] == weights.max()
    # At the numbers of a fine grid, each as often as its share to within one.
    n = 100_000
    drawn = [draw_leaf(sums, (i + 0.5) / n) for i in range(n)]
    counts = np.bincount(drawn, minlength=11)
    np.testing.assert_allclose(counts, n * weights / weights.sum(), atol=1.001)
    assert draw_leaf(sums, np.nextafter(1.0, 0.0)) == 9


@pytest.mark.parametrize("n_seen", [0, 5, 7])
@pytest.mark.parametrize("sampling", MODES)
def test_draws_have_the_probabilities_of_numpy_choice(sampling, n_seen):
    rng = np.random.default_rng(76)
    weights = rng.exponential(size=7)
    weights[rng.permutation(7)[n_seen:]] = 0.0
    sums, tops, order = np.zeros(16), np.zeros(16), np.zeros(7, np.int64)
    set_leaves(sums, tops, weights)
    assert seen_first(weights, order) == n_seen
    assert sorted(order) == list(range(7))
    seen = weights > 0.0
    assert seen[order[:n_seen]].all() and not seen[order[n_seen:]].any()
    by_curvature = weights / max(weights.sum(), 1e-300)
    p = np.full(7, 1.0 / 7.0)
    if sampling == "nus*" and n_seen:
        p = 0.5 / 7.0 + 0.5 * by_curvature
    elif sampling == "nus":
        p = np.where(seen, n_seen / 7.0 * (0.5 / max(n_seen, 1) + 0.5 * by_curvature), 1.0 / 7.0)
    n = 50_000
    found = [
        draw(numbers, MODES[sampling], n_seen, order.copy(), sums) for numbers in rng.random((n, 2))
    ]
    for s, probability in found[:200]:
        assert probability == pytest.approx(p[s], rel=1e-12)
    ours = np.bincount([s for s, _ in found], minlength=7) / n
    theirs = np.bincount(rng.choice(7, n, p=p), minlength=7) / n
    noise = np.sqrt(p * (1.0 - p) / n)
    assert np.all(np.abs(ours - p) < 5.0 * noise)
    assert np.all(np.abs(ours - theirs) < 7.0 * noise)


@pytest.mark.parametrize("sampling", MODES)
def test_all_sequences_are_soon_seen(sampling):
    problem, _ = random_problem(91, 2, [1, 2] * 100, n_bigram=0)
    working, penalty = everything(problem.corpus, 2), ElasticNet(0.0, 1.0)
    solver = SAG(sampling=sampling)
    state = solver.start(working, penalty, problem.theta)
    # Of 200 that are drawn alike, the last takes about log(200) passes; half as likely, twice that.
    for _ in range(20):
        solver.step(working, penalty, state)
    assert state.curvatures.min() > 0.0


@pytest.mark.parametrize("method", METHODS)
def test_the_mean_step_of_saga_is_that_of_the_gradient(method):
    problem, _ = random_problem(77, 3, LENGTHS, weighted=True, scale=0.3)
    working, penalty = everything(problem.corpus, 3), ElasticNet(0.0, 0.6)
    # Without searches, the steps of all draws are alike.
    solver = SAG(method=method, revisit=1.0)
    state = solver.start(working, penalty, problem.theta)
    while state.curvatures.min() == 0.0:
        solver.step(working, penalty, state)
    n, curvatures = len(state.curvatures), state.curvatures
    p = 0.5 / n + 0.5 * curvatures / curvatures.sum()
    decay = penalty.l2 / n
    alpha = 0.5 / (curvatures.max() + decay) + 0.5 / (curvatures.mean() + decay)
    if method == "saga":
        alpha = 1.0 / (4.0 / alpha + n * decay)
    rules = (BALANCED, method == "saga", 0.5, 1.0, 2.0, np.inf, 1.0)
    mean = np.zeros_like(state.theta)
    for s in range(n):
        after = copy.deepcopy(state)
        arrays = (after.theta, after.total, after.nodes, after.pairs, after.curvatures)
        numbers = np.array([[0.9, (s + 0.5) / n]])
        memory = SequenceMemory.of(working)
        assert memory.run(working, numbers, rules, (0.0, decay), (*arrays, after.common)) == 0
        mean += p[s] * after.theta
    expected = state.theta - alpha / n * state.gradient
    if method == "saga":
        np.testing.assert_allclose(mean, expected, atol=1e-12)
    else:
        assert np.abs(mean - expected).max() > 1e-4


def problem_of_modes() -> Problem:
    return random_problem(78, 3, [6, 4, 7, 5, 8], n_values=2, missing=0.1, weighted=True)[0]


@cache
def minimum_of_modes(l1: float, l2: float) -> tuple[float, np.ndarray]:
    return smooth_minimum(problem_of_modes(), l1, l2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sampling", MODES)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1.0), (0.5, 0.1)])
def test_every_mode_reaches_the_minimiser(sampling, method, l1, l2):
    problem = problem_of_modes()
    expected_value, expected = minimum_of_modes(l1, l2)
    solver = SAG(sampling=sampling, method=method, tolerance=1e-7, window=0.0)
    training = train(problem, l1, l2, solver)
    assert training.objective == pytest.approx(expected_value, rel=1e-10)
    theta = dense_weights(training, len(expected))
    problem.theta = theta
    assert ElasticNet(l1, l2).distance(theta, problem.loss()[1]) <= 1.1e-7
    np.testing.assert_allclose(theta, expected, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sampling", MODES)
def test_convergence_is_linear(sampling, method):
    problem, _ = random_problem(79, 3, [6, 4, 7, 5, 8, 3] * 4, n_values=4)
    penalty, working = ElasticNet(0.0, 1.0), everything(problem.corpus, 3)
    lowest = smooth_minimum(problem, 0.0, 1.0)[0]
    solver = SAG(sampling=sampling, method=method)
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    gaps = [state.value - lowest]
    while gaps[-1] > 1e-9 * lowest:
        assert len(gaps) < 500
        gaps.append(solver.step(working, penalty, state).objective - lowest)
    # At first sequences are missing; then the logarithm of the gap falls along a line.
    logs = np.log(gaps[3:])
    assert len(logs) >= 8
    epochs = np.arange(len(logs))
    assert np.corrcoef(epochs, logs)[0, 1] < -0.98
    middle = len(logs) // 2
    assert logs[-1] - logs[middle] < 0.6 * (logs[middle] - logs[0])


def test_sums_of_stored_gradients_do_not_drift_and_follow_the_working_set():
    problem, _ = random_problem(80, 3, LENGTHS, n_bigram=3, weighted=True, missing=0.2)
    loss, penalty, solver = ChainLoss(problem.corpus, 3, Workers(1)), ElasticNet(0.1, 0.1), SAG()
    working = loss.restrict(loss.all_coordinates(), stochastic=True)
    state = solver.start(working, penalty, problem.theta)
    for _ in range(30):
        solver.step(working, penalty, state)
    again = SequenceMemory.of(working).gradient(working, state.nodes, state.pairs)
    np.testing.assert_allclose(state.total, again, atol=1e-11)
    source = np.flatnonzero(np.random.default_rng(1).random(loss.n_potential) < 0.4)
    part = loss.restrict(source, stochastic=True)
    moved = solver.remap(part, penalty, state, source, state.gradient[source])
    np.testing.assert_allclose(moved.total, state.total[source], atol=1e-11)
    np.testing.assert_array_equal(moved.theta, state.theta[source])
    empty = loss.restrict(source[:0], stochastic=True)
    nothing = solver.remap(empty, penalty, state, source[:0], state.gradient[:0])
    assert solver.step(empty, penalty, nothing).n_active == 0


@pytest.mark.parametrize("sampling", MODES)
def test_the_state_is_all_that_a_run_needs(sampling):
    problem, _ = random_problem(81, 3, LENGTHS * 2, n_bigram=3, missing=0.1)
    penalty, solver = ElasticNet(0.2, 0.1), SAG(sampling=sampling)
    working = everything(problem.corpus, 3)
    state = solver.start(working, penalty, problem.theta)
    for _ in range(2):
        solver.step(working, penalty, state)
    later = State(**copy.deepcopy(vars(state)))
    other, again = SAG(sampling=sampling), everything(problem.corpus, 3)
    for _ in range(3):
        assert solver.step(working, penalty, state) == other.step(again, penalty, later)
    for name in [entry.name for entry in fields(State)]:
        np.testing.assert_array_equal(getattr(state, name), getattr(later, name))
    assert all(isinstance(value, (int, float, str)) for value in vars(solver).values())


def test_converged_means_that_the_certificate_holds():
    # Long after the paper's test of the stored gradients holds, the gradient itself is as large.
    problem, _ = random_problem(82, 3, [5, 4, 6, 3] * 10, n_values=4)
    penalty, tolerance = ElasticNet(0.0, 0.3), 0.02
    working, solver = everything(problem.corpus, 3), SAG(sampling="uniform", tolerance=tolerance)
    early = 0
    for seed in range(6):
        solver.seed = seed
        state = solver.start(working, penalty, np.zeros_like(problem.theta))
        report = solver.step(working, penalty, state)
        while not report.converged:
            estimate = penalty.distance(state.theta, state.total)
            early += state.curvatures.min() > 0.0 and estimate <= tolerance
            report = solver.step(working, penalty, state)
            _, gradient = working.value_and_grad(state.theta)
            distance = penalty.distance(state.theta, gradient)
            assert report.converged == (distance <= tolerance)
            assert report.optimality == pytest.approx(distance, rel=1e-9)
    assert early > 0


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
    for _ in range(100):
        report = solver.step(working, penalty, state)
    assert report.optimality < 1e-5
    assert state.caution < 2.0


def test_steps_that_are_too_long_are_shortened():
    problem, _ = random_problem(84, 3, LENGTHS * 3)
    penalty, working = ElasticNet(0.0, 0.5), everything(problem.corpus, 3)
    # Without a search the curvature stays far too small.
    solver = SAG(sampling="uniform", first_curvature=1e-3, least_norm=np.inf)
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    for _ in range(400):
        report = solver.step(working, penalty, state)
    assert state.caution > 1.0
    assert report.objective < working.value_and_grad(np.zeros_like(problem.theta))[0]


@pytest.mark.parametrize("warm_start_epochs", [0, 2])
def test_a_working_set_grows_from_nothing_to_the_minimiser(warm_start_epochs):
    problem, _ = random_problem(85, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8)
    penalty = ElasticNet(0.5, 0.1)
    loss = ChainLoss(problem.corpus, 4, Workers(1))
    solver = SAG(tolerance=1e-6, window=0.0, warm_start_epochs=warm_start_epochs)
    nothing = np.empty(0, np.int64), np.empty(0)
    grown = WorkingSet(loss, penalty, solver, nothing)
    started = Training(problem.corpus, list("abcd"), solver, l1=0.5, l2=0.1)
    for run in (grown, started):
        for _ in range(300):
            if run.step().converged:
                break
        assert run.converged
        theta = np.zeros(loss.n_potential)
        theta[run.weights[0]] = run.weights[1]
        _, gradient = loss.restrict(loss.all_coordinates()).value_and_grad(theta)
        assert penalty.distance(theta, gradient) <= 1.1e-6
        assert 0 < len(run.weights[0]) < loss.n_potential / 2
    assert grown.objective == pytest.approx(started.objective, rel=1e-9)


def test_an_empty_working_set_stays_empty_under_a_large_penalty():
    problem, _ = random_problem(86, 3, LENGTHS, missing=0.2)
    loss = ChainLoss(problem.corpus, 3, Workers(1))
    nothing = np.empty(0, np.int64), np.empty(0)
    run = WorkingSet(loss, ElasticNet(1e6, 0.0), SAG(), nothing)
    report = run.step()
    assert report.converged
    assert report.n_active == 0
    assert report.optimality == 0.0


def test_memory_is_of_the_precision_and_the_size_that_is_documented():
    problem, _ = random_problem(87, 3, [6, 5, 4] * 4, n_bigram=0)
    always, _ = random_problem(88, 3, [6, 5, 4] * 4, n_bigram=1)
    for corpus, groups in ((problem.corpus, 0), (always.corpus, 12)):
        for precision, width in (("float64", 8), ("float32", 4)):
            working = everything(corpus, 3, precision)
            state = SAG().start(working, ElasticNet(0.0, 1.0), np.zeros(len(working.coordinates)))
            # N tokens, 3 labels, which are padded to 8.
            assert state.nodes.nbytes + state.pairs.nbytes == width * 8 * (60 + groups * 3)


def test_single_precision_gets_near_the_minimiser():
    problem, _ = random_problem(89, 3, [6, 4, 7, 5], n_values=2)
    lowest = smooth_minimum(problem, 0.3, 0.5)[0]
    training = train(problem, 0.3, 0.5, SAG(tolerance=1e-4, window=0.0), precision="float32")
    assert training.objective == pytest.approx(lowest, rel=1e-5)


def test_memory_lasts_as_long_as_its_loss():
    problem, _ = random_problem(90, 3, LENGTHS)
    working, solver = everything(problem.corpus, 3), SAG()
    solver.start(working, ElasticNet(0.0, 1.0), problem.theta)
    memory = weakref.ref(SequenceMemory.of(working))
    assert SequenceMemory.of(working) is memory()
    del working
    gc.collect()
    assert memory() is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling": "other"}, "SC325.*sampling = 'other'.*'uniform', 'nus', 'nus\\*'"),
        ({"method": "svrg"}, "SC325.*method = 'svrg'"),
        ({"grow": 1.0}, "SC306.*grow"),
        ({"revisit": -0.5}, "SC306.*revisit"),
        ({"fresh": 0.0}, "SC306.*fresh"),
        ({"first_curvature": float("nan")}, "SC306.*first_curvature"),
        ({"least_norm": -1.0}, "SC306.*least_norm"),
    ],
)
def test_settings_are_refused_by_name(settings, message):
    with pytest.raises(SparseCRFError, match=message):
        SAG(**settings)


def ocr_corpus(n_words: int) -> EncodedCorpus:
    """The first words of the handwritten ones: pixels that are on, and the previous label."""
    data = np.load(OCR)
    used = data["word_id"] < n_words
    pixels = data["pixels"][used].astype(np.uint64)
    starts = np.flatnonzero(np.diff(data["word_id"][used], prepend=-1))
    n_tokens, n_pixels = pixels.shape
    hashes = pixels * np.arange(1, n_pixels + 1, dtype=np.uint64)
    observations = Observations(
        hashes=np.column_stack((hashes, np.full(n_tokens, n_pixels + 1, np.uint64))),
        offsets=np.append(starts, n_tokens).astype(np.int64),
        unigram_columns=np.arange(n_pixels, dtype=np.int32),
        bigram_columns=np.array([n_pixels], dtype=np.int32),
        start_label=False,
    )
    builder = CorpusBuilder()
    builder.add(observations, data["label"][used].astype(np.int32))
    return builder.build()


def passes_to(corpus: EncodedCorpus, sampling: str, target: float, most: float) -> float:
    """Passes of SAG until the objective is at most `target`, those of searches included."""
    working, penalty, solver = everything(corpus, 26), ElasticNet(0.0, 1.0), SAG(sampling=sampling)
    state = solver.start(working, penalty, np.zeros(len(working.coordinates)))
    passes = 0.0
    while state.value > target and passes < most:
        passes += solver.step(working, penalty, state).passes
    return passes


@needs(OCR)
def test_non_uniform_sampling_needs_no_more_passes_on_letters():
    # lambda = 1 / n, as in the paper: l2 = 1.
    corpus = ocr_corpus(200)
    best = Training(corpus, list(map(str, range(26))), OWLQN(window=0.0), l1=0.0, l2=1.0)
    for _ in range(60):
        if best.step().converged:
            break
    assert best.converged
    target = best.objective * (1.0 + 1e-6)
    uniform = passes_to(corpus, "uniform", target, 400.0)
    assert uniform < 400.0
    assert passes_to(corpus, "nus*", target, 400.0) <= uniform
