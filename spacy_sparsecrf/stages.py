"""Stages of a training run: the stochastic warm start before a batch solver, polishing after."""

import numpy as np
from numpy.typing import NDArray

from .loss.chain import ChainLoss
from .loss.stochastic import SequenceDescent
from .penalty import ElasticNet
from .solvers.calibration import calibrate
from .solvers.owlqn import OWLQN

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# Decay of the step over one epoch: the value that Wapiti has.
EPOCH_DECAY = 0.85


def warm_start(
    loss: ChainLoss, penalty: ElasticNet, n_epochs: int, seed: int
) -> tuple[Longs, Floats]:
    """Learn first weights by SGD-L1 (Tsuruoka 2009), mostly of pairs of test and label that occur.

    Sequences with missing gold labels are left out. n_epochs: passes over the corpus, none for 0;
    seed: of the order of sequences.
    RETURNS: coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights.
    """
    if n_epochs == 0:
        return np.empty(0, np.int64), np.empty(0)
    rng = np.random.default_rng(seed)
    working = loss.restrict(loss.descent_coordinates(), stochastic=True)
    descent = SequenceDescent(working, penalty)
    sequences = descent.sequences
    if len(sequences) > 0:
        eta, _ = calibrate(rng.permutation(sequences), descent.loss_after)
        decay = EPOCH_DECAY ** (1.0 / len(sequences))
        for epoch in range(n_epochs):
            descent.run(rng.permutation(sequences), eta * EPOCH_DECAY**epoch, decay)
    theta = descent.settle()
    active = theta != 0.0
    return working.coordinates[active], theta[active]


def polish(
    loss: ChainLoss, weights: tuple[Longs, Floats], n_iterations: int, penalty: ElasticNet
) -> tuple[Longs, Floats]:
    """Fine-tune weights by L-BFGS, all others staying zero (Lavergne 2010, section 5.3.1).

    l1 has chosen the weights but also shrunk them; here they only have a small l2 penalty.

    weights: coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights;
    n_iterations: a handful: without l1, more would fit the corpus too closely; penalty: without l1.
    RETURNS: the same coordinates, and the new values. The workspace's marginals are overwritten.
    """
    coordinates, theta = weights
    if n_iterations == 0 or len(coordinates) == 0:
        return weights
    working, own, solver = loss.restrict(coordinates), penalty.on(coordinates), OWLQN()
    state = solver.start(working, own, theta)
    for _ in range(n_iterations):
        if solver.step(working, own, state).converged:
            break
    return coordinates, state.theta
