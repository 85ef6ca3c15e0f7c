"""The reference loss with real-valued features, and random problems with such features."""

from dataclasses import replace

import numpy as np

from spacy_sparsecrf.crf.corpus.encoded import Observations

from ..reference import Problem, random_problem


class ValueProblem(Problem):
    """A problem with real values: feature v adds values[t, v] times its weight."""

    def log_potential(self, t: int, previous: int, label: int) -> float:
        total = super().log_potential(t, previous, label)
        rows = zip(self.corpus.values[t], self.corpus.value_features, strict=True)
        return total + sum(float(x) * self.mu[o, label] for x, o in rows)

    def count(self, t: int, previous: int, label: int, weight: float, total: Problem) -> None:
        super().count(t, previous, label, weight, total)
        total.mu[self.corpus.value_features, label] += weight * self.corpus.values[t]


def random_value_problem(
    seed: int, n_labels: int, lengths: list[int], *, n_real: int = 3, **options: object
) -> tuple[ValueProblem, Observations]:
    """Draw a problem as `random_problem`; n_real: number of real-valued features."""
    return random_problem(seed, n_labels, lengths, n_real=n_real, of=ValueProblem, **options)


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
