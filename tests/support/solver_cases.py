"""Losses for tests of solvers."""

from typing import Any

import numpy as np

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.working import ChainWorkingLoss
from spacy_sparsecrf.crf.parallel import Workers

from ..reference import Problem

LENGTHS = [4, 3, 1, 3, 4, 2]
# Methods and samplings of SAG; saga2 has its own sampling.
METHODS = [(m, s) for m in ("sag", "saga") for s in ("uniform", "nus", "nus*")]
METHODS.append(("saga2", "nus*"))


def everything(
    corpus: EncodedCorpus,
    n_labels: int,
    precision: str = "float64",
    by_example: bool = True,
    **options: Any,
) -> ChainWorkingLoss:
    """Return the loss of a corpus on all of its weights; by default laid out by example."""
    loss = ChainLoss(corpus, n_labels, Workers(1), precision=precision, **options)
    lay_out = loss.by_example if by_example else loss.restrict
    return lay_out(loss.coordinates("all"))


def working_loss(problem: Problem, **options: Any) -> ChainWorkingLoss:
    """Return the loss of a problem on all of its weights; see `everything`."""
    return everything(problem.corpus, problem.n_labels, **options)


MISSING = {"missing": 0.3, "weighted": True, "n_bigram": 3}


def example_loss(problem: Problem, i: int, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Return loss and gradient of one sequence by enumeration, unweighted."""
    there = Problem(problem.corpus, problem.n_labels, theta)
    tokens = there.sequences()[i]
    value = there.log_z(tokens) - there.log_z(tokens, agree=True)
    return value, there.expected(tokens) - there.expected(tokens, agree=True)


def lattice_order(problem: Problem, working: ChainWorkingLoss) -> np.ndarray:
    """Return corpus numbers of the lattice's sequences, whose lengths are all distinct."""
    lengths = np.diff(problem.corpus.offsets).tolist()
    found = [lengths.index(n) for n in np.diff(working.space.lattice.offsets)]
    # Clamped copies come last.
    return np.array(found[: len(lengths)])


def single_test(active: list[int], n_tokens: int) -> ChainWorkingLoss:
    """Return the loss of one sequence with a single feature, at some of its tokens."""
    hashes = np.zeros((n_tokens, 1), np.uint64)
    hashes[active] = 7
    observations = Observations(
        hashes=hashes,
        offsets=np.array([0, n_tokens]),
        unigram_columns=np.array([0], np.int32),
        bigram_columns=np.empty(0, np.int32),
        start_label=True,
    )
    builder = CorpusBuilder()
    builder.add(observations, np.zeros(n_tokens, np.int32))
    loss = ChainLoss(builder.build(), 3, Workers(1))
    return loss.by_example(loss.coordinates("all"))
