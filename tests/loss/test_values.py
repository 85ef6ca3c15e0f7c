"""Real-valued features in the loss, its derivatives, screening and solvers."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.hessian_products import HessianProduct
from spacy_sparsecrf.crf.loss.per_token import local_corpus
from spacy_sparsecrf.crf.loss.wrappers import observed_only
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.newton.newton_cg import NewtonCG
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.rprop import RPROP
from spacy_sparsecrf.crf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.registry import crf_solvers

from ..support.minimisers import dense_weights, smooth_minimum, train
from ..support.reference_values import ValueProblem, random_value_problem, with_repeated_tests
from ..support.runs import training_of
from ..support.solver_cases import working_loss


@given(
    st.integers(0, 10**6),
    st.integers(1, 10),
    st.integers(1, 20),
    st.sampled_from(["chain", "maxent", "memm"]),
    st.sampled_from(["float32", "float64"]),
)
def test_whole_numbers_count_repeated_tests(seed, n_labels, n_real, kind, precision):
    problem, _ = random_value_problem(seed, n_labels, [4, 3, 0, 2], n_real=n_real, missing=0.2)
    values = np.random.default_rng(seed).integers(0, 4, problem.corpus.values.shape)
    whole = replace(problem.corpus, values=values.astype(np.float32))
    problem, found = ValueProblem(whole, n_labels, problem.theta), []
    for each in (problem, with_repeated_tests(problem)):
        corpus = each.corpus
        if kind != "chain":
            corpus = local_corpus(corpus, n_labels, pairs=kind == "memm")
        if not (corpus.labels >= 0).any():
            return
        loss = ChainLoss(corpus, n_labels, Workers(1), precision=precision)
        working = loss.restrict(loss.coordinates("all"))
        theta = problem.theta[: len(working.coordinates)]
        value, gradient = working.value_and_grad(theta)
        screened = loss.screen(working, theta, 0.3, 10**6)
        hessian = HessianProduct(working)
        hessian.prepare(theta)
        product = hessian.product(np.cos(np.arange(len(gradient))))
        found.append((value, gradient, product, loss.coordinates("observed"), *screened))
    tolerance = 1e-11 if precision == "float64" else 2e-4
    for got, expected in zip(found[0][:4], found[1][:4], strict=True):
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=20 * tolerance)
    if precision == "float64":
        np.testing.assert_array_equal(found[0][4], found[1][4])
        np.testing.assert_allclose(found[0][5], found[1][5], atol=1e-11)


def test_batches_give_the_same_corpus():
    problem, observations = random_value_problem(15, 3, [4, 3, 2], n_real=5)
    builder = CorpusBuilder()
    for first, last, s in ((0, 4, (0, 1)), (4, 9, (1, 3))):
        part = replace(
            observations,
            hashes=observations.hashes[first:last],
            values=observations.values[first:last],
            offsets=observations.offsets[s[0] : s[1] + 1] - first,
        )
        builder.add(part, problem.corpus.labels[first:last])
    corpus = builder.build()
    np.testing.assert_array_equal(corpus.values, problem.corpus.values)
    np.testing.assert_array_equal(corpus.unigram_keys, problem.corpus.unigram_keys)
    np.testing.assert_array_equal(corpus.value_features, problem.corpus.value_features)
    n = len(corpus.value_features)
    np.testing.assert_array_equal(corpus.unigram_keys[-n:], observations.value_keys)


def test_observed_values_are_those_that_are_not_zero():
    problem, _ = random_value_problem(17, 3, [4, 3, 2], n_real=4, n_unigram=0, n_bigram=0)
    values = problem.corpus.values
    values[:, 3] = 0.0
    loss = observed_only(ChainLoss(problem.corpus, 3, Workers(1)))
    labels = problem.corpus.labels
    seen = [[(values[labels == y, v] != 0).any() for y in range(3)] for v in range(4)]
    assert loss.coordinates("all").tolist() == np.flatnonzero(seen).tolist()
    found, *_ = loss.screen(loss.restrict(np.empty(0, np.int64)), np.empty(0), 0.0, 100)
    assert set(found) <= set(np.flatnonzero(seen))


SOLVERS = {"owlqn": OWLQN, "newton-cg": NewtonCG, "rprop": RPROP}


# Only real-valued features and transitions, with too few tokens to fit all weights.
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.1), (0.4, 0.0), (0.3, 0.05)])
def test_solvers_reach_the_minimum(solver, l1, l2):
    if l1 and "no l1" in SOLVERS[solver].requires:
        pytest.skip(f"{solver} minimises l1 = 0 only")
    problem, _ = random_value_problem(8, 3, [6, 4, 7, 3, 5], n_real=20, n_bigram=1)
    objective, theta = smooth_minimum(problem, l1, l2)
    training = train(problem, l1, l2, SOLVERS[solver](tolerance=1e-6, window=0.0))
    assert training.objective == pytest.approx(objective, rel=1e-7)
    got = dense_weights(training, len(problem.theta))
    if l2:
        np.testing.assert_allclose(got, theta, atol=2e-4)
    if l1:
        # Some values have weights and some do not; the certificate covers all.
        active = got[: len(problem.mu) * 3].reshape(-1, 3)[problem.corpus.value_features] != 0
        assert 0 < active.sum() < active.size
        _, gradient = working_loss(problem, by_example=False).value_and_grad(got)
        assert ElasticNet(l1, l2).distance(got, gradient) <= 2e-6


def test_the_refusal_names_the_solvers_that_take_values():
    problem, _ = random_value_problem(19, 3, [4, 3])
    with pytest.raises(SparseCRFError) as refused:
        training_of(problem.corpus, ["L0", "L1", "L2"], SGDL1(), l1=0.1, l2=0.0)
    ours = {
        name: solver
        for name, solver in crf_solvers.get_all().items()
        if solver.__module__.startswith("spacy_sparsecrf.")
    }
    named = {f"spacy_sparsecrf.{name}" for name in re.findall(r"\w+\.v1", str(refused.value))}
    assert named == {name for name, solver in ours.items() if "indicators" not in solver.requires}
