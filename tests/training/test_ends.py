"""How a run ends, and what it then says."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.crf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.crf.solvers.hybrid import Hybrid
from spacy_sparsecrf.crf.solvers.newton.newton_cg import NewtonCG
from spacy_sparsecrf.crf.solvers.oeg.oeg import OEG
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.crf.solvers.rprop import RPROP
from spacy_sparsecrf.crf.solvers.sag.sag import SAG
from spacy_sparsecrf.crf.solvers.sgd import SGD
from spacy_sparsecrf.crf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.crf.solvers.smd import SMD
from spacy_sparsecrf.crf.training.run import Run
from spacy_sparsecrf.crf.training.training import Training

from ..reference import Problem, random_problem
from ..support.runs import training_of
from ..support.toy import blank_with, examples_of, train


def ended(
    solver: Any, problem: Problem | None = None, l1: float = 0.0, l2: float = 0.1, most: int = 300
) -> tuple[Training, int]:
    """Train until the run ends; return it, and the number of outer iterations."""
    problem = problem or random_problem(91, 3, [4, 3, 5, 2, 1, 3] * 3)[0]
    training = training_of(problem.corpus, list("abcde")[: problem.n_labels], solver, l1=l1, l2=l2)
    for n in range(1, most + 1):
        report = training.step()
        assert report.converged == training.converged == (report.end == "converged")
        if report.end:
            return training, n
    raise AssertionError(f"not ended in {most} outer iterations")


class Scripted(OWLQN):
    """Reports objectives from a list, then the last one for ever, always far from the optimum."""

    objectives: list[float]

    def step(self, *args: Any) -> Any:
        value = self.objectives.pop(0) if len(self.objectives) > 1 else self.objectives[0]
        return replace(super().step(*args), objective=value, optimality=1.0, converged=False)


class Inexact(Scripted):
    exact = False


@pytest.mark.parametrize(
    ("objectives", "window", "end", "n"),
    [
        ([10, 9, 9], 1e-5, "converged", 4),
        ([10, 9, 9.00001, 8.99999], 1e-5, "converged", 4),
        # Still lines that are not in a row; a rise; a rise to a new level.
        ([10, 9, 9, 9.1, 9, 8, 8], 1e-5, "converged", 8),
        ([10, 9, 9.1, 9.2, 9.3, 9.4, 9.5], 1e-5, "no longer improves", 7),
        ([10, 9, 9.5], 1e-5, "no longer improves", 7),
        ([10, 9, 9.5, 9.4, 9.3, 9.2, 9.1], 1e-5, "no longer improves", 7),
        ([10, 9, 9.5, 9.4, 8, 8], 1e-5, "converged", 7),
        # Rounding at the minimum, with a window of 0.
        ([10, 9, 9 + 2e-15, 9 + 4e-15], 0.0, "converged", 4),
        ([-10, -11, -11], 1e-5, "converged", 4),
        ([10, 9, 9 + 1e-9], 0.0, "no longer improves", 7),
    ],
)
def test_a_rising_objective_is_no_convergence(objectives, window, end, n, monkeypatch):
    monkeypatch.setattr(Run, "_bound", lambda *_: 0.0)
    for kind, known in ((Scripted, end), (Inexact, "no longer improves")):
        solver = kind(window=window, inner_iterations=1)
        solver.objectives = [float(value) for value in objectives]
        training, found = ended(solver)
        assert training.report.end == known
        assert found == n or kind is Inexact


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("l2", [0.01, 0.3])
def test_a_dual_solver_converges_by_its_bound(seed, l2):
    problem, _ = random_problem(200 + seed, 2 + seed % 3, [3, 1, 4, 2], n_values=3)
    training, _ = ended(OEG(), problem, l2=l2, most=2000)
    least = ended(OWLQN(tolerance=1e-8, window=0.0), problem, l2=l2)[0].objective
    report = training.report
    assert report.gap >= report.objective - least - 1e-9
    if report.converged:
        assert report.objective <= least * (1.0 + 1e-3)


@pytest.mark.parametrize("weight", [30.0, 1e3, 1e6])
def test_a_dual_solver_does_not_end_far_from_the_minimum_however_small_l2_is(weight):
    problem, observations = random_problem(200, 2, [3, 1, 4, 2], n_values=3)
    builder = CorpusBuilder()
    builder.add(observations, problem.corpus.labels, np.full(4, weight))
    corpus, runs = builder.build(), []
    for solver in OEG(inner_iterations=1), OWLQN(history=100, tolerance=1e-9, window=0.0):
        training = training_of(corpus, ["a", "b"], solver, l1=0.0, l2=1e-4)
        for _ in range(300):
            if training.step().end:
                break
        runs.append(training)
    least, report = runs[1].objective, runs[0].report
    # It is slow there: most of these runs have not ended.
    assert not report.end or report.objective <= 1.001 * least
    assert report.objective - report.gap <= least * (1.0 + 1e-6)


@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_a_line_search_that_is_used_up_is_no_convergence(l1):
    solver = OWLQN(max_line_search=1, inner_iterations=1)
    training, _ = ended(solver, l1=l1, l2=0.1)
    least = ended(OWLQN(), l1=l1, l2=0.1)[0].objective
    assert training.end == "no longer improves" or training.objective <= 1.001 * least


@pytest.mark.parametrize("solver", [OWLQN, RPROP, SAG, BCD, Hybrid, NewtonCG])
@pytest.mark.parametrize("l2", [1e-4, 1e-2])
def test_no_run_has_converged_far_above_the_minimum(solver, l2):
    for seed in range(300, 304):
        problem, _ = random_problem(seed, 3, [3, 1, 4, 2, 5, 1, 3, 2, 4, 4, 1, 2], n_values=5)
        training, _ = ended(solver(), problem, l2=l2, most=1500)
        least = ended(OWLQN(history=100, tolerance=1e-9, window=0.0), problem, l2=l2, most=1500)[0]
        assert training.end != "converged" or training.objective <= 1.01 * least.objective


@pytest.mark.parametrize(
    ("gap", "end"),
    [(0.5, "no longer improves"), (0.05, "no longer improves"), (0.001, "converged")],
)
def test_solvers_with_a_linear_rate_do_not_converge_by_standing_still(gap, end, monkeypatch):
    class Slow(Scripted):
        linear_rate = True

    monkeypatch.setattr(Run, "_bound", lambda *_: gap)
    solver = Slow(inner_iterations=1)
    solver.objectives = [10.0, 9.0, 9.0]
    assert ended(solver)[0].end == end


@pytest.mark.parametrize("solver", [SGD, SGDL1, AdaGrad, SMD])
def test_solvers_that_are_not_exact_do_not_claim_the_minimum(solver):
    for settings in ({}, {"window": 0.1}, {"tolerance": 1e3}):
        training, _ = ended(solver(**settings))
        assert training.end == "no longer improves" and training.report.gap < np.inf


@pytest.mark.parametrize(
    ("solver", "l2", "line"),
    [
        ("SGD", 1.0, r"sparse_crf: no longer improves, at most [\d.e+-]+ % above the minimum"),
        ("SGD", 0.0, "sparse_crf: no longer improves"),
        ("OWLQN", 1.0, r"sparse_crf: converged, at most [\d.e+-]+ % above the minimum"),
    ],
)
def test_the_log_says_how_a_run_has_ended(corpus, caplog, solver, l2, line):
    own = {"@crf_solvers": f"spacy_sparsecrf.{solver}.v1", "window": 0.02}
    nlp = blank_with(l1=0.0, l2=l2, solver=own)
    train(nlp, examples_of(nlp, corpus.train[:12]), 40)
    assert nlp.get_pipe("sparse_crf").training_run().end
    messages = [record.getMessage() for record in caplog.records]
    assert sum(re.fullmatch(line, message) is not None for message in messages) == 1


def test_a_perceptron_ends_after_a_pass_without_an_error():
    problem, _ = random_problem(93, 3, [1, 1, 1, 1], n_values=50)
    training, n = ended(AveragedPerceptron(), problem, l2=0.0)
    assert training.converged and training._runs[0].state.solver.n_wrong == 0
    assert n == training._runs[0].state.solver.epoch


def test_the_rule_of_stored_gradients_replaces_the_rule_of_the_gradient():
    ends = [
        ended(SAG(stopping=s, tolerance=0.1, window=0.0, inner_iterations=1), l2=1.0)[1]
        for s in ("gradient", "memory")
    ]
    assert ends[0] != ends[1]


@pytest.mark.parametrize(("seed", "l1"), [(1, 0.001), (2, 0.01)])
@pytest.mark.parametrize("solver", [OWLQN, Hybrid, BCD])
def test_a_small_l1_lowers_the_tolerance(solver, seed, l1):
    problem, _ = random_problem(300 + seed, 3, [4, 3, 5, 2] * 3, n_values=4)
    training, _ = ended(solver(window=0.0), problem, l1=l1, l2=0.0, most=2000)
    least = ended(OWLQN(tolerance=1e-5, window=0.0), problem, l1=l1, l2=0.0)[0].objective
    assert training.objective <= least * 1.001
