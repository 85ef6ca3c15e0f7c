"""Per-position models: losses and decoding equal enumeration; pipelines of them."""

import contextlib

import numpy as np
import pytest
from scipy.special import logsumexp

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.local import local_corpus
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training import Training

from .reference import Problem, random_problem

OPTIONS = [
    {},
    {"start_label": False, "n_bigram": 3},
    {"missing": 0.3, "weighted": True, "n_bigram": 3},
    {"n_bigram": 0},
    {"n_unigram": 0, "missing": 0.2},
]


def n_unigram(problem: Problem) -> int:
    return len(problem.corpus.unigram_keys) * problem.n_labels


def log_probabilities(problem: Problem, t: int, previous: int, pairs: bool) -> np.ndarray:
    """Log p(y | y', x, t), of all y."""
    scores = problem.mu[problem.unigram_tests(t)].sum(axis=0)
    if pairs and previous < problem.n_previous:
        scores = scores + problem.lam[problem.bigram_tests(t), previous].sum(axis=0)
    return scores - logsumexp(scores)


def with_before(problem: Problem):
    """Tokens with the label before, -1 where it is not known, and the sequence's weight."""
    for tokens, weight in zip(problem.sequences(), problem.corpus.weights, strict=True):
        for t in tokens:
            yield t, problem.n_labels if t == tokens[0] else problem.corpus.labels[t - 1], weight


def local_loss(problem: Problem, pairs: bool) -> tuple[float, np.ndarray]:
    """The loss and its gradient, dense over the chain's coordinates."""
    value = 0.0
    total = Problem(problem.corpus, problem.n_labels, np.zeros_like(problem.theta))
    for t, previous, weight in with_before(problem):
        gold = problem.corpus.labels[t]
        if gold < 0 or (pairs and previous < 0):
            continue
        log_p = log_probabilities(problem, t, previous, pairs)
        value -= weight * log_p[gold]
        residual = weight * (np.exp(log_p) - np.eye(problem.n_labels)[gold])
        for o in problem.unigram_tests(t):
            total.mu[o] += residual
        for o in problem.bigram_tests(t) if pairs else ():
            if previous < problem.n_previous:
                total.lam[o, previous] += residual
    return value, total.theta


def make_loss(problem: Problem, pairs: bool, **options) -> ChainLoss:
    corpus = local_corpus(problem.corpus, problem.n_labels, pairs)
    return ChainLoss(corpus, problem.n_labels, Workers(1), **options)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_loss_and_gradient_equal_enumeration(pairs, options):
    problem, _ = random_problem(61, 3, [5, 0, 4, 1, 6], **options)
    expected, gradient = local_loss(problem, pairs)
    loss = make_loss(problem, pairs)
    n = len(problem.theta) if pairs else n_unigram(problem)
    assert loss.n_potential == n
    working = loss.restrict(loss.all_coordinates())
    value, found = working.value_and_grad(problem.theta[:n])
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(found, gradient[:n], atol=1e-10)
    half = np.arange(0, n, 2)
    problem.theta[np.setdiff1d(np.arange(len(problem.theta)), half)] = 0.0
    value, found = loss.restrict(half).value_and_grad(problem.theta[half])
    expected, gradient = local_loss(problem, pairs)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(found, gradient[half], atol=1e-10)
    # What screening finds outside is the gradient there.
    working = loss.restrict(half)
    coordinates, gradients = loss.screen(working, problem.theta[half], 1e-3, 10**6)
    np.testing.assert_array_equal(coordinates, np.flatnonzero(np.abs(gradient[:n]) > 1e-3))
    np.testing.assert_allclose(gradients, gradient[coordinates], atol=1e-10)


def test_without_pairs_all_losses_are_one():
    problem, _ = random_problem(62, 3, [5, 4], n_bigram=0)
    loss = ChainLoss(problem.corpus, 3, Workers(1))
    expected, gradient = loss.restrict(loss.all_coordinates()).value_and_grad(problem.theta)
    for pairs in (False, True):
        local = make_loss(problem, pairs)
        value, found = local.restrict(local.all_coordinates()).value_and_grad(problem.theta)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(found, gradient, atol=1e-12)


@pytest.mark.parametrize("start_label", [True, False])
def test_coordinates_are_those_of_the_chain(start_label):
    problem, _ = random_problem(63, 3, [5, 4, 6], n_bigram=3, start_label=start_label)
    chain = ChainLoss(problem.corpus, 3, Workers(1))
    local = make_loss(problem, pairs=True)
    np.testing.assert_array_equal(local.observed_coordinates(), chain.observed_coordinates())
    np.testing.assert_array_equal(local.all_coordinates(), chain.all_coordinates())


def test_too_many_pair_tests_are_refused():
    problem, _ = random_problem(64, 3, [5])
    with pytest.raises(SparseCRFError, match="SC301"):
        local_corpus(problem.corpus, 2**31 - 1, pairs=True)


def test_a_corpus_without_usable_tokens_is_refused():
    problem, _ = random_problem(65, 3, [5], missing=1.0)
    for kind in ("maxent", "memm"):
        with pytest.raises(SparseCRFError, match="SC305"), warnings_of(kind):
            make_training(problem, kind)


def warnings_of(kind: str):
    """Bigram tests are left out of a maxent model, with a warning."""
    if kind == "maxent":
        return pytest.warns(SparseCRFWarning, match="SCW340")
    return contextlib.nullcontext()


def make_training(problem: Problem, kind: str, **options) -> Training:
    names = [str(y) for y in range(problem.n_labels)]
    options = {"l1": 0.05, "l2": 0.01, "dtype": "float64", "n_threads": 1} | options
    solver = options.pop("solver", None) or OWLQN(inner_iterations=5)
    return Training(problem.corpus, names, solver, kind=kind, **options)
