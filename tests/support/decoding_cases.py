"""Random models, and the probabilities of all their label sequences by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.crf.model.model import CRFModel, WeightTable

from ..reference import Problem, local_log_probabilities, random_problem
from .cluster_cases import log_probabilities
from .reference_values import random_value_problem

Path = tuple[int, ...]

# Name: kind, cluster bounds, options of the random problem.
KINDS = {
    "chain": ("chain", (), {}),
    "no-start-label": ("chain", (), {"start_label": False, "n_bigram": 3}),
    "no-pairs": ("chain", (), {"n_bigram": 0}),
    "memm": ("memm", (), {"n_values": 4}),
    "maxent": ("maxent", (), {"n_bigram": 0}),
    "clusters": ("maxent", (0, 1, 3), {"n_bigram": 0}),
    "real values": ("chain", (), {"n_real": 5}),
    "real values, memm": ("memm", (), {"n_real": 5}),
}


@dataclass
class Case:
    """A random model, observations, and a function that returns the score of a path."""

    problem: Problem
    observations: Observations
    model: CRFModel
    score: Callable[[range, Path], float]

    @property
    def n_labels(self) -> int:
        return len(self.model.labels)

    def table(
        self, tokens: range, valid: np.ndarray | None = None, permitted: np.ndarray | None = None
    ) -> dict[Path, float]:
        """Return log p(y | x) of every valid and permitted path.

        If there is none: of permitted paths with the fewest invalid transitions.
        """
        scores: dict[int, dict[Path, float]] = {}
        for path in itertools.product(range(self.n_labels), repeat=len(tokens)):
            if permitted is None or all(permitted[t, y] for t, y in zip(tokens, path, strict=True)):
                scores.setdefault(n_illegal(path, valid), {})[path] = self.score(tokens, path)
        kept = scores[min(scores)]
        log_z = logsumexp(list(kept.values()))
        return {path: score - log_z for path, score in kept.items()}


def n_illegal(path: Path, valid: np.ndarray | None) -> int:
    """Count the invalid transitions of a path, including those from and to the boundary."""
    if valid is None or not path:
        return 0
    boundary = len(valid) - 1
    steps = itertools.pairwise((boundary, *path, boundary))
    return sum(not valid[step] for step in steps)


def make_case(
    seed: int, name: str, lengths: list[int], n_labels: int = 3, scale: float = 1.0
) -> Case:
    """Create a random model of one of KINDS; scale: of its weights."""
    kind, bounds, options = KINDS[name]
    draw = random_value_problem if "n_real" in options else random_problem
    problem, observations = draw(seed, n_labels, lengths, scale=scale, **options)
    corpus, n_outcomes = problem.corpus, n_labels + max(0, len(bounds) - 1)
    rng = np.random.default_rng(seed + 1)
    mu = scale * rng.normal(size=(len(corpus.unigram_keys), n_outcomes))
    mu[:, :n_labels] = problem.mu
    unigram = dense_table(corpus.unigram_keys, mu[:, None, :], n_labels, pairs=False)
    bigram = dense_table(corpus.bigram_keys, problem.lam, n_labels, pairs=True)
    names = [f"L{y}" for y in range(n_labels)]
    model = CRFModel(names, "float64", unigram, bigram, kind=kind, bounds=bounds)

    def score(tokens: range, path: Path) -> float:
        if not path:
            return 0.0
        if kind == "chain":
            return problem.score(tokens, path)
        if bounds:
            sums = [mu[problem.unigram_tests(t)].sum(axis=0) for t in tokens]
            return sum(log_probabilities(row, bounds)[y] for row, y in zip(sums, path, strict=True))
        before = (n_labels, *path)
        return sum(
            local_log_probabilities(problem, t, previous, kind == "memm")[y]
            for t, previous, y in zip(tokens, before, path, strict=False)
        )

    return Case(problem, observations, model, score)


def dense_table(keys: np.ndarray, weights: np.ndarray, n_labels: int, pairs: bool) -> WeightTable:
    """Return all weights [O, P, outcomes] as a table; the start label is the last in P."""
    n_features, n_previous, n_outcomes = weights.shape
    order = np.argsort(keys)
    previous, labels = np.indices((n_previous, n_outcomes)).reshape(2, -1)
    size = n_previous * n_outcomes
    return WeightTable(
        keys[order],
        np.arange(n_features + 1, dtype=np.int64) * size,
        (np.tile(previous, n_features) if pairs else previous[:0]).astype(np.uint16),
        np.tile(labels, n_features).astype(np.uint16),
        weights[order].reshape(-1).astype(np.float64),
    )


def random_mask(rng: np.random.Generator, n_labels: int) -> np.ndarray:
    """Draw a mask with a path of each length: some label may begin, stay and end."""
    valid = rng.random((n_labels + 1, n_labels + 1)) < 0.6
    y = rng.integers(n_labels)
    valid[n_labels, y] = valid[y, y] = valid[y, n_labels] = valid[n_labels, n_labels] = True
    return valid


def random_permitted(rng: np.random.Generator, n_tokens: int, n_labels: int) -> np.ndarray:
    """Draw permitted labels: all labels for half of the tokens, else a random non-empty set."""
    permitted = rng.random((n_tokens, n_labels)) < 0.4
    permitted[np.arange(n_tokens), rng.integers(0, n_labels, n_tokens)] = True
    permitted[rng.random(n_tokens) < 0.5] = True
    return permitted


def scheme_mask(labels: list[str], ends: str) -> np.ndarray:
    """Return valid transitions of labels such as "B-PER"; ends: "" for IOB2, "LU" for BILUO."""
    n = len(labels)
    valid = np.zeros((n + 1, n + 1), dtype=bool)
    for a, before in enumerate([*labels, "O"]):
        for b, after in enumerate([*labels, "O"]):
            goes_on = after[0] in "IL"
            if goes_on:
                valid[a, b] = before[0] in "BI" and before[2:] == after[2:]
            else:
                valid[a, b] = before[0] not in "BI" or not ends
    return valid


def scheme_labels(n_types: int, ends: str) -> list[str]:
    """Return the labels of IOB2 (ends = "") or BILUO (ends = "LU")."""
    return ["O", *(f"{tag}-{i}" for i in range(n_types) for tag in "BI" + ends)]


def reference_best_labels(
    offsets: np.ndarray,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    valid: np.ndarray | None = None,
) -> np.ndarray:
    """Run Viterbi with back pointers, without pruning; valid: mask of transitions, or None."""
    n_labels = pairs.shape[1] - 1
    added = np.zeros((n_labels + 1, n_labels + 1))
    if valid is not None:
        added[~valid] = -np.inf
    labels = np.empty(len(scores), np.int32)
    for begin, end in itertools.pairwise(offsets):
        if begin == end:
            continue
        start = pairs[context[begin], n_labels, :n_labels] + added[n_labels, :n_labels]
        best, back = scores[begin, :n_labels] + start, []
        for t in range(begin + 1, end):
            matrix = pairs[context[t], :n_labels, :n_labels] + added[:n_labels, :n_labels]
            table = best[:, None] + matrix
            back.append(table.argmax(axis=0))
            best = scores[t, :n_labels] + table.max(axis=0)
        best = best + added[:n_labels, n_labels]
        labels[end - 1] = best.argmax()
        for t in range(end - 1, begin, -1):
            labels[t - 1] = back[t - 1 - begin][labels[t]]
    return labels


def table(rng: np.random.Generator, hashes: np.ndarray, n_labels: int, pairs: bool) -> WeightTable:
    """Return random weights for half of the features."""
    keys = np.unique(hashes[hashes != 0])
    keys = keys[rng.random(len(keys)) < 0.5]
    most = n_labels * (n_labels + 1) if pairs else n_labels
    chosen = [np.flatnonzero(rng.random(most) < 0.6) for _ in keys]
    chosen = [row if len(row) else np.zeros(1, np.int64) for row in chosen]
    places = np.concatenate([np.empty(0, np.int64), *chosen])
    return WeightTable(
        keys,
        np.cumsum([0, *map(len, chosen)]).astype(np.int64),
        (places // n_labels if pairs else places[:0]).astype(np.uint16),
        (places % n_labels).astype(np.uint16),
        rng.normal(size=len(places)),
    )
