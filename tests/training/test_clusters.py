"""Maximum entropy models with label clusters: losses, training and decoding."""

from collections.abc import Iterator

import numpy as np
import pytest

from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.loss.per_token import local_corpus
from spacy_sparsecrf.crf.loss.subproblems import cluster_bounds, cluster_parts
from spacy_sparsecrf.crf.model import file as model_file
from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.training.training import Training
from spacy_sparsecrf.errors import SparseCRFError

from ..reference import Problem, random_problem
from ..support.cluster_cases import N_LABELS, log_probabilities, make_problem, make_training
from ..support.minimisers import ALL_SOLVERS, LOCAL_SOLVERS
from ..support.solver_cases import everything

OPTIONS = [{}, {"missing": 0.3, "weighted": True}, {"n_values": 9}]


def gold_tokens(problem: Problem) -> Iterator[tuple[float, np.ndarray, int]]:
    """Yield weight, features and gold label of each token that has one."""
    for tokens, weight in problem.weighted_sequences():
        for t in tokens:
            if problem.corpus.labels[t] >= 0:
                yield weight, problem.unigram_tests(t), problem.corpus.labels[t]


def twin_loss(problem: Problem, mu: np.ndarray, bounds: tuple[int, ...]) -> float:
    return -sum(
        weight * log_probabilities(mu[tests].sum(axis=0), bounds)[gold]
        for weight, tests, gold in gold_tokens(problem)
    )


def twin_gradient(problem: Problem, mu: np.ndarray, bounds: tuple[int, ...]) -> np.ndarray:
    """Return central differences in the scores of each token, which sum over its features."""
    gradient = np.zeros_like(mu)
    for weight, tests, gold in gold_tokens(problem):
        scores = mu[tests].sum(axis=0)
        for k, step in enumerate(1e-6 * np.eye(len(scores))):
            sides = [log_probabilities(scores + d, bounds)[gold] for d in (step, -step)]
            np.subtract.at(gradient[:, k], tests, weight * (sides[0] - sides[1]) / 2e-6)
    return gradient


def dense_weights(training: Training, problem: Problem, clusters: int) -> np.ndarray:
    mu = np.zeros((len(problem.corpus.unigram_keys), N_LABELS + clusters))
    coordinates, values = training.weights
    assert np.all(np.diff(coordinates) > 0)
    mu.reshape(-1)[coordinates] = values
    return mu


@pytest.mark.parametrize("clusters", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("options", OPTIONS)
def test_parts_add_up_to_the_loss_of_the_whole(clusters, options):
    problem, mu = make_problem(**options)
    mu = np.ascontiguousarray(mu[:, : N_LABELS + clusters])
    bounds = cluster_bounds(N_LABELS, clusters)
    total, gradient = 0.0, np.zeros_like(mu)
    for part, own in cluster_parts(local_corpus(problem.corpus, N_LABELS, pairs=False), bounds):
        working = everything(own, part.n_labels, by_example=False)
        places = part.to_global(np.arange(len(working.coordinates)))
        value, found = working.value_and_grad(mu.reshape(-1)[places])
        total += value
        gradient.reshape(-1)[places] += found
    assert total == pytest.approx(twin_loss(problem, mu, bounds), rel=1e-10)
    np.testing.assert_allclose(gradient, twin_gradient(problem, mu, bounds), atol=1e-7)


@pytest.mark.parametrize("solver", ["owlqn", "rprop+", *LOCAL_SOLVERS])
@pytest.mark.parametrize(("l1", "l2"), [(0.3, 0.05), (0.0, 0.5)])
def test_training_reaches_the_minimiser_of_the_whole(solver, l1, l2):
    problem, _ = make_problem(missing=0.2, weighted=True)
    settings = {"tolerance": 1e-5, "window": 0.0, "inner_iterations": 20}
    training = make_training(problem, 3, ALL_SOLVERS[solver](**settings), l1=l1, l2=l2)
    assert any(training.step().converged for _ in range(300))
    mu, bounds, penalty = dense_weights(training, problem, 3), (0, 2, 4, 7), ElasticNet(l1, l2)
    value = twin_loss(problem, mu, bounds) + penalty.value(mu.reshape(-1))
    assert training.objective == pytest.approx(value, rel=1e-10)
    gradient = twin_gradient(problem, mu, bounds).reshape(-1)
    assert penalty.distance(mu.reshape(-1), gradient) <= 2e-5
    assert mu[:, :N_LABELS].any() and mu[:, N_LABELS:].any()


@pytest.mark.parametrize("clusters", [2, 3, 7])
def test_decoding_equals_enumeration(clusters):
    problem, observations = random_problem(82, N_LABELS, [4, 1, 0, 5], n_bigram=0, n_values=4)
    training = make_training(problem, clusters)
    training.step()
    model = CRFModel.from_bytes(training.model().to_bytes())
    assert model.bounds == cluster_bounds(N_LABELS, clusters)
    assert model.to_bytes() == training.model().to_bytes()
    decoder, mu = Decoder(model), dense_weights(training, problem, clusters)
    sums = [mu[problem.unigram_tests(t)].sum(axis=0) for t in range(problem.corpus.n_tokens)]
    expected = np.exp([log_probabilities(each, model.bounds) for each in sums])
    np.testing.assert_allclose(expected.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(decoder.marginals(observations), expected, atol=1e-12)
    labels = decoder.viterbi(observations)
    chosen = expected[np.arange(len(labels)), labels]
    np.testing.assert_allclose(chosen, expected.max(axis=1), rtol=1e-12)
    assert len(set(labels.tolist())) > 1


def test_a_label_that_is_added_joins_the_last_cluster():
    problem, observations = random_problem(83, N_LABELS, [4, 6], n_bigram=0)
    training = make_training(problem, 3)
    training.step()
    model = training.model()
    before = Decoder(model).marginals(observations)
    model = model.with_labels((*model.labels, "new"))
    after = Decoder(CRFModel.from_bytes(model.to_bytes())).marginals(observations)
    np.testing.assert_allclose(after[:, :4], before[:, :4], atol=1e-12)
    np.testing.assert_allclose(after[:, 4:].sum(axis=1), before[:, 4:].sum(axis=1), atol=1e-12)
    assert np.all(after[:, 7] > 0.0)


def test_what_cannot_be_clustered_is_refused():
    problem, _ = random_problem(84, 3, [4, 3])
    for kind in ("chain", "memm"):
        with pytest.raises(SparseCRFError, match=f"SC343.*{kind}"):
            CRFModel(["a"], kind=kind, bounds=(0, 1))
    for clusters in (8, -1):
        with pytest.raises(SparseCRFError, match=f"SC344.*7 labels.* {clusters} clusters"):
            make_training(problem, clusters)
    with pytest.raises(SparseCRFError, match="SC344.*40000 labels"):
        cluster_bounds(40_000, 30_000)


@pytest.mark.parametrize("bounds", [[0], [0, 1], [1, 2], [0, 0, 2], [0, 3], [2, 0, 2]])
def test_unsound_clusters_are_refused_even_with_a_fitting_digest(bounds):
    meta, arrays = model_file.read(CRFModel(["a", "b"], kind="maxent", bounds=(0, 2)).to_bytes())
    with pytest.raises(SparseCRFError, match="SC314.*clusters"):
        CRFModel.from_bytes(model_file.write({**meta, "bounds": bounds}, arrays))
