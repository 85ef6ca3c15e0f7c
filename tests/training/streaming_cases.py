"""Problems divided into batches, and their weights that exist after each batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spacy_sparsecrf.corpus.encoded import CorpusBuilder, EncodedCorpus, Observations
from spacy_sparsecrf.loss.lattice import build_lattice
from spacy_sparsecrf.model.coordinates import WeightNames
from spacy_sparsecrf.model.model import CRFModel
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.solvers.sgd import SGD
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.solvers.smd import SMD
from spacy_sparsecrf.training.streaming import Stream

from ..reference import Problem, random_problem

LABELS = ["a", "b", "c"]
N = len(LABELS)
NONE = ElasticNet(0.0, 0.0)
SOLVERS: dict[str, tuple[Callable, ElasticNet]] = {
    "sgd-l1": (lambda **o: SGDL1(eta0=0.2, **o), ElasticNet(0.3, 0.1)),
    "sgd-l1-calibrated": (lambda **o: SGDL1(**o), ElasticNet(0.3, 0.1)),
    "sgd": (lambda **o: SGD(batch=2, **o), ElasticNet(0.0, 0.5)),
    "asg": (
        lambda **o: SGD(schedule="constant", eta0=0.2, average_from=1, **o),
        ElasticNet(0.0, 4.0),
    ),
    "adagrad": (lambda **o: AdaGrad(eta0=0.3, batch=2, **o), ElasticNet(0.2, 0.1)),
    "adagrad-calibrated": (lambda **o: AdaGrad(**o), ElasticNet(0.2, 0.1)),
    "smd": (lambda **o: SMD(eta0=0.05, **o), ElasticNet(0.0, 0.5)),
    "perceptron": (lambda **o: AveragedPerceptron(**o), NONE),
}


def part_of(problem: Problem, observations: Observations, first: int, last: int) -> EncodedCorpus:
    """Return the corpus of sequences first:last, with its own feature ids."""
    offsets = observations.offsets
    begin, end = offsets[first], offsets[last]
    builder = CorpusBuilder()
    builder.add(
        Observations(
            observations.hashes[begin:end],
            offsets[first : last + 1] - begin,
            observations.unigram_columns,
            observations.bigram_columns,
            observations.start_label,
        ),
        problem.corpus.labels[begin:end],
        problem.corpus.weights[first:last],
    )
    return builder.build()


@dataclass
class Case:
    """A problem in batches; sequences of a batch have distinct lengths."""

    problem: Problem
    batches: list[EncodedCorpus]
    bounds: list[int]

    def model_of(self, theta: np.ndarray) -> CRFModel:
        corpus = self.problem.corpus
        keys = corpus.unigram_keys, corpus.bigram_keys
        names = WeightNames(*keys, tuple(LABELS), (), corpus.start_label, "chain")
        return names.model(np.arange(len(theta)), theta, "float64")

    def orders(self, seed: int) -> Iterator[np.ndarray]:
        """Yield the sequences of each batch in the order of their visits."""
        lengths = np.diff(self.problem.corpus.offsets)
        for i, (batch, first) in enumerate(zip(self.batches, self.bounds, strict=False)):
            own = lengths[first : self.bounds[i + 1]].tolist()
            lattice = build_lattice(batch, N)
            # Without clamped copies, which come last and are subtracted.
            there = np.diff(lattice.offsets)[lattice.weights > 0.0]
            order = np.random.default_rng([seed, i]).permutation(len(there))
            yield first + np.array([own.index(n) for n in there])[order]

    def tests_of(self, sequences: np.ndarray) -> np.ndarray:
        """Return a mask [K] bool of the weights of features of sequences."""
        found = Problem(self.problem.corpus, N, np.zeros(len(self.problem.theta)))
        for i in sequences:
            for t in self.problem.sequences()[i]:
                found.mu[self.problem.unigram_tests(t)] = 1.0
                found.lam[self.problem.bigram_tests(t)] = 1.0
        return found.theta > 0.0

    def observed(self, sequences: np.ndarray) -> Problem:
        """Return weights of 1 for the features observed with the gold labels of sequences."""
        found = Problem(self.problem.corpus, N, np.zeros(len(self.problem.theta)))
        for i in sequences:
            tokens = self.problem.sequences()[i]
            gold = [N, *self.problem.corpus.labels[tokens.start : tokens.stop]]
            for t, (before, label) in zip(tokens, pairwise(gold), strict=True):
                if label >= 0:
                    found.mu[self.problem.unigram_tests(t), label] = 1.0
                if label >= 0 and 0 <= before < self.problem.n_previous:
                    found.lam[self.problem.bigram_tests(t), before, label] = 1.0
        return found

    def born(self, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield for each batch, with l1: order, weights of its features, and existing weights."""
        born = Problem(self.problem.corpus, N, np.zeros(len(self.problem.theta)))
        for order, span in zip(self.orders(seed), pairwise(self.bounds), strict=True):
            tests = self.tests_of(np.arange(*span))
            here = Problem(self.problem.corpus, N, tests.astype(float))
            born.theta[:] = np.maximum(born.theta, self.observed(order).theta)
            for table, mask in ((born.mu, here.mu), (born.lam, here.lam)):
                for o in range(len(table)):
                    if mask[o].any() and 0 < table[o].sum() >= 0.25 * table[o].size:
                        table[o] = 1.0
            yield order, here.theta > 0.0, born.theta > 0.0


def make_case(seed: int = 5, lengths: list[int] | None = None, **options) -> Case:
    lengths = [4, 3, 5, 2, 1, 3, 4, 2, 5] if lengths is None else lengths
    options = {"n_values": 12, "n_unigram": 2, "n_bigram": 2, "weighted": True} | options
    problem, observations = random_problem(seed, N, lengths, **options)
    bounds = [0, 3, 5, 9]
    batches = [part_of(problem, observations, a, b) for a, b in pairwise(bounds)]
    return Case(problem, batches, bounds)


def has_repeated_tests(case: Case) -> bool:
    """Return whether a unigram feature occurs at two tokens of a sequence."""
    problem = case.problem
    tests = [
        [o for t in tokens for o in problem.unigram_tests(t)] for tokens in problem.sequences()
    ]
    return any(len(set(of_sequence)) < len(of_sequence) for of_sequence in tests)


def make_stream(case: Case, solver, penalty: ElasticNet, **options) -> Stream:
    """Return a run on the batches of a case, before its first batch."""
    options = {"l1": penalty.l1, "l2": penalty.l2, "dtype": "float64"} | options
    return Stream(case.batches[0], LABELS, solver, **options)
