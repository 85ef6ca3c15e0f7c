"""Solvers refuse problems that they do not support, before any work."""

from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.solver import BatchSolver
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.registry import crf_solvers

from ..reference import random_problem
from ..support.learning_cases import prior_of
from ..support.runs import training_of
from ..support.solver_cases import working_loss


def made(name: str, **settings: Any) -> BatchSolver:
    solver: BatchSolver = crf_solvers.get(f"spacy_sparsecrf.{name}.v1")(**settings)
    return solver


PRIOR, _ = prior_of(random_problem(31, 3, [4, 3])[0])


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        *((name, {"l1": 0.5}, "SC308") for name in ("NewtonCG", "SGD", "SMD", "OEG")),
        ("OEG", {"l2": 0.0}, "SC309"),
        ("Perceptron", {"l1": 0.5, "l2": 0.0}, "SC308"),
        ("Perceptron", {"l2": 0.1}, "SC336"),
        ("SGD pegasos", {"l2": 0.0}, "SC309"),
        *((name, {"l1": 0.5}, "SC340.*NewtonCG") for name in ("GIS", "SCGIS")),
        ("Perceptron", {"l2": 0.0, "valid": np.ones((4, 4), np.bool_)}, "SC359"),
        ("Perceptron", {"l2": 0.0, "prior": PRIOR}, "SC366"),
        ("OEG", {"prior": PRIOR}, "SC366"),
        ("GIS", {"kind": "memm", "prior": PRIOR}, "SC366"),
    ],
)
def test_problems_that_a_solver_does_not_minimise_are_refused(name, options, code):
    problem, _ = random_problem(31, 3, [4, 3])
    name, *schedule = name.split()
    solver = made(name, **({"schedule": schedule[0]} if schedule else {}))
    code, *others = code.split(".*")
    with pytest.raises(SparseCRFError, match=".*".join([code, name, *others])):
        options = {"l1": 0.0, "l2": 1.0, **options}
        training_of(problem.corpus, list("abc"), solver, **options).step()


def test_a_mask_without_a_path_of_some_length_is_refused_before_training():
    problem, _ = random_problem(31, 2, [1, 2, 1])
    problem.corpus.labels[:] = -1
    problem.corpus.labels[0] = 0
    # Either label may begin and end a sequence, and b may follow a, but nothing follows b.
    valid = np.ones((3, 3), np.bool_)
    valid[:2, :2] = [[False, True], [False, False]]
    with pytest.raises(SparseCRFError, match="SC404.*no sequence of 3 tokens"):
        training_of(problem.corpus, list("ab"), made("OWLQN"), l1=0.1, l2=0.1, valid=valid)


NAN = float("nan")


# Settings shared by all solvers: see `check_solver`.
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("OWLQN", {"history": 0, "max_line_search": -1, "window": NAN}),
        ("RPROP", {"grow": 0.9, "shrink": -0.1, "first_width": 0.0}),
        ("Hybrid", {"growth": 0.9, "first_share": -0.1, "history": 0}),
        ("NewtonCG", {"stored": -2, "xi": -0.1}),
        ("SGD", {"batch": 0, "eta0": -1.0, "average_from": -1}),
        ("SGDL1", {"eta0": -1.0, "decay": -1.0}),
        ("AdaGrad", {"delta": 0.0, "eta0": NAN, "batch": 0}),
        ("SMD", {"eta0": 0.0, "mu": -1.0, "batch": 0}),
        ("OEG", {"gold": -1.0}),
        ("BCD", {"kappa": 0.0}),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name, values):
    for key, value in values.items():
        with pytest.raises(SparseCRFError, match=f"SC306.*{key}"):
            made(name, **{key: value})


@pytest.mark.parametrize(
    ("name", "key", "known"),
    [
        ("SGD", "schedule", "'pegasos'"),
        ("SAG", "sampling", r"'uniform', 'nus', 'nus\*'"),
        ("OWLQN", "variant", "'steep', 'plain', 'classic'"),
        ("SAG", "method", "'saga'"),
        ("SAG", "stopping", "'gradient', 'memory'"),
    ],
)
def test_unknown_choices_are_refused_with_those_known(name, key, known):
    with pytest.raises(SparseCRFError, match=f"SC325.*{key} = 'other'.*{known}"):
        made(name, **{key: "other"})


def test_a_start_whose_gradient_is_not_finite_and_a_corpus_without_sequences_are_refused():
    problem, _ = random_problem(93, 3, [6, 4, 7, 5, 8], n_bigram=3)
    working, theta = working_loss(problem, by_example=False), 150.0 * problem.theta
    value, gradient = working.value_and_grad(theta)
    assert np.isfinite(value) and not np.isfinite(gradient).all()
    with pytest.raises(SparseCRFError, match="SC307"):
        made("OWLQN").start(working, ElasticNet(0.1, 0.1), theta)
    with pytest.raises(SparseCRFError, match="SC302.*no sequences"):
        CorpusBuilder().build()


def test_settings_have_names_and_solvers_are_not_compared():
    for make in crf_solvers.get_all().values():
        assert make() != make()
        # A weight that enters the working set starts at zero.
        assert make().columns["theta"] == 0.0
        with pytest.raises(TypeError, match="positional"):
            make(1)
