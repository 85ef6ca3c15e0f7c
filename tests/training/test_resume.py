"""Interrupted runs of every type resume to the same weights, bit for bit, and no others do."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.solvers.rprop import RPROP
from spacy_sparsecrf.training.run import Polish

from ..features.reference_values import random_value_problem
from ..reference import random_problem
from ..runs import training_of
from ..solvers.test_solvers import ALL_SOLVERS
from . import test_clusters, test_stages
from .learning_cases import partial_problem
from .test_prior import labels_of, prior_of

PROBLEM, _ = random_problem(40, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8, missing=0.05)
STRANGE, _ = random_problem(41, 4, [9, 8])


def plain(problem: Any = PROBLEM, solver: Any = None, n_threads: int = 1, **options: Any) -> Any:
    solver = solver or OWLQN(inner_iterations=2)
    options = {"l1": 0.3, "l2": 0.1, "n_threads": n_threads} | options
    return training_of(problem.corpus, list("abcd"), solver, **options)


def clusters(solver: str, l1: float, n_threads: int = 1, clusters: int = 3) -> Any:
    problem, _ = test_clusters.make_problem(missing=0.1)
    made = ALL_SOLVERS[solver](inner_iterations=2, tolerance=1e-2)
    return test_clusters.make_training(problem, clusters, made, l1=l1, n_threads=n_threads)


def stages(solver: Any, n_threads: int = 1, **options: Any) -> Any:
    options = {"steps": (2, 2, 3), "require": "any", "l1": 1.0} | options
    made = test_stages.make_problem(), solver(inner_iterations=2)
    return test_stages.make_run(problem=made[0], solver=made[1], n_threads=n_threads, **options)[0]


def around(with_prior: bool = True, n_threads: int = 1) -> Any:
    problem, _ = random_problem(407, 3, [5, 4, 0, 6, 1, 3] * 2)
    prior = prior_of(problem)[0] if with_prior else None
    own = {"l1": 0.3, "l2": 0.5, "prior": prior, "dtype": "float64", "n_threads": n_threads}
    return training_of(problem.corpus, labels_of(3), OWLQN(window=0.0), **own)


@dataclass
class ResumeCase:
    """A type of run, and the numbers of steps after which it is interrupted.

    repeated: the number of these steps that a resumed run repeats, as it repeats its stage.
    """

    make: Callable[..., Any]
    n_steps: tuple[int, ...] = (1, 3)
    repeated: Callable[[int], int] = lambda n_steps: 0

    def advance(self, run: Any, number: int) -> object:
        return run.step()


def valid(**options: Any) -> Any:
    problem = partial_problem(226, 4, [6, 4, 5, 3] * 3, n_values=4, constrained=True)
    weights = np.array([1.0, 0.5, 3.0, 1.0])
    return plain(problem, **{"valid": problem.valid, "label_weights": weights, **options})


CASES = {
    "plain": ResumeCase(plain),
    "valid": ResumeCase(valid),
    "real values": ResumeCase(partial(plain, random_value_problem(8, 4, [6, 4, 7, 3] * 3)[0])),
    "prior": ResumeCase(around),
    **{
        f"polished, {solver.__name__}": ResumeCase(
            partial(plain, solver=solver(), l1=0.5, l2=1e-3, polish=Polish(5))
        )
        for solver in (OWLQN, RPROP, BCD)
    },
    **{
        f"clusters, {solver}, {l1}": ResumeCase(partial(clusters, solver, l1), (1, 4, 12))
        for solver in ("owlqn", "gis", "scgis")
        for l1 in (0.1, 0.0)
    },
    **{
        f"stages, {solver.__name__}, {admit}": ResumeCase(
            partial(stages, solver, admit=admit), (3, 4, 5), lambda n_steps: (n_steps - 1) % 2 + 1
        )
        for solver in (OWLQN, BCD)
        for admit in ("features", "labels")
    },
}


@pytest.mark.parametrize(
    ("name", "n_steps"), [(name, n) for name, case in CASES.items() for n in case.n_steps]
)
def test_a_resumed_run_ends_with_the_same_weights(name: str, n_steps: int, tmp_path: Path):
    case = CASES[name]
    plain, whole, later = (case.make(n_threads=n) for n in (1, 1, 2))
    for i in range(n_steps):
        case.advance(plain, i)
        case.advance(whole, i)
        whole.model()  # Creating or saving a model has no effect on the run.
    whole.save(tmp_path / "run")
    if "polished" in name:
        # Steps before a run is resumed have no effect either.
        case.advance(later, 0)
        later.model()
    later.resume(tmp_path / "run")
    for i in range(n_steps - case.repeated(n_steps), n_steps):
        case.advance(later, i)
    assert later.progress == whole.progress
    later.save(tmp_path / "again")
    files = ((tmp_path / each).read_bytes() for each in ("run", "again"))
    assert len(set(files)) == 1
    assert later.model().to_bytes() == whole.model().to_bytes()
    for i in range(n_steps, n_steps + 4):
        case.advance(plain, i)
        assert case.advance(later, i) == case.advance(whole, i)
    assert whole.model().n_active > 0
    for run in (later, plain):
        assert run.model().to_bytes() == whole.model().to_bytes()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("plain", {"l1": 0.4}),
        ("plain", {"l2": 0.2}),
        ("plain", {"precision": "float32"}),
        ("plain", {"kind": "memm"}),
        ("plain", {"solver": OWLQN(history=3)}),
        ("plain", {"problem": STRANGE}),
        ("valid", {"valid": None}),
        ("valid", {"label_weights": np.array([1.0, 0.5, 2.0, 1.0])}),
        ("valid", {"observed_only": True}),
        ("prior", {"with_prior": False}),
        ("clusters, owlqn, 0.1", {"clusters": 2}),
        ("stages, OWLQN, features", {"require": "all"}),
        ("stages, OWLQN, features", {"steps": (2, 2, 2)}),
        ("stages, OWLQN, features", {"admit": "labels"}),
    ],
)
def test_another_run_is_refused(name: str, changes: dict, tmp_path: Path):
    run = CASES[name].make()
    run.save(tmp_path / "run")
    assert not list(tmp_path.iterdir())  # A run that has not begun leaves no file.
    for i in range(CASES[name].n_steps[0]):
        CASES[name].advance(run, i)
    run.save(tmp_path / "run")
    with pytest.raises(SparseCRFError, match="SC316.*of another run"):
        CASES[name].make(**changes).resume(tmp_path / "run")


def test_rules_that_end_a_run_may_differ(tmp_path: Path):
    run = plain()
    run.step()
    run.save(tmp_path / "run")
    later = plain(solver=OWLQN(inner_iterations=4, tolerance=1e-5, tolerance_gap=1e-3, window=0.0))
    later.resume(tmp_path / "run")
    assert later.objective == run.objective
    while not later.step().converged:
        pass
