"""Interrupted runs of every type resume to the same weights, bit for bit, and no others do."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.training.initialize import init_nlp

from spacy_sparsecrf.crf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.rprop import RPROP
from spacy_sparsecrf.crf.solvers.sag.sag import SAG
from spacy_sparsecrf.crf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.crf.training import checkpoint
from spacy_sparsecrf.crf.training.run import Polish
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..reference import random_problem
from ..support.cluster_cases import make_problem, make_training
from ..support.learning_cases import LABELS, partial_problem, prior_of
from ..support.minimisers import ALL_SOLVERS
from ..support.reference_values import random_value_problem
from ..support.runs import config_for, run_training, training_of

PROBLEM, _ = random_problem(40, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8, missing=0.05)
STRANGE, _ = random_problem(41, 4, [9, 8])


def plain(problem: Any = PROBLEM, solver: Any = None, n_threads: int = 1, **options: Any) -> Any:
    solver = solver or OWLQN(inner_iterations=2)
    options = {"l1": 0.3, "l2": 0.1, "n_threads": n_threads} | options
    return training_of(problem.corpus, list("abcd"), solver, **options)


# With few complete sequences, a warm start may be worse than zero weights.
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW341")


def clusters(solver: str, l1: float, n_threads: int = 1, clusters: int = 3) -> Any:
    problem, _ = make_problem(missing=0.1)
    made = ALL_SOLVERS[solver](inner_iterations=2, tolerance=1e-2)
    return make_training(problem, clusters, made, l1=l1, n_threads=n_threads)


def around(with_prior: bool = True, n_threads: int = 1) -> Any:
    problem, _ = random_problem(407, 3, [5, 4, 0, 6, 1, 3] * 2)
    prior = prior_of(problem)[0] if with_prior else None
    own = {"l1": 0.3, "l2": 0.5, "prior": prior, "dtype": "float64", "n_threads": n_threads}
    return training_of(problem.corpus, LABELS, OWLQN(window=0.0), **own)


def valid(**options: Any) -> Any:
    problem = partial_problem(226, 4, [6, 4, 5, 3] * 3, n_values=4, constrained=True)
    weights = np.array([1.0, 0.5, 3.0, 1.0])
    return plain(problem, **{"valid": problem.valid, "label_weights": weights, **options})


# Types of runs, and the numbers of steps after which they are interrupted.
CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "plain": (plain, (1, 3)),
    "valid": (valid, (1, 3)),
    "real values": (partial(plain, random_value_problem(8, 4, [6, 4, 7, 3] * 3)[0]), (1, 3)),
    "prior": (around, (1, 3)),
}
for each in (OWLQN, RPROP, BCD):
    make = partial(plain, solver=each(), l1=0.5, l2=1e-3, polish=Polish(5))
    CASES[f"polished, {each.__name__}"] = make, (1, 3)
for name, l1 in product(("owlqn", "gis", "scgis"), (0.1, 0.0)):
    CASES[f"clusters, {name}, {l1}"] = partial(clusters, name, l1), (1, 4, 12)


@pytest.mark.parametrize(
    ("name", "n_steps"), [(name, n) for name, (_, numbers) in CASES.items() for n in numbers]
)
def test_a_resumed_run_ends_with_the_same_weights(name, n_steps, tmp_path):
    plain, whole, later = (CASES[name][0](n_threads=n) for n in (1, 1, 2))
    for _ in range(n_steps):
        plain.step()
        whole.step()
        whole.model()  # Creating or saving a model has no effect on the run.
    whole.save(tmp_path / "run")
    if "polished" in name:
        # Steps before a run is resumed have no effect either.
        later.step()
        later.model()
    later.resume(tmp_path / "run")
    assert later.objective == whole.objective
    later.save(tmp_path / "again")
    assert (tmp_path / "run").read_bytes() == (tmp_path / "again").read_bytes()
    assert later.model().to_bytes() == whole.model().to_bytes()
    for _ in range(4):
        plain.step()
        assert later.step() == whole.step()
    assert whole.model().n_active > 0
    for run in (later, plain):
        assert run.model().to_bytes() == whole.model().to_bytes()


OTHERS: dict[str, list[dict[str, Any]]] = {
    "plain": [{"l1": 0.4}, {"l2": 0.2}, {"precision": "float32"}, {"kind": "memm"}],
    "valid": [{"valid": None}, {"observed_only": True}],
    "prior": [{"with_prior": False}],
    "clusters, owlqn, 0.1": [{"clusters": 2}],
}
OTHERS["plain"] += [{"solver": OWLQN(history=3)}, {"problem": STRANGE}]
OTHERS["valid"] += [{"label_weights": np.array([1.0, 0.5, 2.0, 1.0])}]


@pytest.mark.parametrize(
    ("name", "changes"), [(name, own) for name, changes in OTHERS.items() for own in changes]
)
def test_another_run_is_refused(name, changes, tmp_path):
    make, numbers = CASES[name]
    run = make()
    run.save(tmp_path / "run")
    assert not list(tmp_path.iterdir())  # A run that has not begun leaves no file.
    for _ in range(numbers[0]):
        run.step()
    run.save(tmp_path / "run")
    with pytest.raises(SparseCRFError, match="SC316.*of another run"):
        make(**changes).resume(tmp_path / "run")


def test_rules_that_end_a_run_may_differ(tmp_path):
    run = plain()
    run.step()
    run.save(tmp_path / "run")
    later = plain(solver=OWLQN(inner_iterations=4, tolerance=1e-5, tolerance_gap=1e-3, window=0.0))
    later.resume(tmp_path / "run")
    assert later.objective == run.objective
    while not later.step().converged:
        pass


ROOT = Path(__file__).resolve().parents[2]
_CHILD = """
import sys
from pathlib import Path
from tests.training.test_resume import plain

run = plain()
for _ in sys.stdin:
    run.step()
    run.save(Path(sys.argv[1]))
    print("saved", flush=True)
"""


def test_a_killed_run_goes_on_to_the_same_weights(tmp_path):
    path, n_saved = tmp_path / "run", 4
    command = [sys.executable, "-c", _CHILD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 1}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as child:
        for _ in range(n_saved):
            child.stdin.write("step\n")
            assert child.stdout.readline() == "saved\n"
        child.stdin.write("step\n")
        # Kill it at any point of the step, or while it writes.
        child.kill()
    later, whole = plain(), plain()
    later.resume(path)
    for _ in range(n_saved):
        whole.step()
    if whole.objective != later.objective:
        # The killed process had finished its step.
        whole.step()
    assert whole.objective == later.objective
    for _ in range(3):
        assert later.step() == whole.step()
    np.testing.assert_array_equal(later.weights[1], whole.weights[1])


def test_files_that_are_no_checkpoint_are_refused(tmp_path):
    run = plain()
    run.step()
    run.save(tmp_path / "run")
    data = (tmp_path / "run").read_bytes()
    middle = len(data) // 2
    changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    np.savez(tmp_path / "arrays.npz", theta=np.zeros(3))
    other = (tmp_path / "arrays.npz").read_bytes()
    model = run.model().to_bytes()
    np.savez_compressed(tmp_path / "arrays.npz", theta=np.zeros(1 << 20))
    bomb = (tmp_path / "arrays.npz").read_bytes()
    for bad in b"", b"SPCRF", bytes(100), b"[]" * 100, model, other, changed, data[:middle], bomb:
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(SparseCRFError, match=r"SC318.*start over"):
            plain().resume(tmp_path / "bad")
    with pytest.raises(SparseCRFError, match="SC318.*directory"):
        plain().resume(tmp_path)


@pytest.mark.parametrize(
    ("solver", "name", "value"),
    [
        (OWLQN, "0.coordinates", lambda a: a + 10**9),
        (OWLQN, "0.coordinates", lambda a: a - a[0] - 1),
        (OWLQN, "0.coordinates", lambda a: a[::-1]),
        (OWLQN, "0.coordinates", lambda a: np.append(a[:-1], a[-2])),
        (OWLQN, "0.coordinates", lambda a: a.astype(np.int32)),
        (OWLQN, "0.coordinates", lambda a: a[None]),
        (OWLQN, "0.coordinates", lambda a: a[:-1]),
        (OWLQN, "0.n_idle", str),
        (OWLQN, "0.end", lambda _: 0),
        (OWLQN, "0.solver.theta", lambda a: a[:-1]),
        (OWLQN, "0.solver.theta", lambda a: a.astype(np.float32)),
        (OWLQN, "0.solver.theta", lambda a: a * np.nan),
        (OWLQN, "0.solver.gradient", lambda a: np.append(a, 0.0)),
        (OWLQN, "0.solver.steps", lambda a: a[:, 1:]),
        (OWLQN, "0.solver.steps", lambda a: a[1:]),
        (OWLQN, "0.solver.steps", lambda _: 1),
        (OWLQN, "0.solver.products", lambda a: a[:, 1:]),
        (BCD, "0.solver.kappa", lambda a: a[:1]),
        (SAG, "0.solver.nodes", lambda a: a[1:]),
        (SAG, "0.solver.pairs", lambda a: a[..., 1:]),
        (SAG, "0.solver.curvatures", lambda a: a[:1]),
        (SAG, "0.solver.curvatures", lambda a: a - 1e9),
        (SAG, "0.solver.curvatures", lambda a: np.full_like(a, np.inf)),
        (SGDL1, "0.solver.received", lambda a: a[None]),
        (SGDL1, "0.solver.epoch", lambda _: [1, 2]),
    ],
)
def test_crafted_checkpoints_are_refused(solver, name, value, tmp_path):
    """With the right digest, but values that would be indices or lengths of arrays."""
    run = plain(solver=solver(inner_iterations=2))
    run.step()
    run.save(tmp_path / "run")
    values = checkpoint.load(tmp_path / "run", run.identity)
    checkpoint.save(tmp_path / "run", run.identity, {**values, name: value(values[name])})
    with pytest.raises(SparseCRFError, match=r"SC318.*start over"):
        plain(solver=solver(inner_iterations=2)).resume(tmp_path / "run")


LOOPS = {
    "OWLQN": {},
    "two models": {"learning": {"stack": {"folds": 2}}, "templates": ["u:first[0]"]},
}


def loop_config(corpus, directory, name, n_steps):
    """Return the shipped config with few templates, n_steps steps, and a checkpoint."""
    config = config_for(corpus, patience=0, max_steps=n_steps)
    pipe, changes = config["components"]["sparse_crf"], LOOPS[name]
    pipe["solver"].setdefault("inner_iterations", 1)
    pipe["learning"] = changes.get("learning", {})
    templates = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:lower[-1]"]
    pipe["features"]["templates"] = [*templates, *changes.get("templates", ())]
    config["initialize"]["components"] = {"sparse_crf": {"checkpoint": str(directory / "run")}}
    return config


@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupted_run_goes_on_from_its_last_step(name, corpus, tmp_path):
    """The first row of a resumed run repeats the last one of the interrupted run."""
    for folder in ("whole", "cut", "rest"):
        (tmp_path / folder).mkdir()
    _, whole = run_training(loop_config(corpus, tmp_path, name, 5), tmp_path / "whole")
    (tmp_path / "run").unlink()
    nlp, first = run_training(loop_config(corpus, tmp_path, name, 3), tmp_path / "cut")
    with pytest.warns(SparseCRFWarning, match="SCW229"):
        again = init_nlp(loop_config(corpus, tmp_path, name, 3))  # without a step
    reached = [each.get_pipe("sparse_crf").model.to_bytes() for each in (nlp, again)]
    assert reached[0] == reached[1]
    with pytest.warns(SparseCRFWarning, match="SCW229.*another --output"):
        _, rows = run_training(loop_config(corpus, tmp_path, name, 2), tmp_path / "rest")
    assert [row[2:] for row in first] == [row[2:] for row in whole[: len(first)]]
    assert [row[2:] for row in rows] == [row[2:] for row in whole[len(first) - 1 :]]
    models = [tmp_path / name / "model-last/sparse_crf/model" for name in ("whole", "rest")]
    assert models[0].read_bytes() == models[1].read_bytes()
