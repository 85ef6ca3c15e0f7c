"""Training on lattices: objective and test error on the way, by optimiser, gain and inference.

A pass is a visit of every picture, whatever it costs. Where stochastic optimisers were is kept
picture by picture; objectives and test errors there are found afterwards, and are in no figure of
passes or of time.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from bench.options import Quick
from bench.timing import Stopwatch
from numpy.typing import NDArray
from reports.machine import describe
from reports.records import read_records, write_record
from wasabi import msg

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.graphs.encoded import EncodedGraph
from spacy_sparsecrf.graphs.graph_inference import GraphInference
from spacy_sparsecrf.graphs.loss import GraphLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.pipeline.graph_settings import Inference
from spacy_sparsecrf.solvers.base import BatchSolver
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.solvers.sgd import SGD
from spacy_sparsecrf.solvers.smd import SMD

from .pictures import NOISES, encode, noisy, read_shapes

# The paper's settings, gains by inference; for each the gains that race here.
PAPER = {"lbp": 1e-4, "mean_field": 1e-3, "pseudo_likelihood": 0.04}
GAINS = {
    "lbp": (1e-4, 1e-3, 3e-3),
    "mean_field": (1e-3, 3e-3),
    "pseudo_likelihood": (4e-3, 0.04),
}
DECAY, META, SIGMA, EDGES = 0.9, 10.0, 1.0, 0.5
# ASG is SGD with gain eta0 / t; SMD has the paper's meta-gain for lattices, or that for chains.
OPTIMISERS = ("L-BFGS", "SGD", "ASG", "SMD", "SMD, mu = 0.1")
BY_GAIN = ("SGD", "SMD", "SMD, mu = 0.1")
# Points that are recorded of a pass, of the first passes and of later ones.
_FIRST, _POINTS, _LATER = 2, 4, 2
_TOLERANCE = 1e-6
# Stands for an objective that is not finite.
_BEYOND = 1e300
_PENALTY = ElasticNet(0.0, 1.0 / SIGMA**2)


@dataclass
class Course:
    """Where an optimiser was after so many passes; open: pictures whose inference was not over."""

    eta: float
    passes: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    errors: list[float | None] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    theta: list[float] = field(default_factory=list)
    cpu: float = 0.0
    failure: str = ""


@dataclass(frozen=True)
class Images:
    """Images to train and to test on: labels and grey values of each, and as graphs."""

    truths: list[NDArray[np.int64]]
    greys: list[NDArray[np.float64]]

    @cached_property
    def graphs(self) -> EncodedGraph:
        """With edges."""
        return encode(self.truths, self.greys)

    @cached_property
    def _field(self) -> GraphInference:
        nobody = np.full(self.graphs.n_nodes, -1, np.int32), np.zeros((0, 2), np.bool_)
        return GraphInference(self.graphs, 2, *nobody, Inference(tolerance=_TOLERANCE))

    @cached_property
    def logistic(self) -> NDArray[np.float64]:
        """Weights of nodes [2] by logistic regression, without a penalty to speak of."""
        loss = GraphLoss(encode(self.truths, self.greys, False), 2, Workers(1))
        solver, penalty = OWLQN(), ElasticNet(0.0, 1e-6)
        state = solver.start(loss, penalty, np.zeros(loss.split))
        while not solver.step(loss, penalty, state).converged:
            pass
        return np.asarray(state.theta)

    def labels(self, theta: NDArray[np.float64]) -> NDArray[np.int64]:
        """The likeliest label of each node, by belief propagation."""
        return self._field.infer_all(theta, Workers(1)).beliefs.nodes.argmax(axis=1)

    def error(self, theta: NDArray[np.float64]) -> float:
        """The percentage of wrong pixels."""
        return 100.0 * float(np.mean(self.labels(theta) != self.graphs.labels))


def images(noise: str, shapes: list[Any], n: int, seed: int) -> Images:
    """So many noisy pictures, of each shape in turn."""
    rng = np.random.default_rng(seed)
    truths = [shapes[i % len(shapes)] for i in range(n)]
    return Images(truths, [noisy(truth, noise, rng) for truth in truths])


class Watched(GraphLoss):
    """A loss that keeps the weights [K] with which each picture was visited."""

    def __init__(self, train: Images, method: str) -> None:
        inference = Inference(method=method, tolerance=_TOLERANCE)
        super().__init__(train.graphs, 2, Workers(1), inference)
        self.visited: list[NDArray[np.float64]] = []

    def add(self, members: Any, theta: Any, gradient: Any) -> float:
        """See `GraphLoss.add`."""
        self.visited.append(theta.copy())
        return super().add(members, theta, gradient)

    def add_product(
        self, members: Any, theta: Any, direction: Any, gradient: Any, product: Any
    ) -> float:
        """See `GraphLoss.add_product`."""
        self.visited.append(theta.copy())
        return super().add_product(members, theta, direction, gradient, product)


def optimiser(name: str, eta: float, n: int) -> BatchSolver:
    """An optimiser as in the paper: SGD with a constant gain, ASG with eta0 / t; n: pictures."""
    if name.startswith("SMD"):
        return SMD(eta0=eta, mu=0.1 if "mu" in name else META * eta, decay=DECAY, batch=1)
    if name.startswith("SGD"):
        return SGD(eta0=eta, schedule="constant")
    if name == "ASG":
        # The schedule is eta0 N / (l2 t).
        return SGD(eta0=eta * _PENALTY.l2 / n, schedule="pegasos")
    return OWLQN()


def travel(
    solver: BatchSolver, loss: Watched, theta: NDArray[np.float64], passes: int, course: Course
) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """Points on the way, and after how many passes; cpu and failure are left in the course."""
    watch = Stopwatch()
    state = solver.start(loss, _PENALTY, theta)
    course.cpu, at, converged = watch.read().cpu, 0.0, False
    yield at, state.theta
    while at < passes and not (converged or course.failure):
        loss.visited.clear()
        watch, spent = Stopwatch(), 1.0
        try:
            report = solver.step(loss, _PENALTY, state)
            spent, converged = report.passes, report.converged
        except SparseCRFError as error:
            course.failure = str(error)
        course.cpu += watch.read().cpu
        n, points = len(loss.visited), _POINTS if at < _FIRST else _LATER
        yield from ((at + i / points, loss.visited[i * n // points]) for i in range(1, points) if n)
        at += spent
        yield at, state.theta


def run(name: str, eta: float, train: Images, test: Images, method: str, passes: int) -> Course:
    """Train by an optimiser from the paper's start; see `Course`."""
    loss, judge, course = Watched(train, method), Watched(train, method), Course(eta)
    solver = optimiser(name, eta, loss.n_examples)
    theta = np.append(train.logistic, [EDGES, EDGES])
    for at, point in travel(solver, loss, theta, passes, course):
        if not np.isfinite(point).all():
            course.failure = course.failure or "weights that are no numbers"
            break
        value, _ = judge.value_and_grad(point)
        course.passes.append(at)
        course.objective.append(min(value + _PENALTY.value(point), _BEYOND))
        course.open.append(int((~(judge.field.real.beliefs.changes <= _TOLERANCE)).sum()))
        course.errors.append(test.error(point) if at % 1.0 == 0.0 else None)
        course.theta = point.tolist()
    if course.errors[-1] is None:
        course.errors[-1] = test.error(np.array(course.theta))
    return course


def iteration(train: Images) -> float:
    """Milliseconds of the processor for one iteration over all images, messages all at once."""
    costs = []
    theta = np.append(train.logistic, [EDGES, EDGES])
    for limit in (2, 12):
        inference = Inference(schedule="parallel", limit=limit, tolerance=0.0)
        loss, best = GraphLoss(train.graphs, 2, Workers(1), inference), math.inf
        for _ in range(5):
            watch = Stopwatch()
            loss.value_and_grad(theta)
            best = min(best, watch.read().cpu)
        costs.append(best)
    return 100.0 * (costs[1] - costs[0])


def races(method: str, passes: int) -> Iterator[tuple[str, float, int]]:
    """What runs, with which gain, for so many passes: twice as many where it is L-BFGS.

    ASG has the highest gain; mu = 0.1 is tried with belief propagation only.
    """
    yield "L-BFGS", 0.0, 2 * passes
    names = BY_GAIN if method == "lbp" else BY_GAIN[:2]
    yield from ((name, eta, passes) for eta in GAINS[method] for name in names)
    yield "ASG", GAINS[method][-1], passes


def race(train: Images, test: Images, record: dict[str, Any], path: Path) -> None:
    """Run what is not in a record yet, and store it after each run."""
    for method in PAPER:
        courses = record["methods"].setdefault(method, [])
        done = {(course["name"], course["eta"]) for course in courses}
        for name, eta, passes in races(method, record["passes"]):
            if (name, eta) in done:
                continue
            course = run(name, eta, train, test, method, passes)
            courses.append({"name": name, **vars(course)})
            msg.text(
                f"{method}, {name}, gain {eta:g}: {course.passes[-1]:.0f} passes, "
                f"{course.cpu:.1f} s, objective {course.objective[-1]:.8g}, "
                f"errors {course.errors[-1]:.2f} % {course.failure}"
            )
            write_record(path, record)


def main(
    output: Annotated[Path, typer.Argument(help="Directory for the courses, as JSON")],
    shapes: Annotated[str, typer.Argument(help='Directory of pictures; "" for ours')] = "",
    passes: Annotated[int, typer.Option(help="Passes of an optimiser")] = 8,
    noises: Annotated[list[str] | None, typer.Option("--noise", help="Kinds; all")] = None,
    quick: Quick = False,
) -> None:
    """Train on noisy pictures by all optimisers and kinds of inference; what was run is kept."""
    # How many pictures are open is a figure of its own.
    warnings.filterwarnings("ignore", "\\[SCW370", SparseCRFWarning)
    n_train, n_test, passes = (4, 2, 2) if quick else (40, 10, passes)
    pictures = [each[::4, ::4] if quick else each for each in read_shapes(shapes)]
    for noise in noises or NOISES:
        train, test = images(noise, pictures, n_train, 0), images(noise, pictures, n_test, 1)
        nodes = np.append(train.logistic, [0.0, 0.0])
        settings = {"quick": quick, "noise": noise, "passes": passes, "shapes": shapes}
        settings |= {"train": n_train, "test": n_test}
        record = read_records(output, [noise]).get(noise, {})
        if {key: record.get(key) for key in settings} != settings:
            record = settings | {"machine": describe(), "nodes": nodes.tolist(), "methods": {}}
            record |= {"logistic": test.error(nodes), "iteration": iteration(train)}
        race(train, test, dict(record), output / f"{noise}.json")


if __name__ == "__main__":
    typer.run(main)
