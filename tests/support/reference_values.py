"""The reference loss with real-valued features, and random problems with such features."""

from dataclasses import replace

import numpy as np

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import Observations

from ..reference import Problem, random_observations

VALUE_KEYS = np.arange(1, 100, dtype=np.uint64) << np.uint64(40)


class ValueProblem(Problem):
    """A problem with real values: feature v adds values[t, v] times its weight."""

    def log_potential(self, t: int, previous: int, label: int) -> float:
        total = super().log_potential(t, previous, label)
        rows = zip(self.corpus.values[t], self.corpus.value_features, strict=True)
        return total + sum(float(x) * self.mu[o, label] for x, o in rows)

    def count(self, t: int, previous: int, label: int, weight: float, total: Problem) -> None:
        super().count(t, previous, label, weight, total)
        total.mu[self.corpus.value_features, label] += weight * self.corpus.values[t]


def random_values(rng: np.random.Generator, n: int, n_values: int) -> np.ndarray:
    """Draw values, about a third of them 0."""
    values = rng.normal(size=(n, n_values)).astype(np.float32)
    values[rng.random(values.shape) < 1 / 3] = 0.0
    return values


def random_value_problem(
    seed: int,
    n_labels: int,
    lengths: list[int],
    *,
    n_real: int = 3,
    missing: float = 0.0,
    weighted: bool = False,
    scale: float = 1.0,
    **kwargs: object,
) -> tuple[ValueProblem, Observations]:
    """Draw a problem as `random_problem`; n_real: number of real-valued features."""
    rng = np.random.default_rng(seed)
    observations = replace(
        random_observations(rng, lengths, **kwargs),  # type: ignore[arg-type]
        values=random_values(rng, sum(lengths), n_real),
        value_keys=VALUE_KEYS[:n_real],
    )
    labels = rng.integers(0, n_labels, sum(lengths)).astype(np.int32)
    labels[rng.random(len(labels)) < missing] = -1
    builder = CorpusBuilder()
    builder.add(observations, labels, rng.uniform(0.5, 2.0, len(lengths)) if weighted else None)
    corpus = builder.build()
    theta = scale * rng.normal(size=corpus.n_potential(n_labels))
    return ValueProblem(corpus, n_labels, theta), observations


def with_repeated_tests(problem: ValueProblem) -> Problem:
    """Return the problem with each small whole value v replaced by v copies of the feature."""
    corpus = problem.corpus
    rows = []
    for t in range(corpus.n_tokens):
        times = corpus.values[t].astype(int)
        assert (times == corpus.values[t]).all()
        rows.append(np.concatenate((problem.unigram_tests(t), corpus.value_features.repeat(times))))
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    repeated = replace(
        corpus,
        uni_indptr=indptr,
        uni_indices=np.concatenate(rows).astype(np.int32),
        values=np.empty((0, 0), np.float32),
        value_features=np.empty(0, np.int64),
    )
    return Problem(repeated, problem.n_labels, problem.theta)
