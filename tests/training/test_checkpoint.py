"""Interrupted runs resume to the same weights, bit for bit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training import checkpoint
from spacy_sparsecrf.training.training import Training

from ..conftest import SHIPPED_CONFIG
from ..reference import random_problem
from .test_training_loop import run_training

ROOT = Path(__file__).resolve().parents[2]
PROBLEM, _ = random_problem(40, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8, missing=0.05)


def make_run(solver=None, **options) -> Training:
    options = {"l1": 0.3, "l2": 0.1, "n_threads": 1} | options
    solver = OWLQN(inner_iterations=2) if solver is None else solver
    return Training(PROBLEM.corpus, list("abcd"), solver, **options)


_CHILD = """
import sys
from pathlib import Path
from tests.training.test_checkpoint import PROBLEM, make_run

run = make_run()
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
    later, whole = make_run(), make_run()
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
    run = make_run()
    run.step()
    (tmp_path / "model").write_bytes(run.model().to_bytes())
    with pytest.raises(SparseCRFError, match="SC315"):
        make_run().resume(tmp_path / "model")
    run.save(tmp_path / "run")
    data = (tmp_path / "run").read_bytes()
    (tmp_path / "run").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SparseCRFError, match="SC318.*digest"):
        make_run().resume(tmp_path / "run")


LOOPS = {
    "OWLQN": {},
    "two models": {"learning": {"stack": {"folds": 2}}, "templates": ["u:first[0]"]},
}


def loop_config(corpus, directory, name, n_steps):
    """Return the shipped config with few templates, n_steps steps, and a checkpoint."""
    config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
    pipe, changes = config["components"]["sparse_crf"], LOOPS[name]
    pipe["solver"].setdefault("inner_iterations", 1)
    pipe.update(n_threads=1, learning=changes.get("learning", {}))
    templates = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:lower[-1]"]
    pipe["features"]["templates"] = [*templates, *changes.get("templates", ())]
    config["training"].update({"patience": 0, "max_steps": n_steps})
    config["initialize"]["components"] = {"sparse_crf": {"checkpoint": str(directory / "run")}}
    return config


@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupted_run_goes_on_from_its_last_step(name, corpus, tmp_path):
    """The first row of a resumed run repeats the last one of the interrupted run."""
    for folder in ("whole", "cut", "rest"):
        (tmp_path / folder).mkdir()
    _, whole = run_training(loop_config(corpus, tmp_path, name, 6), tmp_path / "whole")
    (tmp_path / "run").unlink()
    _, first = run_training(loop_config(corpus, tmp_path, name, 4), tmp_path / "cut")
    with pytest.warns(SparseCRFWarning, match="SCW229.*another --output"):
        _, rows = run_training(loop_config(corpus, tmp_path, name, 2), tmp_path / "rest")
    assert [row[2:] for row in first] == [row[2:] for row in whole[: len(first)]]
    assert [row[2:] for row in rows] == [row[2:] for row in whole[len(first) - 1 :]]
    models = [tmp_path / name / "model-last/sparse_crf/model" for name in ("whole", "rest")]
    assert models[0].read_bytes() == models[1].read_bytes()


def test_who_goes_on_without_a_step_has_what_was_reached(corpus, tmp_path):
    config = loop_config(corpus, tmp_path, "OWLQN", 4)
    nlp, _ = run_training(config)
    with pytest.warns(SparseCRFWarning, match="SCW229"):
        again = init_nlp(config)
    pipes = [each.get_pipe("sparse_crf") for each in (nlp, again)]
    assert pipes[0].model.to_bytes() == pipes[1].model.to_bytes()


SLOW = {"inner_iterations": 1, "tolerance": 0.0, "window": 0.0, "history": 1}


def stepped_rows(path: Path, n: int = 1) -> tuple[Training, checkpoint.EvaluationLog]:
    """Return a run with a model recorded after each step, saved."""
    run, rows = make_run(OWLQN(**SLOW)), checkpoint.EvaluationLog()
    for i in range(n):
        run.step()
        rows.add(run.objective)
        rows.models[i + 1] = run.model().to_bytes()
        run.save(path, rows)
    return run, rows


def resumed_rows(path: Path) -> checkpoint.EvaluationLog:
    return make_run(OWLQN(**SLOW)).resume(path)


def test_models_of_rows_are_written_once(tmp_path):
    path, sizes, models = tmp_path / "run", [], []
    run, rows = stepped_rows(path)
    for _ in range(8):
        run.step()
        rows.add(run.objective)
        models.append(run.model().to_bytes())
        rows.models[len(rows.losses)] = models[-1]
        run.save(path, rows)
        sizes.append((path.stat().st_size, (tmp_path / "run.rows").stat().st_size))
    assert not rows.models and sizes[-1][0] < sizes[2][0] + 1_000
    new = np.diff([size for _, size in sizes])
    assert (new < np.array([len(model) for model in models[1:]]) + 500).all()
    found = resumed_rows(path)
    assert found.losses == rows.losses and not found.models
    found.done = 1
    for model in models:
        assert found.is_replayed
        found.replay()
        assert found.model().to_bytes() == model


@pytest.mark.parametrize("behind", [b"", b"cut off behind the last step that counts"])
def test_what_is_behind_the_rows_that_count_is_overwritten(tmp_path, behind):
    whole, rows = stepped_rows(tmp_path / "run", 2)
    with (tmp_path / "run.rows").open("ab") as file:
        file.write(behind)
    later = make_run(OWLQN(**SLOW))
    found = later.resume(tmp_path / "run")
    for run, own in (later, found), (whole, rows):
        run.step()
        own.add(run.objective)
        run.save(tmp_path / "run", own)
        assert resumed_rows(tmp_path / "run").losses == own.losses
    assert found.losses == rows.losses
    assert found.size == rows.size and found.hashed.digest() == rows.hashed.digest()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "run.rows beside it: No such file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "run.rows beside it is cut off"),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), "run.rows beside it is cut"),
        (lambda path: path.write_bytes(b"\xff" * path.stat().st_size), "run.rows beside it is cut"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\1"), "its digest does not fit"),
    ],
)
def test_damaged_rows_are_refused(tmp_path, damage, reason):
    stepped_rows(tmp_path / "run", 2)
    damage(tmp_path / "run.rows")
    with pytest.raises(SparseCRFError, match=f"SC318.*{reason}"):
        resumed_rows(tmp_path / "run")
