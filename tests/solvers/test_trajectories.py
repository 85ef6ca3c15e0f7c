"""Each solver takes the recorded steps: a change of a rule of its steps changes trained models.

`python -m tests.solvers.test_trajectories` records them again.
"""

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.solvers.sgd import SCHEDULES, SGD
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.solvers.smd import SMD
from spacy_sparsecrf.training.training import Training

from ..golden import read_golden
from ..reference import random_problem
from .cases import METHODS, SAMPLINGS
from .test_solvers import ALL_SOLVERS, kind_of

GOLDEN = "trajectories.jsonl"
SAG = ALL_SOLVERS["sag"]
# Solvers, and the kind of the penalty that they minimise.
CASES: dict[str, Any] = {name: (make, kind_of(name)) for name, make in ALL_SOLVERS.items()}
CASES |= {
    f"{method}-{sampling}": (partial(SAG, method=method, sampling=sampling), "chain")
    for method in METHODS
    for sampling in SAMPLINGS
}
CASES |= {f"sgd-{name}": (partial(SGD, schedule=name, batch=2), "chain") for name in SCHEDULES}
CASES |= {
    "sgd-averaged": (partial(SGD, schedule="constant", eta0=0.1, average_from=1), "chain"),
    "sgd-l1": (SGDL1, "chain"),
    "sgd-l1-given": (partial(SGDL1, eta0=0.1), "chain"),
    "adagrad": (partial(AdaGrad, batch=2), "chain"),
    "smd": (SMD, "chain"),
    "perceptron": (AveragedPerceptron, "chain"),
}


def trajectory(name: str) -> Iterator[list[float]]:
    """The objective, its certificate, passes and a projection of the weights after each step."""
    make, kind = CASES[name]
    l1 = 0.0 if {"no l1"} & make().requires else 0.3
    l2 = 0.0 if name == "perceptron" else 0.5
    problem, _ = random_problem(7, 3, [4, 1, 5, 2, 3], weighted=kind == "chain", n_values=4)
    settings = {"inner_iterations": 5, "warm_start_epochs": 2, "seed": 1}
    known = {field.name for field in fields(make()) if field.init}
    solver = make(**{key: value for key, value in settings.items() if key in known})
    training = Training(problem.corpus, ["a", "b", "c"], solver, l1=l1, l2=l2, kind=kind)
    for _ in range(4):
        report = training.step()
        coordinates, values = training.weights
        yield [
            *(report.objective, report.optimality, min(report.gap, 1e9), report.passes),
            *(float(len(values)), float(np.cos(coordinates) @ values)),
        ]


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_that_were_recorded(name: str) -> None:
    recorded = dict(read_golden(__file__, GOLDEN))
    assert recorded.keys() == CASES.keys()
    np.testing.assert_allclose([*trajectory(name)], recorded[name], rtol=1e-6, atol=1e-7)


if __name__ == "__main__":
    rows = (json.dumps([name, [*trajectory(name)]]) + "\n" for name in CASES)
    Path(__file__).with_name(GOLDEN).write_text("".join(rows), encoding="utf8")
