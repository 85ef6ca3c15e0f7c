"""Training on lattices: objective and test error over time, by optimiser, gain and inference.

A pass visits every image once, at any cost. The weights of stochastic optimisers are recorded
after each image; objectives and test errors are computed afterwards, and are not counted in
passes or in time.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from measure.processes import Stopwatch
from measure.race import Course
from measure.results import Quick, Results
from numpy.typing import NDArray

from spacy_sparsecrf.crf.graphs.encoded_graphs import EncodedGraph
from spacy_sparsecrf.crf.graphs.graph_inference import GraphInference, Inference
from spacy_sparsecrf.crf.graphs.graph_loss import GraphLoss
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.sgd import SGD
from spacy_sparsecrf.crf.solvers.smd import SMD
from spacy_sparsecrf.crf.solvers.solver import BatchSolver
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from .pictures import NOISES, encode, noisy, shapes

Floats = NDArray[np.float64]

# The paper's gains by inference; and the gains compared here.
PAPER = {"lbp": 1e-4, "mean_field": 1e-3, "pseudo_likelihood": 0.04}
GAINS = {
    "lbp": (1e-4, 1e-3, 3e-3),
    "mean_field": (1e-3, 3e-3),
    "pseudo_likelihood": (4e-3, 0.04),
}
DECAY, META, SIGMA, EDGES = 0.9, 10.0, 1.0, 0.5
# ASG is SGD with gain eta0 / t; SMD uses the paper's meta-gain for lattices, or for chains.
OPTIMISERS = ("L-BFGS", "SGD", "ASG", "SMD", "SMD, mu = 0.1")
BY_GAIN = ("SGD", "SMD", "SMD, mu = 0.1")
# Number of recorded points per pass, in the first passes and in later ones.
_FIRST, _POINTS, _LATER = 2, 4, 2
_TOLERANCE = 1e-6
# Recorded in place of an objective that is not finite.
_BEYOND = 1e300
_PENALTY = ElasticNet(0.0, 1.0 / SIGMA**2)


@dataclass(frozen=True)
class Images:
    """Images for training or testing: labels and grey values of each, and their graphs."""

    truths: list[NDArray[np.int64]]
    greys: list[Floats]

    @classmethod
    def drawn(cls, noise: str, shapes: list[Any], n: int, seed: int) -> "Images":
        """Draw n noisy images, cycling through the shapes."""
        rng = np.random.default_rng(seed)
        truths = [shapes[i % len(shapes)] for i in range(n)]
        return cls(truths, [noisy(truth, noise, rng) for truth in truths])

    @cached_property
    def graphs(self) -> EncodedGraph:
        """The images as graphs with edges."""
        return encode(self.truths, self.greys)

    @cached_property
    def _field(self) -> GraphInference:
        nobody = np.full(self.graphs.n_nodes, -1, np.int32), np.zeros((0, 2), np.bool_)
        return GraphInference(self.graphs, 2, *nobody, Inference(tolerance=_TOLERANCE))

    @cached_property
    def logistic(self) -> Floats:
        """Weights of nodes [2], fitted by logistic regression with a tiny penalty."""
        loss = GraphLoss(encode(self.truths, self.greys, False), 2, Workers(1))
        solver, penalty = OWLQN(), ElasticNet(0.0, 1e-6)
        state = solver.start(loss, penalty, np.zeros(loss.n_weights))
        while not solver.step(loss, penalty, state).converged:
            pass
        return np.asarray(state.theta)

    @property
    def start(self) -> Floats:
        """The paper's initial weights."""
        return np.append(self.logistic, [EDGES, EDGES])

    def labels(self, theta: Floats) -> NDArray[np.int64]:
        """Return the most probable label of each node according to belief propagation."""
        return self._field.infer_all(theta, Workers(1)).beliefs.nodes.argmax(axis=1)

    def error(self, theta: Floats) -> float:
        """Return the percentage of wrong pixels."""
        return 100.0 * float(np.mean(self.labels(theta) != self.graphs.labels))


class VisitedLoss(GraphLoss):
    """A loss that records the weights [K] at each visit of an image."""

    def __init__(self, train: Images, method: str) -> None:
        inference = Inference(method=method, tolerance=_TOLERANCE)
        super().__init__(train.graphs, 2, Workers(1), inference)
        self.visited: list[Floats] = []

    def add(self, members: Any, theta: Any, *rest: Any) -> float:
        """See `GraphLoss.add`."""
        self.visited.append(theta.copy())
        return super().add(members, theta, *rest)

    def add_product(self, members: Any, theta: Any, *rest: Any) -> float:
        """See `GraphLoss.add_product`."""
        self.visited.append(theta.copy())
        return super().add_product(members, theta, *rest)


def optimiser(name: str, eta: float, n: int) -> BatchSolver:
    """Return an optimiser with the paper's settings; n: number of images."""
    if name.startswith("SMD"):
        return SMD(eta0=eta, mu=0.1 if "mu" in name else META * eta, decay=DECAY, batch=1)
    if name == "SGD":
        return SGD(eta0=eta, schedule="constant")
    if name == "ASG":
        # The schedule is eta0 N / (l2 t).
        return SGD(eta0=eta * _PENALTY.l2 / n, schedule="pegasos")
    return OWLQN()


def travel(
    solver: BatchSolver, loss: VisitedLoss, theta: Floats, passes: int
) -> Iterator[tuple[float, float, Floats]]:
    """Yield passes and processor seconds so far, and weights.

    RAISES: SparseCRFError if the solver fails, after yielding its last weights.
    """
    watch, failure, converged = Stopwatch(), None, False
    state = solver.start(loss, _PENALTY, theta)
    at, spent = 0.0, watch.read().cpu
    yield at, spent, state.theta
    while at < passes and not converged:
        loss.visited.clear()
        watch, taken = Stopwatch(), 1.0
        try:
            report = solver.step(loss, _PENALTY, state)
            taken, converged = report.passes, report.converged
        except SparseCRFError as error:
            failure = error
        spent += watch.read().cpu
        n, points = len(loss.visited), _POINTS if at < _FIRST else _LATER
        for i in range(1, points if n else 0):
            yield at + i / points, spent, loss.visited[i * n // points]
        at += taken
        yield at, spent, state.theta
        if failure:
            raise failure


def run(
    name: str, eta: float, train: Images, test: Images, method: str, passes: int
) -> dict[str, Any]:
    """Train with an optimiser from the paper's initial weights.

    RETURNS: a course; `open`: numbers of images whose inference had not converged.
    """
    loss, judge, course = VisitedLoss(train, method), VisitedLoss(train, method), Course()
    solver, n_open, last = optimiser(name, eta, loss.n_examples), [], train.start
    try:
        for at, spent, point in travel(solver, loss, train.start, passes):
            if not np.isfinite(point).all():
                raise SparseCRFError("weights that are no numbers")
            value, _ = judge.value_and_grad(point)
            course.passes.append(at)
            course.cpu.append(spent)
            course.objective.append(min(value + _PENALTY.value(point), _BEYOND))
            n_open.append(int((~(judge.field.real.beliefs.changes <= _TOLERANCE)).sum()))
            if at % 1.0 == 0.0:
                course.errors.append((len(course.passes) - 1, test.error(point)))
            last = point.copy()
    except SparseCRFError as error:
        course.failure = str(error)
    if course.errors[-1][0] != len(course.passes) - 1:
        course.errors.append((len(course.passes) - 1, test.error(last)))
    return {**vars(course), "open": n_open}


def contestants(method: str, passes: int) -> Iterator[tuple[str, float, int]]:
    """Yield optimisers with gain and number of passes, which is doubled for L-BFGS.

    ASG uses the highest gain; mu = 0.1 runs with belief propagation only.
    """
    yield "L-BFGS", 0.0, 2 * passes
    names = BY_GAIN if method == "lbp" else BY_GAIN[:2]
    yield from ((name, eta, passes) for eta in GAINS[method] for name in names)
    yield "ASG", GAINS[method][-1], passes


def main(
    output: Annotated[Path, typer.Argument(help="Directory for the courses")],
    passes: Annotated[int, typer.Option(help="Passes of an optimiser")] = 8,
    quick: Quick = False,
) -> None:
    """Train on noisy pictures with all optimisers and types of inference; keep earlier results."""
    # The number of images that have not converged is a figure in the results.
    warnings.filterwarnings("ignore", "\\[SCW370", SparseCRFWarning)
    n_train, n_test, passes = (4, 2, 2) if quick else (40, 10, passes)
    pictures = [each[::4, ::4] if quick else each for each in shapes()]
    for noise in NOISES:
        train, test = (
            Images.drawn(noise, pictures, n, seed) for seed, n in enumerate((n_train, n_test))
        )
        settings = {"passes": passes, "train": n_train, "test": n_test}
        results = Results(output / f"{noise}.jsonl", quick, settings, keep="same")
        if "nodes" not in results.rows:
            nodes = np.append(train.logistic, [0.0, 0.0])
            results.add("nodes", logistic=test.error(nodes))
        for method in PAPER:
            for optimiser_name, eta, most in contestants(method, passes):
                name = f"{method}, {optimiser_name}, {eta:g}"
                if name not in results.rows:
                    figures = run(optimiser_name, eta, train, test, method, most)
                    own = {"method": method, "optimiser": optimiser_name, "eta": eta}
                    results.add(name, **own, **figures)


if __name__ == "__main__":
    typer.run(main)
