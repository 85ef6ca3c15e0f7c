"""Training runs of the stochastic solvers: saved and resumed, and on any number of threads."""

import numpy as np
import pytest

from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.training.training import Training

from ..reference import random_problem
from .test_sgd import SOLVERS

RUNS = {**SOLVERS, "perceptron": (AveragedPerceptron(), ElasticNet(0.0, 0.0))}
PROBLEM, _ = random_problem(110, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8, missing=0.02)


def make_run(name: str, n_threads: int) -> Training:
    solver, penalty = RUNS[name]
    options = {"l1": penalty.l1, "l2": penalty.l2, "n_threads": n_threads}
    return Training(PROBLEM.corpus, list("abcd"), solver, **options)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_to_the_same_weights_on_any_number_of_threads(name, tmp_path):
    whole = make_run(name, 1)
    for _ in range(2):
        whole.step()
    whole.save(tmp_path / "run")
    later, again = make_run(name, 2), make_run(name, 3)
    later.resume(tmp_path / "run")
    for _ in range(2):
        again.step()
    for _ in range(3):
        assert later.step() == whole.step() == again.step()
    for other in (later, again):
        np.testing.assert_array_equal(other.weights[0], whole.weights[0])
        np.testing.assert_array_equal(other.weights[1], whole.weights[1])
    assert len(whole.weights[0]) > 0
