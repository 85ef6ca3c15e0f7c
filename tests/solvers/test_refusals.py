"""Solvers refuse problems that they do not support, before any work."""

import numpy as np
import pytest

from spacy_sparsecrf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.solvers.base import BatchSolver
from spacy_sparsecrf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.solvers.gis.gis import GIS
from spacy_sparsecrf.solvers.gis.scgis import SCGIS
from spacy_sparsecrf.solvers.hybrid import Hybrid
from spacy_sparsecrf.solvers.newton.newton_cg import NewtonCG
from spacy_sparsecrf.solvers.oeg.oeg import OEG
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.solvers.rprop import RPROP
from spacy_sparsecrf.solvers.sag.sag import SAG
from spacy_sparsecrf.solvers.sgd import SGD
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.solvers.smd import SMD

from ..reference import random_problem
from ..runs import training_of


@pytest.mark.parametrize(
    ("solver", "l1", "l2", "code"),
    [
        (NewtonCG(), 0.5, 1.0, "SC308"),
        (SGD(), 0.5, 1.0, "SC308"),
        (SMD(), 0.5, 1.0, "SC308"),
        (OEG(), 0.5, 1.0, "SC308"),
        (OEG(), 0.0, 0.0, "SC309"),
        (AveragedPerceptron(), 0.5, 0.0, "SC308"),
        (AveragedPerceptron(), 0.0, 0.1, "SC336"),
        (SGD(schedule="pegasos"), 0.0, 0.0, "SC309"),
        (GIS(), 0.5, 1.0, "SC340"),
        (SCGIS(), 0.5, 1.0, "SC340"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BatchSolver) else None,
)
def test_problems_that_a_solver_does_not_minimise_are_refused(solver, l1, l2, code):
    problem, _ = random_problem(31, 3, [4, 3])
    with pytest.raises(SparseCRFError, match=f"{code}.*{type(solver).__name__}"):
        training_of(problem.corpus, list("abc"), solver, l1=l1, l2=l2).step()


NAN = float("nan")


# Settings shared by all solvers: see `check_solver`.
@pytest.mark.parametrize(
    ("make", "values"),
    [
        (OWLQN, {"history": 0, "max_line_search": -1, "window": NAN}),
        (RPROP, {"grow": 0.9, "shrink": -0.1, "first_width": 0.0, "largest_width": 0.01}),
        (Hybrid, {"growth": 0.9, "first_share": -0.1, "history": 0}),
        (NewtonCG, {"stored": -2, "xi": -0.1, "max_cg": 0}),
        (SGD, {"batch": 0, "decay": -1.0, "average_from": -1}),
        (SGDL1, {"eta0": -1.0, "decay": -1.0}),
        (AdaGrad, {"delta": 0.0, "eta0": NAN, "batch": 0}),
        (SMD, {"eta0": 0.0, "mu": -1.0, "batch": 0}),
        (SAG, {"grow": 1.0, "revisit": -0.5, "fresh": 0.0, "first_curvature": NAN}),
        (SAG, {"least_norm": -1.0}),
        (OEG, {"first_step": 0.0, "grow": 0.9, "gold": -1.0}),
        (BCD, {"kappa": 0.0}),
    ],
)
def test_settings_out_of_range_are_refused_by_name(make, values):
    for key, value in values.items():
        with pytest.raises(SparseCRFError, match=f"SC306.*{key}"):
            make(**{key: value})


@pytest.mark.parametrize(
    ("make", "key", "known"),
    [
        (SGD, "schedule", "'pegasos'"),
        (SAG, "sampling", r"'uniform', 'nus', 'nus\*'"),
        (SAG, "method", "'saga'"),
        (SAG, "stopping", "'gradient', 'memory'"),
    ],
)
def test_unknown_choices_are_refused_with_those_known(make, key, known):
    with pytest.raises(SparseCRFError, match=f"SC325.*{key} = 'other'.*{known}"):
        make(**{key: "other"})


def test_a_start_whose_gradient_is_not_finite_is_refused():
    problem, _ = random_problem(93, 3, [6, 4, 7, 5, 8], n_bigram=3)
    loss = ChainLoss(problem.corpus, 3, Workers(1))
    working = loss.restrict(loss.all_coordinates())
    theta = 150.0 * problem.theta
    value, gradient = working.value_and_grad(theta)
    assert np.isfinite(value) and not np.isfinite(gradient).all()
    with pytest.raises(SparseCRFError, match="SC307"):
        OWLQN().start(working, ElasticNet(0.1, 0.1), theta)


def test_a_corpus_without_sequences_is_refused():
    with pytest.raises(SparseCRFError, match="SC302.*no sequences"):
        CorpusBuilder().build()


def test_settings_have_names_and_solvers_are_not_compared():
    for make in crf_solvers.get_all().values():
        assert make() != make()
        # A weight that enters the working set starts at zero.
        assert make().columns["theta"] == 0.0
        with pytest.raises(TypeError, match="positional"):
            make(1)
