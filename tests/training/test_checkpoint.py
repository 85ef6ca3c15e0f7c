"""Runs that are cut off and go on: to the same weights, bit for bit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.util import load_config

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training import checkpoint
from spacy_sparsecrf.training.training import Training

from ..conftest import SHIPPED_CONFIG
from ..reference import random_problem
from ..solvers.test_solvers import (
    ALL_SOLVERS,
    kind_of,
    skip_where_labels_are_missing,
    skip_where_refused,
)
from .test_training_loop import run_training

ROOT = Path(__file__).resolve().parents[2]
PROBLEM, _ = random_problem(40, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8, missing=0.05)


def make_run(solver=None, **options) -> Training:
    options = {"l1": 0.3, "l2": 0.1, "n_threads": 1} | options
    solver = OWLQN(inner_iterations=2) if solver is None else solver
    return Training(PROBLEM.corpus, list("abcd"), solver, **options)


@pytest.mark.parametrize("solver", ALL_SOLVERS)
@pytest.mark.parametrize("l1", [0.3, 0.0])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_run_goes_on_to_the_same_weights(tmp_path, solver, l1, n_steps):
    skip_where_refused(solver, l1)
    skip_where_labels_are_missing(solver, 0.05)
    make, options = ALL_SOLVERS[solver], {"l1": l1, "kind": kind_of(solver)}
    path = tmp_path / "run"
    whole = make_run(make(inner_iterations=2), **options)
    for _ in range(n_steps):
        whole.step()
    whole.save(path)
    later = make_run(make(inner_iterations=2), n_threads=2, **options)
    later.resume(path)
    assert later.objective == whole.objective
    assert later.model().to_bytes() == whole.model().to_bytes()
    for _ in range(4):
        assert later.step() == whole.step()
    np.testing.assert_array_equal(later.weights[0], whole.weights[0])
    np.testing.assert_array_equal(later.weights[1], whole.weights[1])


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


@pytest.mark.parametrize("n_saved", [1, 4])
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path, n_saved):
    path = tmp_path / "run"
    command = [sys.executable, "-c", _CHILD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 1}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as child:
        for _ in range(n_saved):
            child.stdin.write("step\n")
            assert child.stdout.readline() == "saved\n"
        child.stdin.write("step\n")
        # Wherever it is in that, or while it writes.
        child.kill()
    later, whole = make_run(), make_run()
    later.resume(path)
    for _ in range(n_saved):
        whole.step()
    if whole.objective != later.objective:
        # It was done.
        whole.step()
    assert whole.objective == later.objective
    for _ in range(3):
        assert later.step() == whole.step()
    np.testing.assert_array_equal(later.weights[1], whole.weights[1])


def test_a_run_that_has_not_begun_leaves_no_file(tmp_path):
    make_run().save(tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "differing"),
    [
        ({"l1": 0.4}, "l1"),
        ({"l2": 0.2}, "l2"),
        ({"precision": "float32"}, "precision"),
        ({"kind": "memm"}, "kind"),
        ({"solver": OWLQN(history=3)}, "solver"),
    ],
)
def test_the_run_of_other_settings_is_refused(tmp_path, options, differing):
    run = make_run()
    run.step()
    run.save(tmp_path / "run")
    with pytest.raises(SparseCRFError, match=f"SC316.*run: {differing}.* differ"):
        make_run(**options).resume(tmp_path / "run")


def test_the_run_of_another_corpus_is_refused(tmp_path):
    run = make_run()
    run.step()
    run.save(tmp_path / "run")
    problem, _ = random_problem(41, 4, [9, 8])
    other = Training(problem.corpus, list("abcd"), OWLQN(inner_iterations=2), l1=0.3, l2=0.1)
    with pytest.raises(SparseCRFError, match="SC316.*corpus.* differ"):
        other.resume(tmp_path / "run")


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


def test_values_come_back_as_they_were(tmp_path):
    values = {
        "floats": np.array([[0.1, -np.inf], [np.nan, 1e-320]]),
        "narrow": np.array([0.1], np.float32),
        "ints": np.array([-3, 2**62]),
        "small": np.array([-3], np.int32),
        "flags": np.array([True, False]),
        "empty": np.empty((0, 3)),
        "infinite": np.inf,
        "count": 7,
        "flag": True,
    }
    checkpoint.save(tmp_path / "deep" / "file", {}, values)
    with checkpoint.loaded(tmp_path / "deep" / "file", {}) as found:
        pass
    assert found.keys() == values.keys()
    for name, value in values.items():
        assert type(found[name]) is type(value)
        np.testing.assert_array_equal(found[name], value)
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype
            assert found[name].shape == value.shape
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


def test_spacy_train_goes_on_from_the_checkpoint_of_the_config(corpus, tmp_path):
    def config_of(n_steps, path):
        config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
        config["components"]["sparse_crf"]["n_threads"] = 1
        config["components"]["sparse_crf"]["solver"]["inner_iterations"] = 1
        config["training"].update(max_steps=n_steps, patience=0, eval_frequency=1)
        config["initialize"]["components"] = {"sparse_crf": {"checkpoint": str(path)}}
        return config

    for name in "abc":
        (tmp_path / name).mkdir()
    run_training(config_of(5, tmp_path / "whole"), tmp_path / "a")
    # After `max_steps` steps spaCy does one more.
    run_training(config_of(2, tmp_path / "cut"), tmp_path / "b")
    run_training(config_of(2, tmp_path / "cut"), tmp_path / "c")
    whole, cut = (spacy.load(tmp_path / name / "model-last") for name in "ac")
    models = [nlp.get_pipe("sparse_crf").model.to_bytes() for nlp in (whole, cut)]
    assert models[0] == models[1]
