"""Stages of a training run: the stochastic warm start before a batch solver, polishing after."""

import numpy as np
from numpy.typing import NDArray

from .loss.chain import ChainLoss
from .loss.stochastic import SequenceDescent
from .penalty import ElasticNet
from .solvers.owlqn import OWLQN

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# Decay of the step over one epoch: the value that Wapiti has.
_EPOCH_DECAY = 0.85
# Bottou's calibration: steps are tried on so many sequences, growing or shrinking by a factor.
_SAMPLE = 500
_FIRST_STEP = 0.1
_FACTOR = 2.0
_MAX_TRIALS = 10


def warm_start(
    loss: ChainLoss, penalty: ElasticNet, n_epochs: int, seed: int
) -> tuple[Longs, Floats]:
    """Learn first weights by SGD-L1 (Tsuruoka 2009), mostly of pairs of test and label that occur.

    n_epochs: passes over the corpus, none for 0; seed: of the order of sequences.
    RETURNS: coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights.
    """
    if n_epochs == 0:
        return np.empty(0, np.int64), np.empty(0)
    rng = np.random.default_rng(seed)
    working = loss.restrict(loss.descent_coordinates(), stochastic=True)
    descent = SequenceDescent(working, penalty)
    sequences = descent.sequences
    if len(sequences) > 0:
        eta = _calibrate(descent, rng.permutation(sequences)[:_SAMPLE])
        decay = _EPOCH_DECAY ** (1.0 / len(sequences))
        for epoch in range(n_epochs):
            descent.run(rng.permutation(sequences), eta * _EPOCH_DECAY**epoch, decay)
    theta = descent.settle()
    active = theta != 0.0
    return working.coordinates[active], theta[active]


def _calibrate(descent: SequenceDescent, sample: Longs) -> float:
    """Find the step with the lowest loss after a pass over a sample, among powers of a factor."""

    def loss_after(eta: float) -> float:
        descent.reset()
        descent.run(sample, eta, 1.0)
        loss = descent.run(sample, 0.0, 1.0)
        return loss if np.isfinite(loss) else np.inf

    best, lowest = _FIRST_STEP, loss_after(_FIRST_STEP)
    for factor in (_FACTOR, 1.0 / _FACTOR):
        eta = best * factor
        for _ in range(_MAX_TRIALS):
            loss = loss_after(eta)
            if loss >= lowest:
                break
            best, lowest = eta, loss
            eta *= factor
        if best > _FIRST_STEP:
            # The next smaller step was tried on the way up, and was worse.
            break
    descent.reset()
    return best


def polish(
    loss: ChainLoss, weights: tuple[Longs, Floats], n_iterations: int, l2: float
) -> tuple[Longs, Floats]:
    """Fine-tune weights by L-BFGS, all others staying zero (Lavergne 2010, section 5.3.1).

    l1 has chosen the weights but also shrunk them; here they only have a small l2 penalty.

    weights: coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights;
    n_iterations: a handful: without l1, more would fit the corpus too closely; l2: >= 0.
    RETURNS: the same coordinates, and the new values. The workspace's marginals are overwritten.
    """
    coordinates, theta = weights
    if n_iterations == 0 or len(coordinates) == 0:
        return weights
    working, penalty, solver = loss.restrict(coordinates), ElasticNet(0.0, l2), OWLQN()
    state = solver.start(working, penalty, theta)
    for _ in range(n_iterations):
        if solver.step(working, penalty, state).converged:
            break
    return coordinates, state.theta
