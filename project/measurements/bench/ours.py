"""Our side of comparisons, using the same classes as the component."""

from typing import Any

import numpy as np
from measure.data import QUICK_SENTENCES, Problem, sources
from measure.processes import Cost, timed
from measure.race import Watched
from numpy.typing import NDArray

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.working import ChainWorkingLoss
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.training.training import Training

# The penalty of every comparison: l1 |w|_1 + l2 / 2 |w|_2^2.
L1, L2 = 0.5, 1e-5
# Outer iterations before the working set is measured.
_STEPS = 5


def encoded(name: str, data: str, quick: bool) -> Problem:
    """Encode the training part of a data set, or a sample."""
    source = sources()[name]
    return Problem.of(name, source, source.rows("train", data, QUICK_SENTENCES if quick else 0))


def chain_loss(problem: Problem, precision: str = "float64") -> ChainLoss:
    """Return the loss with all potential weights, on one thread; precision: see `ChainLoss`."""
    return ChainLoss(problem.corpus, problem.n_labels, Workers(1), precision=precision)


def random_weights(n: int, seed: int = 0, scale: float = 1e-2) -> NDArray[np.float64]:
    """Return random weights, none of them zero: [n] float64."""
    return np.random.default_rng(seed).normal(scale=scale, size=n)


def trained(problem: Problem) -> tuple[ChainWorkingLoss, NDArray[np.float64]]:
    """Return the working loss after a few outer iterations, and its weights."""
    watched: Any = Watched(OWLQN())
    training = Training(problem.corpus, problem.labels, watched, l1=L1, l2=L2, n_threads=1)
    for _ in range(_STEPS):
        if training.step().end:
            break
    return watched.loss, watched.theta


def gradient(loss: ChainWorkingLoss, theta: NDArray[np.float64]) -> Cost:
    """Return the cost of one value and gradient."""
    return timed(lambda: loss.value_and_grad(theta))
