"""Online exponentiated gradient: its dual against enumeration, its convergence."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from spacy_sparsecrf.crf.kernels.factors import Factors
from spacy_sparsecrf.crf.kernels.indexing import transpose
from spacy_sparsecrf.crf.kernels.layout import Csr
from spacy_sparsecrf.crf.loss.working import ChainWorkingLoss
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.oeg import dual_problem
from spacy_sparsecrf.crf.solvers.oeg.dual import is_wide
from spacy_sparsecrf.crf.solvers.oeg.oeg import OEG
from spacy_sparsecrf.errors import SparseCRFError

from ..reference import Problem, random_problem
from ..support.kernel_functions import function
from ..support.learning_cases import loss_of, partial_problem
from ..support.minimisers import smooth_minimum
from ..support.runs import training_of
from ..support.solver_cases import LENGTHS, everything

# Options of `partial_problem`.
CASES = {
    "plain": {},
    "weighted": {"weighted": True, "n_bigram": 3},
    "no start": {"start_label": False, "n_bigram": 2},
    "no pairs": {"n_bigram": 0},
    "legal": {"constrained": True, "n_bigram": 2},
}


def contents(labels: np.ndarray, tests: Csr, begin: int, end: int) -> list[tuple[int, list[int]]]:
    """Return the label and features of each token of a sequence, which identify it."""
    rows = np.split(tests.indices, tests.indptr[1:-1])[begin:end]
    return [(int(label), sorted(row)) for label, row in zip(labels[begin:end], rows, strict=True)]


class Reference:
    """The dual by enumeration: a distribution over all label sequences of each sequence.

    order: sequences of the problem in the solver's order; features: [paths, K] of each sequence,
    and of its gold path; agreeing: [paths] number of gold labels in each path.
    """

    def __init__(self, problem: Problem, working: ChainWorkingLoss, l2: float) -> None:
        lattice, corpus, spans = working.space.lattice, problem.corpus, problem.sequences()
        tests = Csr(corpus.uni_indptr, corpus.uni_indices)
        known = [contents(corpus.labels, tests, span.start, span.stop) for span in spans]
        features = transpose(lattice.feature_tokens, lattice.n_tokens)
        order = [
            known.index(contents(lattice.labels, features, *bounds))
            for bounds in pairwise(lattice.offsets)
        ]
        assert len(set(order)) == len(spans)
        self.l2, self.weight = l2, problem.corpus.weights[order]
        self.features, self.gold, self.agreeing = [], [], []
        for tokens in (spans[i] for i in order):
            paths = problem.paths(tokens)
            gold = tuple(problem.corpus.labels[tokens.start : tokens.stop])
            self.features.append(np.array([problem.counts(tokens, path) for path in paths]))
            self.gold.append(problem.counts(tokens, gold))
            self.agreeing.append((np.array(paths) == gold).sum(axis=1))

    def first(self, theta: np.ndarray, gold: float) -> list[np.ndarray]:
        logs = [f @ theta + gold * n for f, n in zip(self.features, self.agreeing, strict=True)]
        return [np.exp(one - logsumexp(one)) for one in logs]

    def weights(self, alphas: list[np.ndarray]) -> np.ndarray:
        parts = zip(self.weight, self.gold, alphas, self.features, strict=True)
        return sum(c * (gold - alpha @ f) for c, gold, alpha, f in parts) / self.l2

    def value(self, alphas: list[np.ndarray]) -> float:
        w = self.weights(alphas)
        entropies = [-np.sum(alpha * np.log(alpha)) for alpha in alphas]
        return self.weight @ entropies - self.l2 / 2.0 * w @ w

    def step(self, alphas: list[np.ndarray], s: int, eta: float) -> list[np.ndarray]:
        """Return the distributions after the multiplicative step of one sequence."""
        gradient = np.log(alphas[s]) - self.features[s] @ self.weights(alphas)
        logs = np.log(alphas[s]) - eta * gradient
        return [*alphas[:s], np.exp(logs - logsumexp(logs)), *alphas[s + 1 :]]


def make(case: str, l2: float, seed: int = 301) -> tuple[Problem, ChainWorkingLoss, ElasticNet]:
    options = {"n_values": 3, **CASES[case]}
    constrained = options.pop("constrained", False)
    problem = partial_problem(
        seed, 3, LENGTHS, missing=0.0, ambiguous=0.0, constrained=constrained, **options
    )
    loss = loss_of(problem)
    return problem, loss.by_example(loss.coordinates("all")), ElasticNet(0.0, l2)


@pytest.mark.parametrize("l2", [0.3, 3.0])
@pytest.mark.parametrize("case", CASES)
def test_iterates_are_those_of_the_enumerated_dual(case, l2, monkeypatch):
    problem, working, penalty = make(case, l2)
    monkeypatch.setattr(dual_problem, "FIRST_STEP", 0.8)
    reference, solver = Reference(problem, working, l2), OEG(gold=2.0, seed=4)
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    alphas = reference.first(np.zeros_like(problem.theta), 2.0)
    etas, halved = np.full(len(LENGTHS), 0.8), 0
    for epoch in range(6):
        if epoch > 0:
            np.testing.assert_allclose(state.theta, reference.weights(alphas), atol=1e-11)
        evaluations = 0
        for s in np.random.default_rng([4, epoch]).permutation(len(LENGTHS)):
            before = reference.value(alphas)
            while reference.value(after := reference.step(alphas, s, etas[s])) < before:
                etas[s] *= 0.5
                halved += 1
                evaluations += 1
            alphas, etas[s] = after, min(1.05 * etas[s], 1.0)
            evaluations += 1
        report = solver.step(working, penalty, state)
        assert report.passes * len(LENGTHS) == evaluations
        assert report.bound == pytest.approx(reference.value(alphas), rel=1e-11)
        np.testing.assert_array_equal(state.steps, etas)
    assert halved > 0 or l2 == 3.0


@pytest.mark.parametrize("case", CASES)
def test_the_dual_never_falls_and_meets_the_objective(case):
    problem, working, penalty = make(case, 1.0)
    reference, solver = Reference(problem, working, 1.0), OEG()
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    reports = [solver.step(working, penalty, state) for _ in range(150)]
    duals = np.array([report.bound for report in reports])
    gaps = np.array([report.objective for report in reports]) - duals
    assert (np.diff(duals) >= -1e-13 * np.abs(duals[1:])).all()
    # The dual is always a lower bound, and in the end the minimum.
    assert min(gaps) >= -1e-10 * abs(duals[-1])
    assert gaps[-1] <= 1e-9 * abs(duals[-1]) < gaps[0]
    problem.theta = state.theta
    value, gradient = problem.loss()
    assert value + penalty.value(state.theta) == pytest.approx(duals[-1], rel=1e-9)
    np.testing.assert_allclose(gradient + state.theta, 0.0, atol=1e-5)
    assert reference.value(reference.first(state.theta, 0.0)) == pytest.approx(duals[-1], rel=1e-9)


@given(
    seed=st.integers(0, 1000),
    n_labels=st.integers(1, 10),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    l2=st.sampled_from([1e-6, 0.1, 100.0]),
    gold=st.sampled_from([0.0, 10.0, 800.0]),
    scale=st.sampled_from([0.0, 1.0, 30.0]),
    weight=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_no_pass_lowers_the_dual_nor_exceeds_the_objective(
    seed, n_labels, lengths, l2, gold, scale, weight
):
    problem, _ = random_problem(seed, n_labels, lengths, scale=scale, n_values=2, weighted=True)
    corpus = replace(problem.corpus, weights=weight * problem.corpus.weights)
    working, penalty, solver = everything(corpus, n_labels), ElasticNet(0.0, l2), OEG(gold=gold)
    state = solver.start(working, penalty, problem.theta)
    before = -np.inf
    for _ in range(5):
        report = solver.step(working, penalty, state)
        assert np.isfinite(state.theta).all() and np.isfinite(state.node_theta).all()
        slack = 1e-11 * max(1.0, weight, abs(report.bound))
        assert report.bound >= before - slack
        assert report.objective >= report.bound - slack
        before = report.bound
        assert (state.steps > 0.0).all() and (state.steps <= 1.0).all()


def test_first_weights_give_the_first_distributions():
    problem, working, penalty = make("weighted", 1.0)
    best = smooth_minimum(problem, 0.0, 1.0)[1]
    reference, dual = Reference(problem, working, 1.0), working.derived(dual_problem.DualProblem)
    for theta in (best, problem.theta):
        state = OEG().start(working, penalty, theta)
        np.testing.assert_array_equal(state.theta, theta)
        bound = dual.bound(penalty, dual.weights(working, 1.0, state), state)
        assert bound == pytest.approx(reference.value(reference.first(theta, 0.0)), rel=1e-11)
    # The minimiser is a fixed point.
    solver = OEG()
    state = solver.start(working, penalty, best)
    report = solver.step(working, penalty, state)
    assert report.objective == pytest.approx(report.bound, rel=1e-9)
    np.testing.assert_allclose(state.theta, best, atol=1e-4)


def test_the_dual_rises_where_the_weights_have_no_finite_objective(monkeypatch):
    problem, working, penalty = make("plain", 0.1)
    solver, evaluate = OEG(), working.value_and_grad
    state = solver.start(working, penalty, np.zeros_like(problem.theta))
    monkeypatch.setattr(working, "value_and_grad", lambda w: (np.inf, 0.0 * w))
    blind = solver.step(working, penalty, state), solver.step(working, penalty, state)
    assert blind[0].objective == np.inf and blind[1].bound > blind[0].bound
    monkeypatch.setattr(working, "value_and_grad", evaluate)
    report = solver.step(working, penalty, state)
    assert report.objective > report.bound > blind[1].bound


def test_log_potentials_are_wide_within_a_token_or_a_group():
    flat = np.array([[0.0, -299.0, 0.0], [5000.0, 4800.0, -9e9]])
    wide = np.array([[0.0, -299.0, 0.0], [5000.0, 4600.0, -9e9]])
    for nodes, pairs, expected in ((flat, flat[:1], False), (wide, flat[:1], True)):
        assert function(is_wide, False)(2, Factors(nodes, pairs[None]), False) == expected
    # The range is computed per token.
    apart = Factors(np.array([[0.0, -1.0], [-900.0, -901.0]]), flat[None, :1])
    assert not function(is_wide, False)(2, apart, False)
    # A group shares a matrix, whose numbers are raised to within range of its largest.
    assert function(is_wide, False)(2, Factors(flat, flat[None]), False)
    raised = Factors(wide.copy(), flat[None].copy())
    assert function(is_wide, False)(2, raised, True)
    np.testing.assert_array_equal(raised.nodes, [[0, -299, 0], [5000, 4700, -9e9]])
    np.testing.assert_array_equal(raised.pairs[0], [[4700, 4700, 0], [5000, 4800, -9e9]])


@pytest.mark.parametrize("options", [{"missing": 0.3}, {"ambiguous": 0.4}])
def test_gold_labels_that_are_not_known_are_refused(options):
    problem = partial_problem(304, 3, LENGTHS, **{"missing": 0.0, "ambiguous": 0.0, **options})
    with pytest.raises(SparseCRFError, match=r"SC395.*OEG.* [1-6] training sequences.*SAG\.v1"):
        training_of(problem.corpus, list("abc"), OEG(), l1=0.0, l2=1.0)
