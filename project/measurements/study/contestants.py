"""The contestants: solvers with their settings, and the problems they run on."""

import inspect
from dataclasses import dataclass, field, replace
from typing import Any

from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.solver import BatchSolver
from spacy_sparsecrf.registry import crf_solvers

# lambda = 1 / n of Schmidt et al. (2015) for the mean loss equals l2 = 1 for the sum.
SMOOTH = ElasticNet(0.0, 1.0)
# Lavergne et al. (2010), section 5.
SPARSE = ElasticNet(0.5, 1e-5)


@dataclass(frozen=True)
class Contestant:
    """A solver with settings.

    name: in tables; solver: registered name without prefix and version; source: the paper;
    objective: whether it minimises our objective; longer: factor of the study's time limit, above 1
    if a paper's claim depends on it; tuned: a setting to choose from `values`, "" for none, by the
    best training objective as in Schmidt et al. (2015); warm: whether it begins with the solver's
    warm start.
    """

    name: str
    solver: str
    settings: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    objective: bool = True
    longer: float = 1.0
    tuned: str = ""
    values: tuple[float, ...] = ()
    warm: bool = False

    def variants(self) -> list["Contestant"]:
        """Return a contestant for each of the values."""
        return [
            replace(self, settings={**self.settings, self.tuned: value}, tuned="", values=())
            for value in self.values
        ]

    def make(self, **limits: Any) -> BatchSolver:
        """Create the solver; limits: the study's common settings, used if the solver has them."""
        make = crf_solvers.get(f"spacy_sparsecrf.{self.solver}.v1")
        known = inspect.signature(make).parameters
        common = {key: value for key, value in limits.items() if key in known}
        solver: BatchSolver = make(**{**common, **self.settings})
        return solver


_LAVERGNE, _SCHMIDT = "Lavergne 2010", "Schmidt 2015"
_TSUBOI, _VISHWANATHAN, _GOODMAN = "Tsuboi 2011", "Vishwanathan 2006", "Goodman 2002"

_LONGER = 4.0
_POWERS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# A report of this solver is ten passes; the first pass may raise the objective.
_OEG = {"inner_iterations": 10}

# Without l1. The first contestant is the baseline.
SMOOTH_RACE = (
    Contestant("L-BFGS", "OWLQN", {"variant": "classic", "history": 5}, "all", longer=_LONGER),
    Contestant("L-BFGS, diagonal", "OWLQN", {}, "ours", longer=_LONGER),
    Contestant("Newton-CG", "NewtonCG", {}, _TSUBOI),
    Contestant("RPROP+", "RPROP", {}, "Wapiti"),
    Contestant("BCD", "BCD", {}, _LAVERGNE),
    Contestant("SAG-NUS*", "SAG", {"sampling": "nus*"}, _SCHMIDT, longer=_LONGER),
    Contestant("SAG-NUS", "SAG", {"sampling": "nus"}, _SCHMIDT),
    Contestant("SAG", "SAG", {"sampling": "uniform"}, _SCHMIDT),
    Contestant("SAGA-NUS", "SAG", {"sampling": "nus*", "method": "saga"}, _SCHMIDT),
    Contestant("SAGA, two draws", "SAG", {"method": "saga2"}, _SCHMIDT),
    Contestant("SGD", "SGD", {}, _VISHWANATHAN),
    Contestant("SGD, constant", "SGD", {"schedule": "constant"}, _VISHWANATHAN),
    Contestant("SGD, averaged", "SGD", {"schedule": "constant", "average_from": 1}, _SCHMIDT),
    Contestant("Pegasos", "SGD", {"schedule": "pegasos"}, _SCHMIDT, tuned="eta0", values=_POWERS),
    Contestant("AdaGrad", "AdaGrad", {}, _SCHMIDT),
    Contestant("SMD", "SMD", {}, _VISHWANATHAN, tuned="eta0", values=_POWERS),
    Contestant("OEG", "OEG", _OEG, "Collins 2008"),
    Contestant("hybrid", "Hybrid", {}, _SCHMIDT, longer=_LONGER),
)
SPARSE_RACE = (
    Contestant("OWL-QN, as published", "OWLQN", {"variant": "classic", "history": 5}, _LAVERGNE),
    Contestant("OWL-QN", "OWLQN", {}, "ours"),
    Contestant("OWL-QN, warm start", "OWLQN", {}, "ours", warm=True),
    Contestant("RPROP+", "RPROP", {}, "Wapiti"),
    Contestant("BCD", "BCD", {}, _LAVERGNE),
    Contestant("SGD-L1", "SGDL1", {}, _LAVERGNE),
    Contestant("AdaGrad, proximal", "AdaGrad", {}, _SCHMIDT),
    Contestant("SAG-NUS*, proximal", "SAG", {"sampling": "nus*"}, "Defazio 2014"),
    Contestant("hybrid", "Hybrid", {}, _SCHMIDT),
)
LOCAL_RACE = (
    Contestant("L-BFGS", "OWLQN", {"variant": "classic", "history": 5}, "all"),
    Contestant("GIS", "GIS", {}, _GOODMAN),
    Contestant("SCGIS", "SCGIS", {"by_feature": False}, _GOODMAN),
    Contestant("SCGIS, by feature", "SCGIS", {}, _GOODMAN),
)
# The perceptron does not minimise the objective: only its errors are compared.
PERCEPTRON = Contestant("perceptron", "Perceptron", {}, _VISHWANATHAN, objective=False)


@dataclass(frozen=True)
class Race:
    """Contestants on one problem.

    data: name of a data set; kind: type of the model; observed_only: whether only observed pairs of
    attribute and label have weights.
    """

    data: str
    penalty: ElasticNet
    contestants: tuple[Contestant, ...]
    kind: str = "chain"
    observed_only: bool = False

    @property
    def name(self) -> str:
        """The name of the race's file and plot."""
        return f"{self.data}-{'l1' if self.penalty.l1 else 'l2'}"


_SMOOTH = (*SMOOTH_RACE, PERCEPTRON)
RACES = (
    Race("conll2000", SMOOTH, _SMOOTH, observed_only=True),
    Race("conll2002-es", SMOOTH, _SMOOTH, observed_only=True),
    Race("ocr", SMOOTH, _SMOOTH),
    Race("nettalk", SMOOTH, _SMOOTH),
    Race("conll2000", SPARSE, SPARSE_RACE, observed_only=True),
    Race("nettalk", SPARSE, SPARSE_RACE),
    Race("nettalk-maxent", SMOOTH, LOCAL_RACE, kind="maxent"),
)
