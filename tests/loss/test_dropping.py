"""Sub-problems, and the features that are dropped since they cannot have weights at the minimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus
from spacy_sparsecrf.crf.corpus.transform import without_idle
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.per_token import local_corpus, warn_of_pairs
from spacy_sparsecrf.crf.loss.subproblems import cluster_bounds, cluster_parts
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.training.training import Training
from spacy_sparsecrf.errors import SparseCRFWarning

from ..reference import Problem, random_problem
from ..support.reference_values import random_value_problem
from ..support.runs import training_of

LABELS, NONE = ["a", "b", "c"], np.empty(0, np.int64)


def make_corpus(seed: int = 0, **options: object) -> EncodedCorpus:
    # Many values: most features are rare.
    values = {"n_values": 40, "n_bigram": 3, **options}
    return random_problem(seed, 3, [5, 3, 1, 8, 2] * 4, **values)[0].corpus


def weight_of(corpus: EncodedCorpus) -> dict[str, np.ndarray]:
    """Return the total weight of the tokens of each feature, token by token."""
    totals = {"u": np.zeros(len(corpus.unigram_keys)), "b": np.zeros(len(corpus.bigram_keys))}
    problem = Problem(corpus, 3, np.zeros(corpus.n_potential(3)))
    for tokens, weight in zip(problem.sequences(), corpus.weights, strict=True):
        if not all(corpus.labels[t] == -1 for t in tokens):
            for t in tokens:
                np.add.at(totals["u"], problem.unigram_tests(t), weight)
                np.add.at(totals["b"], problem.bigram_tests(t), weight)
    return totals


def train(corpus: EncodedCorpus, l1: float, **options: object) -> Training:
    solver = OWLQN(tolerance=1e-7, window=1e-12, inner_iterations=100)
    training = training_of(corpus, LABELS, solver, l1=l1, l2=0.1, n_threads=1, **options)
    for _ in range(30):
        if training.converged:
            break
        training.step()
    return training


@pytest.mark.parametrize("options", [{}, {"weighted": True, "missing": 0.7}])
@pytest.mark.parametrize("l1", [0.6, 1.0, 3.0, 1e9])
def test_the_tests_that_are_left_out_are_those_of_small_weight(options, l1):
    corpus = make_corpus(**options)
    kept, totals = without_idle(corpus, l1, NONE), weight_of(corpus)
    np.testing.assert_array_equal(np.unique(kept.uni_indices), np.flatnonzero(totals["u"] > l1))
    np.testing.assert_array_equal(np.unique(kept.ctx_indices), np.flatnonzero(totals["b"] > l1))
    np.testing.assert_array_equal(kept.unigram_keys, corpus.unigram_keys)
    for t in range(corpus.n_tokens):
        own, whole = (c.uni_indices[c.uni_indptr[t] : c.uni_indptr[t + 1]] for c in (kept, corpus))
        assert own.tolist() == [o for o in whole if totals["u"][o] > l1]


def test_real_values_are_kept_whatever_l1():
    corpus = random_value_problem(0, 3, [5, 3, 1, 8, 2], n_real=2)[0].corpus
    kept = without_idle(corpus, 1e9, np.array([3, len(corpus.unigram_keys)]))
    # Besides features with initial weights.
    assert set(kept.ctx_indices) == {0} and set(kept.uni_indices) == {3}
    assert kept.value_features is corpus.value_features and kept.values is corpus.values


@pytest.mark.parametrize("kind", ["chain", "maxent", "memm"])
def test_the_minimum_is_the_same(monkeypatch, kind):
    corpus = make_corpus(2, n_bigram=0 if kind == "maxent" else 3, n_unigram=4)
    dropping = train(corpus, 1.05, kind=kind)
    assert (np.diff(dropping._runs[0].loss.space.lattice.feature_tokens.indptr) == 0).any()
    monkeypatch.setattr(
        "spacy_sparsecrf.crf.training.training.without_idle", lambda corpus, *others: corpus
    )
    whole = train(corpus, 1.05, kind=kind)
    assert dropping.objective == pytest.approx(whole.objective, rel=1e-9)
    np.testing.assert_array_equal(dropping.weights[0], whole.weights[0])
    np.testing.assert_allclose(dropping.weights[1], whole.weights[1], atol=1e-5)
    assert dropping.size.n_potential == whole.size.n_potential
    assert len(dropping.weights[0]) > 5
    ours, theirs = dropping.model(), whole.model()
    np.testing.assert_array_equal(ours.unigram.keys, theirs.unigram.keys)


# Screening computes few bigram weights, and finds the same violators as a full computation.


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.floats(0.01, 2.0), st.floats(0.0, 1.0))
def test_no_violator_is_left_out(seed, n_labels, threshold, missing):
    options = {"n_bigram": 2, "n_values": 5, "missing": missing, "weighted": True, "scale": 2.0}
    problem, _ = random_problem(seed, n_labels, [3, 7, 1, 6], **options)
    problem.corpus.labels[0] = 0
    n = len(problem.theta)
    chosen = np.flatnonzero(np.random.default_rng(0).random(n) < 0.3)
    loss = ChainLoss(problem.corpus, n_labels, Workers(1))
    found, gradients, _ = loss.screen(loss.restrict(chosen), problem.theta[chosen], threshold, n)
    whole = np.zeros(n)
    whole[chosen] = problem.theta[chosen]
    _, gradient = loss.restrict(np.arange(n)).value_and_grad(whole)
    np.testing.assert_array_equal(found, np.flatnonzero(np.abs(gradient) > threshold))
    np.testing.assert_allclose(gradients, gradient[found], atol=1e-12)


def test_half_precision_leaves_no_violator_out():
    problem, _ = random_problem(6, 8, [40] * 20, n_bigram=2, n_values=30, scale=3.0)
    n = len(problem.theta)
    for threshold in (0.5, 1.0):
        results = []
        for precision in ("float32", "float64"):
            loss = ChainLoss(problem.corpus, 8, Workers(1), precision=precision)
            working = loss.restrict(np.arange(n))
            results.append(loss.screen(working, problem.theta, threshold, n)[:2])
        (found, gradients), (exact, values) = results
        # Values near the threshold may differ by rounding.
        near = np.abs(np.abs(values) - threshold) < 1e-4
        assert np.isin(exact[~near], found).all()
        both = np.isin(exact, found)
        np.testing.assert_allclose(gradients[np.isin(found, exact)], values[both], atol=1e-4)


# Sub-problems, and the positions of their weights in the whole


def test_weights_of_clusters_are_found_in_the_whole():
    problem, _ = random_problem(5, 5, [5, 4, 6])
    bounds = cluster_bounds(5, 2)
    assert bounds == (0, 2, 5) and cluster_bounds(20, 4) == (0, 5, 10, 15, 20)
    corpus = local_corpus(problem.corpus, 5, pairs=False)
    n = len(corpus.unigram_keys) * 7
    parts, found = cluster_parts(corpus, bounds), []
    for part, corpus in parts:
        own = np.arange(len(corpus.unigram_keys) * part.n_labels)
        whole = part.to_global(own)
        np.testing.assert_array_equal(part.to_local(whole), own)
        others = np.setdiff1d(np.arange(n), whole)
        assert (part.to_local(others) == -1).all()
        found.append(whole)
    assert len(np.unique(np.concatenate(found))) == sum(map(len, found))
    outcomes = [np.unique(each % 7).tolist() for each in found]
    assert outcomes == [[5, 6], [0, 1], [2, 3, 4]]


def test_a_warning_of_pairs_shows_who_made_the_problem():
    corpus = random_problem(5, 5, [3])[0].corpus

    def make():
        warn_of_pairs(corpus)

    def ask():
        make()

    with pytest.warns(SparseCRFWarning, match="SCW340") as caught:
        ask()
    assert caught[0].lineno == ask.__code__.co_firstlineno + 1
