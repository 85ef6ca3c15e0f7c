"""Random problems with missing and ambiguous gold labels, and with invalid transitions."""

from dataclasses import replace

import numpy as np

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
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
