"""Our side of the comparisons: through the same classes that the component trains with."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.examples import SequenceDescent
from spacy_sparsecrf.loss.working import WorkingLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training.training import Training

from .data import L1, L2, Problem
from .follow import Point, Run
from .timing import Cost, Stopwatch, measured

PENALTY = ElasticNet(L1, L2)
# To the end, for the best objective that is known.
LONG: dict[str, Any] = {"tolerance": 1e-3, "window": 1e-6}
# What is raced is the objective: from the last weights of the warm start it falls sooner than from
# their means.
_WARM_START: dict[str, Any] = {"warm_start_epochs": 6, "average_warm_start": False}
_MAX_STEPS = 1000


def chain_loss(problem: Problem, threads: int = 1, precision: str = "float64") -> ChainLoss:
    """The full problem; precision: see `ChainLoss`."""
    return ChainLoss(problem.corpus, problem.n_labels, Workers(threads), precision)


def small_weights(n: int) -> NDArray[np.float64]:
    """Small random weights, none of them zero: [n] float64."""
    return np.random.default_rng(0).normal(scale=1e-2, size=n)


def objective_at(
    problem: Problem, coordinates: NDArray[np.int64], theta: NDArray[np.float64]
) -> float:
    """Loss plus penalty at some weights, all others being zero."""
    value, _ = chain_loss(problem).restrict(coordinates).value_and_grad(theta)
    return value + PENALTY.value(theta)


@dataclass
class Recorder:
    """Notes where a solver stands after each of its iterations, inner ones too.

    run: the points so far; loss, theta: the last working loss, and the weights there.
    """

    watch: Stopwatch = field(default_factory=Stopwatch)
    run: Run = field(default_factory=Run)
    loss: Any = None
    theta: Any = None

    def note(self, loss: Any, state: Any) -> None:
        """Note a point."""
        now = self.watch.read()
        n_active = int(np.count_nonzero(state.theta))
        self.run.points.append(Point(now.wall, now.cpu, float(state.value), n_active))
        self.loss, self.theta = loss, state.theta


class RecordingOWLQN(OWLQN):
    """The component's solver, which tells a recorder of each iteration."""

    def __init__(self, recorder: Recorder, **settings: Any) -> None:
        super().__init__(**settings)
        self._recorder = recorder

    def start(self, loss: Any, penalty: Any, theta: Any) -> Any:
        """Start as OWLQN does; note the first point."""
        state = super().start(loss, penalty, theta)
        self._recorder.note(loss, state)
        return state

    def step(self, loss: Any, penalty: Any, state: Any) -> Any:
        """Step as OWLQN does; note the point."""
        report = super().step(loss, penalty, state)
        self._recorder.note(loss, state)
        return report


def train(
    problem: Problem,
    *,
    threads: int = 1,
    steps: int = _MAX_STEPS,
    cap: float = float("inf"),
    observed_only: bool = False,
    **settings: Any,
) -> tuple[Recorder, list[Cost]]:
    """Train as the component does; the time begins at the encoded corpus.

    steps: outer iterations at most; observed_only: whether only pairs of a test and a label that
    occur may have weights, which is CRFsuite's problem; settings: of OWLQN.
    RETURNS: what was recorded, and the cost of each outer iteration.
    """
    recorder, costs = Recorder(), []
    solver = RecordingOWLQN(recorder, **{**_WARM_START, **settings})
    options: dict[str, Any] = {"n_threads": threads, "observed_only": observed_only}
    training = Training(problem.corpus, problem.labels, solver, l1=L1, l2=L2, **options)
    recorder.run.n_weights = training.n_potential
    for _ in range(steps):
        with measured() as cost:
            report = training.step()
        costs.append(cost)
        recorder.run.cut = recorder.watch.read().wall > cap
        if report.converged or recorder.run.cut:
            break
    return recorder, costs


def gradient(loss: WorkingLoss, theta: NDArray[np.float64]) -> Cost:
    """Cost of one value and gradient."""
    with measured() as cost:
        loss.value_and_grad(theta)
    return cost


class Epochs:
    """Epochs of SGD-L1 as in the warm start, on the same weights.

    eta: step of the first sequence; decay: of the step over an epoch (Wapiti's settings).
    """

    def __init__(self, problem: Problem, eta: float = 0.8, decay: float = 0.85) -> None:
        loss = chain_loss(problem)
        working = loss.restrict(loss.descent_coordinates(), stochastic=True)
        self._descent = SequenceDescent(working, PENALTY)
        self._rng = np.random.default_rng(0)
        self._eta, self._decay, self._n = eta, decay, 0

    def run(self) -> Cost:
        """Do the next epoch."""
        order = self._rng.permutation(self._descent.sequences)
        eta = self._eta * self._decay**self._n
        self._n += 1
        with measured() as cost:
            self._descent.run(order, eta, self._decay ** (1.0 / len(order)))
        return cost
