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
from spacy_sparsecrf.training.training import Training

from ..conftest import SHIPPED_CONFIG
from ..reference import random_problem
from ..runs import training_of
from .test_training_loop import run_training

ROOT = Path(__file__).resolve().parents[2]
PROBLEM, _ = random_problem(40, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8, missing=0.05)


def make_run(solver=None, **options) -> Training:
    options = {"l1": 0.3, "l2": 0.1, "n_threads": 1} | options
    solver = OWLQN(inner_iterations=2) if solver is None else solver
    return training_of(PROBLEM.corpus, list("abcd"), solver, **options)


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
    run.save(tmp_path / "run")
    data = (tmp_path / "run").read_bytes()
    middle = len(data) // 2
    changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    np.savez(tmp_path / "arrays.npz", theta=np.zeros(3))
    other = (tmp_path / "arrays.npz").read_bytes()
    model = run.model().to_bytes()
    for bad in b"", b"SPCRF", bytes(100), b"[]" * 100, model, other, changed, data[:middle]:
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(SparseCRFError, match=r"SC318.*start over"):
            make_run().resume(tmp_path / "bad")
    with pytest.raises(SparseCRFError, match="SC318.*directory"):
        make_run().resume(tmp_path)


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
