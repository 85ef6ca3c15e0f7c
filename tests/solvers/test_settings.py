"""Every setting of every solver changes the model or the end of a run, or says that it does not."""

import warnings
from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest

from spacy_sparsecrf.crf.solvers.owlqn import OWLQN, VARIANTS
from spacy_sparsecrf.crf.solvers.sgd import SCHEDULES
from spacy_sparsecrf.crf.solvers.solver import BatchSolver
from spacy_sparsecrf.crf.solvers.warm_start import WarmStart
from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.registry import crf_solvers

from ..reference import random_problem
from ..support.runs import training_of
from ..support.solver_cases import METHODS

CHOICES = {
    "variant": VARIANTS,
    "schedule": SCHEDULES,
    "method": sorted({method for method, _ in METHODS}),
    "sampling": ("uniform", "nus", "nus*"),
    "stopping": ("gradient", "memory"),
}
# Large enough to end a run.
CHANGED: dict[str, Any] = {"tolerance": 1e3, "tolerance_gap": 0.9, "window": 0.3}
CHANGED |= {"max_line_search": 1, "history": 1, "xi": 0.5, "average_from": 1, "gold": 1.0}
CHANGED |= {"eta0": 0.03, "first_share": 0.5, "decay": 0.5, "later_iterations": 2}
# Settings of memory and time.
OF_SPEED = {"stored"}


def outcome(solver: BatchSolver, l1: float, l2: float, **options: Any) -> Any:
    """Return weights and objectives of a run of at most 150 outer iterations, and its warnings."""
    kind = "maxent" if "single tokens" in solver.requires else "chain"
    problem, _ = random_problem(
        65, 3, [4, 3, 5, 2, 1, 3] * 2, n_values=4, n_bigram=0 if kind == "maxent" else 2
    )
    rows: list[Any] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", SparseCRFWarning)
        run = training_of(problem.corpus, list("abc"), solver, l1=l1, l2=l2, kind=kind, **options)
        while len(rows) < 150 and not run.end:
            report = run.step()
            rows.append((report.objective, report.passes))
    return run.model().to_bytes(), rows, sorted({str(each.message)[:8] for each in told})


def changed(solver: BatchSolver, key: str) -> list[Any]:
    value = getattr(solver, key)
    if key in CHANGED:
        return [CHANGED[key]]
    if key in CHOICES:
        return [other for other in CHOICES[key] if other != value]
    return [not value] if isinstance(value, bool) else [value * 2 if value else 1]


# With short outer iterations, runs have many.
SOLVERS: dict[str, BatchSolver] = {
    name.split(".")[1]: make(inner_iterations=1) for name, make in crf_solvers.get_all().items()
}
usual = cache(outcome)


@pytest.mark.parametrize(
    ("name", "key"),
    [(n, own.name) for n in SOLVERS for own in fields(SOLVERS[n]) if own.init],
)
@pytest.mark.parametrize("penalty", [(0.0, 0.3), (0.2, 0.3), (0.2, 0.0)])
def test_every_setting_has_an_effect_or_a_message(name, key, penalty):
    solver = SOLVERS[name]
    l1 = 0.0 if "no l1" in solver.requires else penalty[0]
    l2 = 0.0 if "no l2" in solver.requires else penalty[1]
    if key in OF_SPEED or (penalty[0] > 0.0 and "no l1" in solver.requires):
        return
    effects = []
    # The first trial of a line search succeeds on most problems.
    for scale in (1.0, 0.1, 0.01) if key == "max_line_search" else (1.0,):
        penalty = scale * l1, scale * l2
        expected = usual(solver, *penalty)
        assert not expected[2]
        for value in changed(solver, key):
            model, rows, told = outcome(replace(solver, **{key: value}), *penalty)
            effects.append(told == ["[SCW342]"] if told else (model, rows) != expected[:2])
    assert any(effects) if key == "max_line_search" else all(effects)


@pytest.mark.parametrize("key", [own.name for own in fields(WarmStart)])
@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_every_setting_of_the_warm_start_has_an_effect_or_a_message(key, l1):
    value = {"epochs": 5, "averaged": False, "seed": 1, "evaluated": False}[key]
    start = replace(OWLQN.warm_start, **{key: value})
    expected = outcome(OWLQN(), l1, 0.3)
    model, rows, told = outcome(OWLQN(), l1, 0.3, warm_start=start)
    assert not expected[2] and told == ([] if l1 else ["[SCW342]"])
    assert ((model, rows) != expected[:2]) == (l1 > 0.0)
