"""Tests that are true of the same tokens are learnt as one, and the minimum is the same."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from spacy_sparsecrf.corpus import EncodedCorpus
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.merging import merged
from spacy_sparsecrf.loss.parts import Part
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training import Training

from .reference import random_problem
from .reference_values import random_value_problem

LABELS = ["a", "b", "c"]
TIGHT = {"tolerance": 1e-6, "window": 1e-13, "inner_iterations": 20}

# Solvers that cannot learn one weight in place of several.
OTHERS = sorted(set(crf_solvers.get_all()) - {"spacy_sparsecrf.OWLQN.v1"})


def with_copies(indptr: np.ndarray, indices: np.ndarray, n: int, rng: np.random.Generator):
    """Add copies of tests, in all of their rows: each test has none, one or two."""
    n_copies = rng.integers(0, 3, n)
    first = n + np.concatenate(([0], np.cumsum(n_copies)))
    rows = []
    for begin, end in pairwise(indptr):
        own = indices[begin:end]
        copies = [np.arange(first[o], first[o + 1]) for o in own]
        rows.append(rng.permutation(np.concatenate([own, *copies])))
    lengths = np.array([len(row) for row in rows])
    return (
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        np.concatenate(rows).astype(np.int32),
        int(first[-1]),
    )


def make_corpus(seed: int = 0, **options: object) -> EncodedCorpus:
    """A corpus with copies of tests, besides those of its rare tests that are alike by chance."""
    rng = np.random.default_rng(seed)
    values = {"n_values": 6, "n_bigram": 3, **options}
    corpus = random_problem(seed, 3, [5, 3, 1, 8, 2] * 4, **values)[0].corpus
    n_unigram, n_bigram = len(corpus.unigram_keys), len(corpus.bigram_keys)
    unigram = with_copies(corpus.uni_indptr, corpus.uni_indices, n_unigram, rng)
    bigram = with_copies(corpus.ctx_indptr, corpus.ctx_indices, n_bigram, rng)
    return replace(
        corpus,
        uni_indptr=unigram[0],
        uni_indices=unigram[1],
        ctx_indptr=bigram[0],
        ctx_indices=bigram[1],
        unigram_keys=np.arange(1, unigram[2] + 1, dtype=np.uint64),
        bigram_keys=np.arange(1, bigram[2] + 1, dtype=np.uint64),
    )


def columns(indptr: np.ndarray, indices: np.ndarray, n: int) -> list[tuple[int, ...]]:
    """The rows of each test."""
    found: list[list[int]] = [[] for _ in range(n)]
    for row in range(len(indptr) - 1):
        for o in indices[indptr[row] : indptr[row + 1]]:
            found[o].append(row)
    return [tuple(rows) for rows in found]


def train(corpus: EncodedCorpus, merge: bool, l1: float = 0.4, l2: float = 0.1, **options: object):
    values = {"dtype": "float64", "n_threads": 1, "merge_tests": merge, **options}
    training = Training(corpus, LABELS, OWLQN(**TIGHT), l1=l1, l2=l2, **values)
    while not training.converged:
        training.step()
    return training


@pytest.mark.parametrize("seed", range(3))
def test_one_stands_for_all_that_are_alike(seed):
    corpus = make_corpus(seed)
    part = merged(Part(corpus, 3))
    tables = (
        (corpus.uni_indptr, corpus.uni_indices, len(corpus.unigram_keys)),
        (corpus.ctx_indptr, corpus.ctx_indices, len(corpus.bigram_keys)),
    )
    kept = part.unigram, part.bigram
    for table, first, owner, count in zip(tables, kept, part.owners, part.counts, strict=True):
        rows = columns(*table)
        classes = list(dict.fromkeys(rows))
        assert len(classes) < len(rows)
        assert first.tolist() == [rows.index(c) for c in classes]
        assert owner.tolist() == [classes.index(r) for r in rows]
        assert count.tolist() == [rows.count(c) for c in classes]
    own = columns(part.corpus.uni_indptr, part.corpus.uni_indices, len(part.unigram))
    assert own == list(dict.fromkeys(columns(*tables[0])))


@pytest.mark.parametrize("options", [{}, {"missing": 0.3}, {"weighted": True}])
@pytest.mark.parametrize(("l1", "l2"), [(0.4, 0.1), (0.0, 0.5), (0.3, 0.0), (0.4, 1e-5)])
def test_the_minimum_is_that_of_the_full_problem(options, l1, l2):
    corpus = make_corpus(**options)
    training, plain = train(corpus, True, l1, l2), train(corpus, False, l1, l2)
    loss, penalty = ChainLoss(corpus, 3, Workers(1)), ElasticNet(l1, l2)
    coordinates, weights = training.weights
    assert np.all(np.diff(coordinates) > 0)
    theta = np.zeros(loss.n_potential)
    theta[coordinates] = weights
    value, gradient = loss.restrict(loss.all_coordinates()).value_and_grad(theta)
    assert penalty.distance(theta, gradient) <= 1e-5
    assert value + penalty.value(theta) == pytest.approx(training.objective, rel=1e-10)
    if "missing" not in options:
        # Where labels are missing the problem is not convex, but no two minima differ here either.
        assert training.objective == pytest.approx(plain.objective, rel=1e-8)


def test_copies_have_the_same_weights():
    corpus = make_corpus()
    coordinates, weights = train(corpus, True).weights
    theta = np.zeros(corpus.n_potential(3))
    theta[coordinates] = weights
    table = corpus.uni_indptr, corpus.uni_indices, len(corpus.unigram_keys)
    rows = columns(*table)
    n_alike = 0
    for o, row in enumerate(rows):
        first = rows.index(row)
        np.testing.assert_array_equal(theta[3 * o : 3 * o + 3], theta[3 * first : 3 * first + 3])
        n_alike += first < o and theta[3 * o : 3 * o + 3].any()
    assert n_alike > 3


def test_training_goes_on_from_a_model():
    corpus = make_corpus()
    training = train(corpus, True)
    again = Training(
        corpus, LABELS, OWLQN(**TIGHT), l1=0.4, l2=0.1, merge_tests=True, init=training.model()
    )
    assert again.objective == pytest.approx(training.objective, rel=1e-9)
    np.testing.assert_array_equal(again.weights[0], training.weights[0])
    np.testing.assert_allclose(again.weights[1], training.weights[1], rtol=1e-12)
    uneven = train(corpus, False, l2=0.0).model()
    begun = Training(corpus, LABELS, OWLQN(**TIGHT), l1=0.4, l2=0.0, merge_tests=True, init=uneven)
    # The sums are the same, and so is the loss.
    plain = Training(corpus, LABELS, OWLQN(**TIGHT), l1=0.4, l2=0.0, init=uneven)
    assert begun.objective == pytest.approx(plain.objective, rel=1e-9)


def test_another_l1_and_a_resumed_run_reach_the_same(tmp_path: Path):
    corpus = make_corpus()
    training = train(corpus, True, 0.8)
    goal = train(corpus, True, 1.6)
    training.change_l1(1.6)
    training.step()
    training.save(tmp_path / "run.npz")
    options = {"l1": 0.8, "l2": 0.1, "dtype": "float64", "n_threads": 1, "merge_tests": True}
    again = Training(corpus, LABELS, OWLQN(**TIGHT), **options)
    again.change_l1(1.6)
    again.resume(tmp_path / "run.npz")
    while not training.converged:
        training.step()
        again.step()
    np.testing.assert_array_equal(again.weights[1], training.weights[1])
    assert training.objective == pytest.approx(goal.objective, rel=1e-9)
    other = Training(corpus, LABELS, OWLQN(**TIGHT), **{**options, "merge_tests": False})
    with pytest.raises(SparseCRFError, match="SC316.*merge_tests"):
        other.resume(tmp_path / "run.npz")


@pytest.mark.parametrize("kind", ["memm", "maxent"])
def test_per_position_models(kind):
    corpus, clusters = make_corpus(), 0
    if kind == "maxent":
        clusters = 2
        corpus = replace(
            corpus,
            ctx_indptr=0 * corpus.ctx_indptr,
            ctx_indices=corpus.ctx_indices[:0],
            bigram_keys=corpus.bigram_keys[:0],
        )
    options = {"kind": kind, "clusters": clusters}
    training, plain = (train(corpus, merge, **options) for merge in (True, False))
    assert training.objective == pytest.approx(plain.objective, rel=1e-8)
    assert len(training.weights[0]) >= len(plain.weights[0])


def test_polishing_divides_the_penalty_too():
    corpus = make_corpus()
    models = []
    for merge in (True, False):
        solver = OWLQN(**TIGHT, polish_iterations=300, polish_l2=0.5)
        options = {"dtype": "float64", "n_threads": 1, "merge_tests": merge}
        training = Training(corpus, LABELS, solver, l1=0.4, l2=0.1, **options)
        while not training.converged:
            training.step()
        models.append(training.model())
    a, b = (np.sort(model.unigram.values) for model in models)
    # As near as polishing goes; with all of the penalty on each copy they would be far apart.
    np.testing.assert_allclose(a, b, atol=2e-3)


def test_without_copies_the_problem_is_the_same():
    corpus = random_problem(0, 3, [5, 3, 8, 2] * 4, n_values=3, n_bigram=2)[0].corpus
    part = Part(corpus, 3)
    assert merged(part) is part


def test_real_values_are_not_merged():
    corpus = random_value_problem(0, 3, [5, 3, 8, 2] * 4, n_real=2)[0].corpus
    part = merged(Part(corpus, 3))
    kept = corpus.unigram_keys[corpus.value_tests]
    assert np.isin(kept, part.corpus.unigram_keys).all()
    assert len(part.corpus.value_tests) == len(corpus.value_tests)


@pytest.mark.parametrize("name", OTHERS)
def test_other_solvers_refuse(name):
    make = crf_solvers.get(name)
    penalty = {"l1": 0.5 if make.supports_l1 else 0.0, "l2": 1.0}
    kind = "memm" if make.local_only else "chain"
    with pytest.raises(SparseCRFError, match="SC396"):
        Training(make_corpus(), LABELS, make(), kind=kind, merge_tests=True, **penalty)
