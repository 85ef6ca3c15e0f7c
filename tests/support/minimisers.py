"""All solvers, training to the minimum, and the minimum by another optimiser."""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.per_token import local_corpus
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.crf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.crf.solvers.gis.gis import GIS
from spacy_sparsecrf.crf.solvers.gis.scgis import SCGIS
from spacy_sparsecrf.crf.solvers.hybrid import Hybrid
from spacy_sparsecrf.crf.solvers.newton.newton_cg import NewtonCG
from spacy_sparsecrf.crf.solvers.oeg.oeg import OEG
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.rprop import RPROP
from spacy_sparsecrf.crf.solvers.sag.sag import SAG
from spacy_sparsecrf.crf.solvers.sgd import SGD
from spacy_sparsecrf.crf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.crf.solvers.smd import SMD
from spacy_sparsecrf.crf.solvers.solver import BatchSolver
from spacy_sparsecrf.crf.training.training import Training

from ..reference import Problem
from .runs import training_of

# Batch solvers, as functions of the settings shared by all solvers.
SOLVERS = {
    "owlqn": OWLQN,
    "hybrid": Hybrid,
    "owlqn-classic": partial(OWLQN, variant="classic"),
    "rprop+": RPROP,
    "bcd": BCD,
    "newton-cg": NewtonCG,
    "sag": SAG,
    # The steps of SAGA are four times shorter than those of SAG.
    "saga": partial(SAG, method="saga", inner_iterations=20),
    "saga2": partial(SAG, method="saga2", inner_iterations=20),
    "oeg": OEG,
}
# Solvers for per-position models only.
LOCAL_SOLVERS = {"gis": GIS, "scgis": SCGIS, "scgis-by-weight": partial(SCGIS, by_feature=False)}
ALL_SOLVERS = SOLVERS | LOCAL_SOLVERS


def kind_of(solver: str) -> str:
    """Return the type of model on which a solver is tested."""
    return "memm" if solver in LOCAL_SOLVERS else "chain"


def make_loss(problem: Problem, kind: str = "chain") -> ChainLoss:
    corpus = problem.corpus
    if kind != "chain":
        corpus = local_corpus(corpus, problem.n_labels, pairs=kind == "memm")
    return ChainLoss(corpus, problem.n_labels, Workers(1), valid=problem.valid)


def skip_where_refused(solver: str, l1: float, missing: float = 0.0) -> None:
    if l1 > 0.0 and "no l1" in ALL_SOLVERS[solver]().requires:
        pytest.skip(f"{solver} minimises l1 = 0 only")
    if missing > 0.0 and solver == "oeg":
        pytest.skip("the loss of missing labels has no dual")


def train(
    problem: Problem, l1: float, l2: float, solver: BatchSolver, lowest: float = -np.inf, **options
) -> Training:
    """Train to convergence; check that every bound holds for the lowest objective, if given."""
    names = [f"L{y}" for y in range(problem.n_labels)]
    training = training_of(problem.corpus, names, solver, l1=l1, l2=l2, **options)
    for _ in range(300):
        report = training.step()
        assert report is training.report
        if np.isfinite(lowest):
            assert report.gap >= report.objective - lowest - 1e-7 * abs(lowest)
        # Without a bound, a solver with a linear rate that stands still does not say so.
        if report.converged or (report.end and solver.linear_rate and report.gap == np.inf):
            return training
    raise AssertionError("not converged in 300 outer iterations")


def precise(solver: str = "owlqn") -> BatchSolver:
    if solver in LOCAL_SOLVERS:
        # Scaling converges slowly if the minimum is flat.
        return LOCAL_SOLVERS[solver](tolerance=9e-7, window=0.0, inner_iterations=50)
    return SOLVERS[solver](tolerance=1e-7, window=0.0)


NOTHING = np.empty(0)
_MINIMA: dict[Hashable, tuple[float, np.ndarray]] = {}


def smooth_minimum(
    problem: Problem, l1: float, l2: float, kind: str = "chain", origin: np.ndarray = NOTHING
) -> tuple[float, np.ndarray]:
    """Return scipy's optimum of theta = plus - minus, plus, minus >= 0 (Kazama & Tsujii 2003).

    Cached for all solvers. origin: centre of the penalty; the optimum is relative to it.
    """
    key = replace(problem, theta=np.empty(0)).contents(), l1, l2, kind, origin.tobytes()
    if key in _MINIMA:
        value, theta = _MINIMA[key]
        return value, theta.copy()
    loss = make_loss(problem, kind)
    working = loss.restrict(loss.coordinates("all"))

    def objective(both):
        plus, minus = np.split(both, 2)
        theta = plus - minus
        value, gradient = working.value_and_grad(theta + (origin if len(origin) else 0.0))
        gradient = gradient + l2 * theta
        total = value + l1 * both.sum() + l2 / 2 * theta @ theta
        return total, np.concatenate((gradient + l1, l1 - gradient))

    start = np.zeros(2 * loss.n_potential)
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-10}
    settings = {"jac": True, "method": "L-BFGS-B", "bounds": [(0.0, None)] * len(start)}
    found = minimize(objective, start, options=options, **settings)
    plus, minus = np.split(found.x, 2)
    _MINIMA[key] = found.fun, plus - minus
    return found.fun, plus - minus


def dense_weights(training: Training, n: int) -> np.ndarray:
    theta = np.zeros(n)
    coordinates, values = training.weights
    theta[coordinates] = values
    return theta


STOCHASTIC = {
    "sgd-l1": (SGDL1(), ElasticNet(0.5, 0.01)),
    "sgd-constant": (SGD(schedule="constant", eta0=0.02), ElasticNet(0.0, 1.0)),
    "sgd-annealed": (SGD(batch=3), ElasticNet(0.0, 1.0)),
    "sgd-exponential": (SGD(schedule="exponential"), ElasticNet(0.0, 1.0)),
    "sgd-pegasos": (SGD(schedule="pegasos"), ElasticNet(0.0, 3.0)),
    "asg": (SGD(schedule="constant", average_from=2), ElasticNet(0.0, 1.0)),
    "smd": (SMD(eta0=0.02), ElasticNet(0.0, 1.0)),
    "adagrad": (AdaGrad(), ElasticNet(0.5, 0.01)),
    "adagrad-l2": (AdaGrad(batch=3), ElasticNet(0.0, 1.0)),
}
