"""Runs that are cut off and go on: to the same weights, bit for bit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.model.model import CRFModel
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


STAGES = [{"templates": ["b:", "*:lower[0]"], "steps": 2}, {"templates": ["*"], "steps": 3}]
LOOPS = {
    "OWLQN": {},
    "polished": {"solver": {"polish_iterations": 2}},
    "BCD": {"solver": {"@crf_solvers": "spacy_sparsecrf.BCD.v1"}},
    "stages": {"learning": {"schedule": STAGES}},
    "two models": {"learning": {"stack": {"folds": 2}}, "templates": ["u:first[0]"]},
    "out of core": {"initialize": {"corpus_dir": "corpus"}},
    "stream": {
        "solver": {"@crf_solvers": "spacy_sparsecrf.SGDL1.v1", "on_batches": True},
        "training": {
            "eval_frequency": 3,
            "batcher": {"@batchers": "spacy.batch_by_sequence.v1", "size": 30},
        },
    },
}


def loop_config(corpus, directory, name, n_steps):
    """The shipped config with few templates, so many steps, and a checkpoint."""
    config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
    pipe, changes = config["components"]["sparse_crf"], LOOPS[name]
    solver = changes.get("solver", {})
    pipe["solver"] = {**({} if "@crf_solvers" in solver else pipe["solver"]), **solver}
    pipe["solver"].setdefault("inner_iterations", 1)
    pipe.update(n_threads=1, learning=changes.get("learning", {}))
    templates = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:lower[-1]"]
    pipe["features"]["templates"] = [*templates, *changes.get("templates", ())]
    config["training"].update({"patience": 0, "max_steps": n_steps, **changes.get("training", {})})
    config["training"]["batcher"].pop("get_length", None)
    places = {"checkpoint": "run", **changes.get("initialize", {})}
    places = {key: str(directory / place) for key, place in places.items()}
    config["initialize"]["components"] = {"sparse_crf": places}
    return config


def files_of(output):
    paths = [path for path in output.rglob("*") if path.is_file()]
    return {str(path.relative_to(output)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupted_run_ends_with_the_same_files(name, corpus, tmp_path):
    """SpaCy's loop counts steps anew: it sees the same rows once more."""
    (tmp_path / "whole").mkdir()
    _, whole = run_training(loop_config(corpus, tmp_path, name, 7), tmp_path / "whole")
    (tmp_path / "run").unlink()
    (tmp_path / "cut").mkdir()
    for n_steps in (1, 4, 7):
        _, rows = run_training(loop_config(corpus, tmp_path, name, n_steps), tmp_path / "cut")
    found, expected = files_of(tmp_path / "cut"), files_of(tmp_path / "whole")
    assert found.keys() == expected.keys()
    assert [file for file in found if found[file] != expected[file]] == []
    assert rows == whole
    assert "model-best/sparse_crf/model" in found


def test_rows_that_were_not_evaluated_before_are_not_known(corpus, tmp_path):
    config = loop_config(corpus, tmp_path, "stream", 4)
    run_training(config)
    config["training"]["eval_frequency"] = 2
    with pytest.raises(SparseCRFError, match="SC223.*of step 3.*eval_frequency"):
        run_training(config)


def test_who_goes_on_without_a_step_has_what_was_reached(corpus, tmp_path):
    config = loop_config(corpus, tmp_path, "OWLQN", 4)
    nlp, _ = run_training(config)
    again = init_nlp(config)
    pipes = [each.get_pipe("sparse_crf") for each in (nlp, again)]
    assert pipes[0].model.to_bytes() == pipes[1].model.to_bytes()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rows.model.x": np.zeros(1, np.uint64)}, "no step x"),
        ({"rows.model.9": np.zeros(1, np.uint64)}, "no step 9"),
        ({"rows.model.1": np.zeros(9, np.uint64)}, "SC318.*step 1: .SC312"),
        ({"rows.losses": np.array([np.nan])}, "losses are not all finite"),
        ({"rows.losses": 7}, "losses is no array"),
        ({"rows.more": np.zeros(1)}, "it has losses, model.1, more"),
    ],
)
def test_rows_of_a_checkpoint_are_checked(tmp_path, monkeypatch, change, reason):
    run, rows = make_run(), checkpoint.Rows()
    run.step()
    rows.add(run.objective)
    rows.models[1] = run.model().to_bytes()
    values = checkpoint.Rows.values
    run.save(tmp_path / "run", rows)
    assert make_run().resume(tmp_path / "run").models == rows.models
    changed = {key.removeprefix("rows."): value for key, value in change.items()}
    monkeypatch.setattr(checkpoint.Rows, "values", lambda self: values(self) | changed)
    run.save(tmp_path / "run", rows)
    with pytest.raises(SparseCRFError, match=reason):
        make_run().resume(tmp_path / "run")


def test_rows_of_other_labels_are_refused(tmp_path):
    run, rows = make_run(), checkpoint.Rows()
    run.step()
    rows.add(run.objective)
    rows.models[1] = CRFModel(["a", "b"]).to_bytes()
    run.save(tmp_path / "run", rows)
    with pytest.raises(SparseCRFError, match="SC318.*step 1 has other labels"):
        make_run().resume(tmp_path / "run")
