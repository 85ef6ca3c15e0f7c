"""Decoding against enumeration."""

import numpy as np
import pytest

from spacy_sparsecrf.corpus.encoded import Observations
from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.decoding.legal import Transitions
from spacy_sparsecrf.kernels.layout import Scored
from spacy_sparsecrf.kernels.viterbi import viterbi
from spacy_sparsecrf.model.model import CRFModel
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training.training import Training

from ..data import ORACLE, needs, read_oracle
from ..kernels.kernel_functions import function
from ..oracle_cases import oracle_observations, oracle_training
from ..reference import Problem, random_problem
from .decoding_reference import reference_best_labels


def trained(seed: int, n_labels: int, lengths: list[int], **options):
    """A problem whose weights are those of a model that was trained a little."""
    problem, observations = random_problem(seed, n_labels, lengths, **options)
    training = Training(
        problem.corpus,
        [str(y) for y in range(n_labels)],
        OWLQN(inner_iterations=5),
        l1=0.05,
        l2=0.01,
        dtype="float64",
    )
    training.step()
    problem.theta[:] = 0.0
    coordinates, theta = training.weights
    problem.theta[coordinates] = theta
    return problem, observations, training.model()


CASES = [
    pytest.param(31, 3, [4, 1, 0, 5], {}, id="start-label"),
    pytest.param(32, 4, [4, 3], {"start_label": False, "n_bigram": 3}, id="no-start-label"),
    pytest.param(33, 9, [3, 2], {"n_values": 5}, id="nine-labels"),
    pytest.param(34, 3, [4, 2], {"n_bigram": 0}, id="no-pairs"),
    pytest.param(35, 1, [2, 2], {}, id="one-label"),
]


@pytest.mark.parametrize(("seed", "n_labels", "lengths", "options"), CASES)
def test_viterbi_and_marginals_equal_enumeration(seed, n_labels, lengths, options):
    problem, observations, model = trained(seed, n_labels, lengths, **options)
    decoder = Decoder(model)
    labels = decoder.viterbi(observations)
    marginals = decoder.marginals(observations)
    for tokens in problem.sequences():
        if len(tokens):
            found = tuple(labels[tokens.start : tokens.stop].tolist())
            best = problem.best_path(tokens)
            assert problem.score(tokens, found) == pytest.approx(
                problem.score(tokens, best), abs=1e-10
            )
            np.testing.assert_allclose(
                marginals[tokens.start : tokens.stop], problem.marginals(tokens), atol=1e-10
            )


def test_ties_go_to_the_lowest_label():
    _, observations, _ = trained(36, 3, [4, 2])
    labels = Decoder(CRFModel(["a", "b", "c"])).viterbi(observations)
    assert labels.tolist() == [0] * 6


def test_no_tokens():
    none = Observations(
        np.empty((0, 2), np.uint64),
        np.zeros(1, np.int64),
        np.array([0], np.int32),
        np.array([1], np.int32),
    )
    _, _, model = trained(37, 3, [4])
    assert Decoder(model).viterbi(none).shape == (0,)


def test_tests_unknown_to_the_model_score_nothing():
    _, observations, model = trained(38, 3, [4, 2])
    unknown = Observations(
        observations.hashes + np.uint64(10**6),
        observations.offsets,
        observations.unigram_columns,
        observations.bigram_columns,
    )
    np.testing.assert_allclose(Decoder(model).marginals(unknown), 1 / 3, atol=1e-12)


def test_long_sequences_decode_as_the_recursion_on_logarithms():
    problem, observations, model = trained(39, 5, [10_000])
    found = tuple(Decoder(model).viterbi(observations).tolist())
    best = np.full(5, -np.inf)
    best[:] = [problem.log_potential(0, 5, y) for y in range(5)]
    for t in range(1, 10_000):
        table = [[best[a] + problem.log_potential(t, a, y) for y in range(5)] for a in range(5)]
        best = np.max(table, axis=0)
    assert problem.score(range(10_000), found) == pytest.approx(best.max(), rel=1e-12)


@needs(ORACLE / "oracle.json")
def test_marginals_equal_the_independent_programs():
    training, observations = oracle_training("l2", n_steps=30), oracle_observations()
    marginals = Decoder(training.model()).marginals(observations)
    case = read_oracle()["cases"]["l2"]
    for figures in case["sentence_figures"]:
        first, last = observations.offsets[figures["sentence"] :][:2]
        np.testing.assert_allclose(marginals[first:last], figures["marginals"], atol=1e-6)


def test_problem_twin_agrees_with_itself():
    problem, _ = random_problem(40, 3, [5], scale=0.5)
    assert isinstance(problem, Problem)
    log_z, marginals = problem.log_space_marginals(range(5))
    assert log_z == pytest.approx(problem.log_z(range(5)), abs=1e-12)
    np.testing.assert_allclose(marginals, problem.marginals(range(5)), atol=1e-12)


def random_chains(
    seed: int, n_contexts: int, n_labels: int, integers: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, padded scores, contexts and pair scores; integers tie often."""
    rng = np.random.default_rng(seed)
    offsets = np.array([0, 7, 7, 8, 30, 400], dtype=np.int64)
    padded = -(-n_labels // 8) * 8
    scores = rng.normal(scale=3.0, size=(400, padded))
    pairs = rng.normal(scale=2.0, size=(n_contexts, n_labels + 1, padded))
    if integers:
        scores, pairs = np.round(scores), np.round(pairs)
    return offsets, scores, rng.integers(0, n_contexts, 400).astype(np.int32), pairs


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize(("n_contexts", "n_labels"), [(1, 1), (1, 8), (3, 13), (50, 5)])
@pytest.mark.parametrize("jit", [True, False])
def test_pruning_changes_nothing(prune, integers, n_contexts, n_labels, jit):
    for seed in range(20 if jit else 1):
        offsets, scores, context, pairs = random_chains(seed, n_contexts, n_labels, integers)
        expected = reference_best_labels(offsets, scores, context, pairs)
        padded, labels = scores.shape[1], np.empty(len(scores), np.int32)
        free = Transitions.make(None, n_labels, padded)
        slack = free.finish(pairs, prune)
        scored = Scored(n_labels, offsets, scores, context, pairs)
        function(viterbi, jit)(scored, slack, free.search, np.empty(padded), labels)
        np.testing.assert_array_equal(labels, expected)


def test_a_decoder_knows_when_its_model_has_changed():
    _, observations, model = trained(41, 3, [4, 2])
    decoder = Decoder(model)
    assert decoder.is_of(model)
    model.from_bytes(model.to_bytes())
    assert not decoder.is_of(model)
    decoder = Decoder(model)
    model.add_label("new")
    assert not decoder.is_of(model)
    assert Decoder(model).marginals(observations).shape == (6, 4)
