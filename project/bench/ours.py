"""Our side of comparisons, using the same classes as the component."""

from typing import Any

import numpy as np
from measure.data import Problem
from measure.processes import Cost, measured, timed
from measure.race import Watched
from numpy.typing import NDArray

from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.examples import SequenceDescent
from spacy_sparsecrf.loss.working import WorkingLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.solvers.warm_start import WarmStart
from spacy_sparsecrf.training.training import Training

# The penalty of every comparison: l1 |w|_1 + l2 / 2 |w|_2^2.
L1, L2 = 0.5, 1e-5
PENALTY = ElasticNet(L1, L2)
# Converges further than the default, for the best known objective.
LONG: dict[str, Any] = {"tolerance": 1e-3, "window": 1e-6}
# The objective falls faster from the last weights of the warm start than from their average.
_WARM_START = WarmStart(epochs=6, averaged=False, evaluated=False)
_MAX_STEPS = 1000


def chain_loss(problem: Problem, threads: int = 1, precision: str = "float64") -> ChainLoss:
    """Return the loss with all potential weights; precision: see `ChainLoss`."""
    return ChainLoss(problem.corpus, problem.n_labels, Workers(threads), precision)


def whole_loss(
    problem: Problem, seed: int, scale: float = 1e-2
) -> tuple[WorkingLoss, NDArray[np.float64]]:
    """Return the loss on all potential weights, and random weights; it was evaluated once."""
    loss = chain_loss(problem)
    working = loss.restrict(loss.all_coordinates())
    theta = random_weights(len(working.coordinates), seed, scale)
    working.value_and_grad(theta)
    return working, theta


def random_weights(n: int, seed: int = 0, scale: float = 1e-2) -> NDArray[np.float64]:
    """Return random weights, none of them zero: [n] float64."""
    return np.random.default_rng(seed).normal(scale=scale, size=n)


def objective_at(
    problem: Problem, coordinates: NDArray[np.int64], theta: NDArray[np.float64]
) -> float:
    """Return loss plus penalty at given weights; all other weights are zero."""
    value, _ = chain_loss(problem).restrict(coordinates).value_and_grad(theta)
    return value + PENALTY.value(theta)


def train(
    problem: Problem,
    *,
    threads: int = 1,
    steps: int = _MAX_STEPS,
    cap: float = float("inf"),
    observed_only: bool = False,
    **settings: Any,
) -> tuple[Watched, list[Cost]]:
    """Train as the component does; time starts with the encoded corpus.

    steps: maximum outer iterations; cap: maximum wall seconds; observed_only: whether only observed
    pairs of attribute and label have weights, as in CRFsuite; settings: of OWLQN.
    RETURNS: the solver with its course, and the cost of each outer iteration.
    """
    watched, costs = Watched(OWLQN(**settings), first=_WARM_START.epochs), []
    options: dict[str, Any] = {"n_threads": threads, "observed_only": observed_only}
    options["warm_start"] = _WARM_START
    training = Training(problem.corpus, problem.labels, watched, l1=L1, l2=L2, **options)
    watched.course.n_weights = training.n_potential
    for _ in range(steps):
        with measured() as cost:
            report = training.step()
        costs.append(cost)
        watched.course.cut = sum(each.wall for each in costs) > cap
        if report.converged or watched.course.cut:
            break
    return watched, costs


def gradient(loss: WorkingLoss, theta: NDArray[np.float64]) -> Cost:
    """Return the cost of one value and gradient, whose memory is reused as in solvers."""
    return timed(lambda: loss.give_back(loss.value_and_grad(theta)[1]))


class Epochs:
    """Epochs of SGD-L1 as in the warm start, continued on the same weights.

    eta: step of the first sequence; decay: factor of the step per epoch (Wapiti's settings).
    """

    def __init__(self, problem: Problem, eta: float = 0.8, decay: float = 0.85) -> None:
        loss = chain_loss(problem)
        working = loss.restrict(loss.descent_coordinates(), stochastic=True)
        self._descent = SequenceDescent(working, PENALTY)
        self._rng = np.random.default_rng(0)
        self._eta, self._decay, self._n = eta, decay, 0

    def run(self) -> Cost:
        """Run the next epoch."""
        order = self._rng.permutation(self._descent.sequences)
        eta = self._eta * self._decay**self._n
        self._n += 1
        return timed(lambda: self._descent.run(order, eta, self._decay ** (1.0 / len(order))))
