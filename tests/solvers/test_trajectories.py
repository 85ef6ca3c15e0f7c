"""Each solver repeats its recorded steps, so that changed update rules are noticed.

`python -m tests.solvers.test_trajectories` records them again.
"""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.crf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.crf.solvers.hybrid import Hybrid
from spacy_sparsecrf.crf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.crf.solvers.sgd import SCHEDULES, SGD
from spacy_sparsecrf.crf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.crf.solvers.smd import SMD

from ..reference import random_problem
from ..support.golden import read_golden
from ..support.minimisers import ALL_SOLVERS, kind_of
from ..support.runs import training_of
from ..support.solver_cases import METHODS

GOLDEN = "trajectories.jsonl"
SAG = ALL_SOLVERS["sag"]
# Stochastic solvers by name; DESCENT lists those without a memory of gradients.
STOCHASTIC: dict[str, Any] = {
    f"{method}-{sampling}": partial(ALL_SOLVERS["sag"], method=method, sampling=sampling)
    for method, sampling in METHODS
}
DESCENT: dict[str, Any] = {
    **{f"sgd-{name}": partial(SGD, schedule=name, batch=2) for name in SCHEDULES},
    "sgd-averaged": partial(SGD, schedule="constant", eta0=0.1, average_from=1),
    "sgd-averaged-late": partial(SGD, schedule="constant", eta0=0.1, average_from=2),
    "sgd-l1": SGDL1,
    "sgd-l1-given": partial(SGDL1, eta0=0.1),
    "adagrad": partial(AdaGrad, batch=2),
    "smd": SMD,
    "perceptron": AveragedPerceptron,
}
BATCH: dict[str, Any] = {
    name: make for name, make in ALL_SOLVERS.items() if not name.startswith("sag")
}
BATCH["bcd-common"] = partial(ALL_SOLVERS["bcd"], common=True)
BATCH["bcd-bold"] = partial(ALL_SOLVERS["bcd"], kappa=0.01)
BATCH["hybrid-slow"] = partial(Hybrid, first_share=0.3, growth=1.2)
# Without l1.
SMOOTH = {f"{name}-smooth": ALL_SOLVERS[name] for name in ("owlqn", "rprop+", "bcd")}


def trajectory(name: str) -> Iterator[list[float]]:
    """Yield objective, certificate, passes and a projection of the weights after each step."""
    make, kind = (BATCH | SMOOTH | STOCHASTIC | DESCENT)[name], kind_of(name)
    l1 = 0.0 if {"no l1"} & make().requires or name.endswith("smooth") else 0.3
    l2 = 0.0 if name == "perceptron" else 0.5
    problem, _ = random_problem(7, 3, [4, 1, 5, 2, 3], weighted=kind == "chain", n_values=4)
    settings = {"inner_iterations": 5, "seed": 1}
    known = {field.name for field in fields(make()) if field.init}
    solver = make(**{key: value for key, value in settings.items() if key in known})
    start = replace(solver.warm_start, epochs=2, seed=1)
    options = {"l1": l1, "l2": l2, "kind": kind, "warm_start": start if l1 else None}
    training = training_of(problem.corpus, ["a", "b", "c"], solver, **options)
    for _ in range(5 if name in BATCH | SMOOTH else 3):
        report = training.step()
        # Checkpoints have all values that a step changes.
        for state in (run.state.solver for run in training._runs):
            assert vars(state).keys() == {field.name for field in fields(state)}
        coordinates, values = training.weights
        yield [
            *(report.objective, report.optimality, min(report.gap, 1e9), report.passes),
            *(float(len(values)), float(np.cos(coordinates) @ values)),
        ]


@pytest.mark.parametrize("name", BATCH | SMOOTH | STOCHASTIC | DESCENT)
def test_solvers_take_recorded_steps(name):
    recorded = dict(read_golden(__file__, GOLDEN))
    np.testing.assert_allclose([*trajectory(name)], recorded[name], rtol=1e-6, atol=1e-7)


if __name__ == "__main__":
    names = [*BATCH, *SMOOTH, *STOCHASTIC, *DESCENT]
    rows = (json.dumps([name, [*trajectory(name)]]) + "\n" for name in names)
    Path(__file__).with_name(GOLDEN).write_text("".join(rows), encoding="utf8")
