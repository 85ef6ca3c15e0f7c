"""Maximum entropy models with label clusters."""

import numpy as np
from scipy.special import logsumexp

from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.training.training import Training

from ..reference import Problem, random_problem
from .runs import training_of

N_LABELS = 7


def make_problem(seed: int = 81, **options) -> tuple[Problem, np.ndarray]:
    """Return a problem without bigram features, and random weights mu [O, Y + C], C = Y."""
    problem, _ = random_problem(seed, N_LABELS, [6, 0, 4, 7, 5, 8], n_bigram=0, **options)
    rng = np.random.default_rng(seed)
    return problem, rng.normal(size=(len(problem.corpus.unigram_keys), 2 * N_LABELS))


def log_probabilities(mu: np.ndarray, bounds: tuple[int, ...]) -> np.ndarray:
    """Return log p(c | x) p(y | x, c) of all y. mu: [Y + C], sums over features of a token."""
    n = bounds[-1]
    clusters = mu[n:] - logsumexp(mu[n:])
    found = []
    for c in range(len(bounds) - 1):
        inside = mu[bounds[c] : bounds[c + 1]]
        found.append(clusters[c] + inside - logsumexp(inside))
    return np.concatenate(found)


def make_training(problem: Problem, clusters: int, solver=None, **options) -> Training:
    options = {"l1": 0.1, "l2": 0.05, "dtype": "float64", "n_threads": 1} | options
    solver = OWLQN(inner_iterations=5) if solver is None else solver
    names = [f"L{y}" for y in range(N_LABELS)]
    return training_of(problem.corpus, names, solver, kind="maxent", clusters=clusters, **options)
