"""The chain loss against enumeration, finite differences and its invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.corpus.encoded import CorpusBuilder, EncodedCorpus
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.workspace import BufferPool, Limits
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.base import evaluate
from spacy_sparsecrf.testing import check_loss

from ..reference import Problem, random_observations, random_problem


def chain_loss(
    corpus: EncodedCorpus, n_labels: int, n_threads: int = 1, **options: Limits
) -> ChainLoss:
    return ChainLoss(corpus, n_labels, Workers(n_threads), **options)


def full_value_and_grad(
    problem: Problem, n_threads: int = 1, **options: Limits
) -> tuple[float, np.ndarray]:
    loss = chain_loss(problem.corpus, problem.n_labels, n_threads, **options)
    return loss.restrict(loss.all_coordinates()).value_and_grad(problem.theta)


@pytest.mark.parametrize("n_labels", [1, 2, 7, 8, 9, 15, 17, 24, 33, 40])
def test_gradient_equals_finite_differences(n_labels):
    problem, _ = random_problem(n_labels, n_labels, [6, 3], missing=0.2, n_bigram=1)
    loss = chain_loss(problem.corpus, n_labels)
    check_loss(loss.restrict(loss.all_coordinates()), problem.theta, atol=1e-9)


@pytest.mark.parametrize("n_labels", [5, 8, 23])
def test_a_table_of_frequent_tests_changes_nothing(n_labels):
    problem, _ = random_problem(18, n_labels, [7, 1, 30] * 10, missing=0.1)
    tables = full_value_and_grad(problem, n_threads=2)
    few = Limits(table_bytes=3 * 8 * 8)
    loss = chain_loss(problem.corpus, n_labels, limits=few)
    frequent = loss.restrict(loss.all_coordinates()).frequent
    assert frequent.n_rows == (3 if n_labels <= 8 else 1)
    some = full_value_and_grad(problem, limits=few)
    none = full_value_and_grad(problem, limits=Limits(table_bytes=0))
    for value, gradient in (some, none):
        assert value == pytest.approx(tables[0], rel=1e-13)
        np.testing.assert_allclose(gradient, tables[1], atol=1e-12)


def test_a_gradient_stays_as_long_as_someone_has_a_part_of_it():
    problem, _ = random_problem(12, 3, [4, 3, 5], n_bigram=1)
    loss = chain_loss(problem.corpus, 3)
    working = loss.restrict(loss.all_coordinates())
    kept, copies = [], []
    for scale in np.linspace(0.5, 2.0, 6):
        gradient = working.value_and_grad(scale * problem.theta)[1]
        kept.append(gradient[1:])
        copies.append(gradient.copy()[1:])
    np.testing.assert_array_equal(kept, copies)


def test_only_arrays_that_were_given_back_are_used_again():
    pool = BufferPool(5)
    first, second = pool.take(), pool.take()
    assert first is not second
    pool.give(first)
    pool.give(first)
    assert pool.take() is first
    assert pool.take() is not first


def test_an_evaluation_gives_its_gradient_back():
    problem, _ = random_problem(18, 3, [2] * 5, n_bigram=2)
    loss = chain_loss(problem.corpus, 3)
    working = loss.restrict(loss.all_coordinates())
    own = working.value_and_grad(problem.theta)[1]
    expected = own.copy()
    working.give_back(own)
    for _ in range(2):
        _, found = evaluate(working, ElasticNet(0.0, 0.0), problem.theta)
        np.testing.assert_array_equal(found, expected)
        assert not np.shares_memory(found, own)
    assert working.value_and_grad(problem.theta)[1] is own


@pytest.mark.parametrize("options", [{}, {"weighted": True}])
def test_curvature_is_the_diagonal_of_the_hessian_of_single_tokens(options):
    problem, _ = random_problem(19, 4, [1] * 12, n_bigram=2, **options)
    loss = chain_loss(problem.corpus, 4)
    working = loss.restrict(loss.all_coordinates())
    _, gradient = working.value_and_grad(problem.theta)
    curvature = working.curvature(gradient)
    step = 1e-6
    for k in range(len(problem.theta)):
        moved = problem.theta.copy()
        moved[k] += step
        second = (working.value_and_grad(moved)[1][k] - gradient[k]) / step
        if k < loss.n_unigram:
            assert curvature[k] == pytest.approx(second, abs=1e-4)
        else:
            assert curvature[k] >= second - 1e-4


def test_curvature_of_constrained_copies_is_left_out():
    problem, _ = random_problem(20, 3, [4, 6, 5], missing=0.4)
    loss = chain_loss(problem.corpus, 3)
    working = loss.restrict(loss.all_coordinates())
    curvature = working.curvature(working.value_and_grad(problem.theta)[1])
    problem.corpus.labels[:] = 0
    complete = chain_loss(problem.corpus, 3)
    working = complete.restrict(complete.all_coordinates())
    expected = working.curvature(working.value_and_grad(problem.theta)[1])
    np.testing.assert_allclose(curvature[: loss.n_unigram], expected[: loss.n_unigram], atol=1e-12)


def test_contexts_larger_than_a_span_are_summed_in_parts():
    problem, _ = random_problem(14, 2, [50] * 100, n_bigram=1, n_values=2)
    assert len(problem.corpus.ctx_indptr) - 1 == 1
    assert problem.corpus.n_tokens > 4096
    loss = chain_loss(problem.corpus, 2)
    working = loss.restrict(loss.all_coordinates())
    value, gradient = working.value_and_grad(problem.theta)
    step = 1e-6
    for k in range(len(problem.theta)):
        moved = problem.theta.copy()
        moved[k] += step
        slope = (working.value_and_grad(moved)[0] - value) / step
        assert gradient[k] == pytest.approx(slope, rel=1e-3, abs=1e-2)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_permuting_labels_permutes_the_gradient(seed, n_labels):
    problem, observations = random_problem(seed, n_labels, [4, 2, 3])
    value, gradient = full_value_and_grad(problem)
    order = np.random.default_rng(seed).permutation(n_labels)
    builder = CorpusBuilder()
    builder.add(observations, np.argsort(order)[problem.corpus.labels].astype(np.int32))
    permuted = Problem(builder.build(), n_labels, problem.theta.copy())
    with_start = np.append(order, n_labels)
    permuted.mu[:] = problem.mu[:, order]
    permuted.lam[:] = problem.lam[:, with_start][:, :, order]
    other_value, other = full_value_and_grad(permuted)
    expected = Problem(problem.corpus, n_labels, gradient)
    got = Problem(problem.corpus, n_labels, other)
    assert other_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(got.mu, expected.mu[:, order], atol=1e-11)
    np.testing.assert_allclose(got.lam, expected.lam[:, with_start][:, :, order], atol=1e-11)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_a_sequence_twice_is_one_of_weight_two(seed):
    rng = np.random.default_rng(seed)
    observations = random_observations(rng, [4])
    labels = rng.integers(-1, 3, 4).astype(np.int32)
    labels[0] = 0
    twice, once = CorpusBuilder(), CorpusBuilder()
    twice.add(observations, labels)
    twice.add(observations, labels)
    once.add(observations, labels, np.array([2.0]))
    theta = rng.normal(size=once.build().n_potential(3))
    value, gradient = full_value_and_grad(Problem(twice.build(), 3, theta))
    other_value, other = full_value_and_grad(Problem(once.build(), 3, theta))
    assert value == pytest.approx(other_value, rel=1e-12)
    np.testing.assert_allclose(gradient, other, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(-500.0, 500.0))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_a_constant_added_to_potentials_changes_nothing(seed, constant):
    problem, _ = random_problem(seed, 3, [4, 2], n_bigram=1)
    value, gradient = full_value_and_grad(problem)
    # The last bigram test is always on: its weights are a constant for every pair.
    problem.lam[-1] += constant
    other_value, other = full_value_and_grad(problem)
    assert other_value == pytest.approx(value, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(other, gradient, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_ten_thousand_tokens_are_finite_and_exact(scale):
    problem, _ = random_problem(15, 5, [10_000], scale=scale)
    log_z, marginals = problem.log_space_marginals(range(10_000))
    gold = problem.score(range(10_000), tuple(problem.corpus.labels))
    value, gradient = full_value_and_grad(problem)
    assert value == pytest.approx(log_z - gold, rel=1e-9)
    expected = Problem(problem.corpus, 5, np.zeros_like(problem.theta))
    for t in range(10_000):
        for o in problem.unigram_tests(t):
            expected.mu[o] += marginals[t]
            expected.mu[o, problem.corpus.labels[t]] -= 1.0
    n = expected.mu.size
    # Logarithms near 1e5 leave the twin, not the kernel, with errors near 1e-9 a token.
    np.testing.assert_allclose(gradient[:n], expected.mu.ravel(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"start_label": False, "missing": 0.5}])
def test_the_twin_adds_up_paths(options):
    problem, _ = random_problem(19, 3, [4], n_bigram=3, **options)
    (tokens,) = problem.sequences()
    for agree in (False, True):
        paths = problem.paths(tokens, agree)
        mass = np.exp([problem.score(tokens, path) for path in paths])
        assert problem.log_z(tokens, agree) == pytest.approx(np.log(mass.sum()), rel=1e-12)
        counts = np.array([problem.counts(tokens, path) for path in paths])
        expected = mass @ counts / mass.sum()
        np.testing.assert_allclose(problem.expected(tokens, agree), expected, atol=1e-12)


def test_weights_beyond_float64_give_an_infinite_value():
    problem, _ = random_problem(16, 3, [4], scale=1e6)
    value, _ = full_value_and_grad(problem)
    assert value == np.inf or value > 0.0
    problem.theta[:] = np.nan
    assert full_value_and_grad(problem)[0] == np.inf


def test_a_corpus_without_gold_labels_is_refused():
    problem, _ = random_problem(17, 3, [4], missing=1.0)
    with pytest.raises(SparseCRFError, match="SC305"):
        chain_loss(problem.corpus, 3)
