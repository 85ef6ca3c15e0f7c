"""Random problems with missing and ambiguous gold labels, and with invalid transitions."""

from dataclasses import replace

import numpy as np

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.model.model import CRFModel, WeightNames
from spacy_sparsecrf.crf.model.weights_of_run import coordinates_of, summed
from spacy_sparsecrf.crf.parallel import Workers

from ..reference import Problem, random_problem


def random_valid(rng: np.random.Generator, n_labels: int) -> np.ndarray:
    """Draw half of all pairs; labels may follow themselves, so that each length is possible."""
    valid = rng.random((n_labels + 1, n_labels + 1)) < 0.5
    np.fill_diagonal(valid, True)
    kept = rng.integers(n_labels)
    valid[kept, -1] = valid[-1, kept] = True
    return valid


def partial_problem(
    seed: int,
    n_labels: int,
    lengths: list[int],
    *,
    missing: float = 0.2,
    ambiguous: float = 0.3,
    constrained: bool = False,
    **options: object,
) -> Problem:
    """Draw a problem whose gold labels are from random (valid) sequences, many then hidden."""
    problem, _ = random_problem(seed, n_labels, lengths, **options)
    rng = np.random.default_rng(seed + 1)
    if constrained:
        problem.valid = random_valid(rng, n_labels)
    labels, sets = problem.corpus.labels.copy(), []
    for tokens in filter(len, problem.sequences()):
        paths = problem.paths(tokens)
        labels[tokens.start : tokens.stop] = paths[rng.integers(len(paths))]
    for t in range(len(labels)):
        chance = rng.random()
        if chance < missing:
            labels[t] = -1
        elif chance < missing + ambiguous and n_labels > 1:
            sets.append(rng.random(n_labels) < 0.5)
            sets[-1][labels[t]] = True
            labels[t] = -1 - len(sets)
    table = np.array(sets, dtype=np.bool_).reshape(-1, n_labels)
    problem.corpus = replace(problem.corpus, labels=labels, sets=table)
    return problem


def loss_of(problem: Problem, *, n_threads: int = 1, **options: object) -> ChainLoss:
    workers = Workers(n_threads)
    return ChainLoss(problem.corpus, problem.n_labels, workers, valid=problem.valid, **options)


LABELS = ("L0", "L1", "L2")


def names_of(problem: Problem) -> WeightNames:
    corpus = problem.corpus
    keys = corpus.unigram_keys, corpus.bigram_keys
    return WeightNames(*keys, LABELS[: problem.n_labels], (), corpus.start_label, "chain")


def prior_of(
    problem: Problem, share: float = 0.3, n_labels: int = 0
) -> tuple[CRFModel, np.ndarray]:
    """Return a model with a share of the weights, of the first labels only; and dense weights."""
    names, n = names_of(problem), len(problem.theta)
    rng = np.random.default_rng(5)
    chosen = np.flatnonzero(rng.random(n) < share)
    model = CRFModel.of_weights(names, chosen, rng.normal(size=len(chosen)), "float64")
    if n_labels:
        fewer = WeightNames(
            names.unigram_keys, names.bigram_keys, names.labels[:n_labels], (), True, "chain"
        )
        coordinates, values = summed(coordinates_of(fewer, model))
        model = CRFModel.of_weights(fewer, coordinates, values, "float64")
    dense = np.zeros(n)
    coordinates, values = coordinates_of(names, model)
    dense[coordinates] = values
    return model, dense


def learnable(n_labels: int = 4, seed: int = 54) -> Problem:
    """Return a corpus whose labels depend on its features."""
    problem, _ = random_problem(seed, n_labels, [9, 8, 10, 3] * 20, n_values=6)
    for tokens in problem.sequences():
        for t in tokens:
            tests = problem.unigram_tests(t)
            problem.corpus.labels[t] = (tests.sum() * 7 + len(tests)) % n_labels
    return problem


def covariance(problem: Problem, tokens: range, agree: bool) -> np.ndarray:
    """Return the covariance of a sequence's path counts: the Hessian of its log Z."""
    paths = problem.paths(tokens, agree)
    scores = np.array([problem.score(tokens, path) for path in paths])
    p = np.exp(scores - problem.log_z(tokens, agree))
    counts = np.array([problem.counts(tokens, path) for path in paths])
    centred = counts - p @ counts
    return centred.T @ (centred * p[:, None])


def enumerated_hessian(problem: Problem) -> np.ndarray:
    total = np.zeros((len(problem.theta), len(problem.theta)))
    for tokens, weight in problem.weighted_sequences():
        if len(tokens):
            constrained = covariance(problem, tokens, agree=True)
            total += weight * (covariance(problem, tokens, agree=False) - constrained)
    return total
