"""Losses for tests of solvers."""

from typing import Any

from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus
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
