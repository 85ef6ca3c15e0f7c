"""`python -m spacy_sparsecrf path`."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import load_config

from spacy_sparsecrf.analysis.commands.path import PathReport
from spacy_sparsecrf.analysis.path import PipelinePath

from ..cli.commands import run, run_spacy
from ..conftest import SHIPPED_CONFIG, Corpus, make_corpus
from ..toy import accuracy, docs_of

L1S = [16.0, 4.0, 1.0, 0.25]
FEW = ["--l1", "16,4,1,0.25"]
SGDL1 = "spacy_sparsecrf.SGDL1.v1"


pytestmark = pytest.mark.usefixtures("level_of_the_logger")


def succeed(*arguments: str | Path, config: Path = SHIPPED_CONFIG) -> str:
    output: str = run("path", config, *arguments).output
    return output


def refuse(code: str, *arguments: str | Path, config: Path = SHIPPED_CONFIG) -> str:
    """Run the command, and check that it fails with a coded message and no traceback."""
    output = run("path", config, *arguments, code=1).output
    assert f"[{code}]" in output
    return " ".join(output.split())


def record_in(output: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((output / "path.json").read_text(encoding="utf8"))
    return record


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Few training sentences, so that the score depends on l1."""
    return make_corpus(tmp_path_factory.mktemp("hard"), 40, 60)


@pytest.fixture(scope="module")
def output(hard: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a path with four points."""
    directory = tmp_path_factory.mktemp("path") / "new"
    text = succeed(*FEW, "--output", directory, *hard.arguments)
    (directory / "log").write_text(text, encoding="utf8")
    return directory


def test_the_table_has_a_row_for_each_point(output: Path):
    record = record_in(output)
    points = record["points"]
    assert [point["l1"] for point in points] == L1S
    assert points[record["chosen"]]["converged"]
    weights = [point["active_weights"] for point in points]
    assert weights == sorted(weights)
    assert weights[0] < weights[-1]
    sizes = [point["bytes"] for point in points]
    assert sizes == sorted(sizes)
    assert all(0 < p["active_features"] <= p["active_weights"] for p in points if p["score"] > 0.5)
    best = max(point["score"] for point in points)
    chosen = points[record["chosen"]]
    assert chosen["score"] == best
    assert chosen["bytes"] == min(point["bytes"] for point in points if point["score"] == best)


def test_rows_and_tables_say_the_same(output: Path):
    record = record_in(output)
    points, chosen = record["points"], record["points"][record["chosen"]]
    lines = (output / "log").read_text(encoding="utf8").splitlines()
    rows = [line.split() for line in lines if line.strip().startswith(("16 ", "0.25 "))]
    assert len(rows) == 2
    assert rows[0][2] == f"{points[0]['active_weights']:,}"
    assert rows[0][-2] == f"{100 * points[0]['score']:.2f}"
    lines = (output / "path.md").read_text(encoding="utf8").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows[0] == "| l1 | loss | weights | features | kB | tag_acc | score | s |"
    assert len(rows) == 2 + len(L1S)
    assert [i - 2 for i, row in enumerate(rows) if "**" in row] == [record["chosen"]]
    assert f"**{chosen['active_weights']:,}**" in rows[2 + record["chosen"]]
    assert f"l1 = {chosen['l1']:g}, in bold" in lines[-1]


def test_the_chosen_model_loads_and_scores_as_said(output: Path, hard: Corpus, tmp_path: Path):
    record = record_in(output)
    chosen = record["points"][record["chosen"]]
    nlp = spacy.load(output / "model")
    assert accuracy(nlp, hard.dev) == pytest.approx(chosen["score"])
    assert nlp.config["components"]["sparse_crf"]["l1"] == chosen["l1"]
    assert nlp.get_pipe("sparse_crf").model.n_active == chosen["active_weights"]
    assert (output / "model" / "sparse_crf" / "model").stat().st_size == chosen["bytes"]
    assert nlp.meta["performance"]["tag_acc"] == pytest.approx(chosen["score"])
    assert nlp.meta["performance"]["sparse_crf_loss"] == chosen["objective"]
    run_spacy("evaluate", output / "model", hard.dev_path, "--output", tmp_path / "m.json")
    score = json.loads((tmp_path / "m.json").read_text(encoding="utf8"))["tag_acc"]
    assert score == pytest.approx(chosen["score"])


def test_the_smallest_model_near_the_best(output: Path, tmp_path: Path, hard: Corpus):
    points = record_in(output)["points"]
    within = 100 * (max(point["score"] for point in points) - points[0]["score"]) + 0.01
    options = ["--choose", "smallest", "--within", f"{within}"]
    succeed(*FEW, *options, "--output", tmp_path, *hard.arguments)
    record = record_in(tmp_path)
    assert record["chosen"] == 0
    assert record["choice"]["within"] == pytest.approx(within / 100)
    # Times differ, and the chosen point is trained to convergence; everything else is repeatable.
    for i in {1, 2, 3} - {record_in(output)["chosen"]}:
        assert {**points[i], "seconds": 0} == {**record["points"][i], "seconds": 0}
    assert spacy.load(tmp_path / "model").config["components"]["sparse_crf"]["l1"] == L1S[0]


def test_the_page_has_the_table_and_a_plot(output: Path):
    record = record_in(output)
    page = (output / "path.html").read_text(encoding="utf8")
    n_drawn = sum(point["active_weights"] > 0 for point in record["points"])
    assert page.count("<circle") == n_drawn > 2
    assert all(f">{point['active_weights']:,}</td>" in page for point in record["points"])
    assert f'class="for"><th scope="row">{L1S[record["chosen"]]:.4g}<' in page
    empty = {**record["points"][0], "active_weights": 0}
    assert PathReport({**record, "points": [empty], "chosen": 0}).plot() == ([], [], [])


def test_a_model_that_is_there_is_replaced(
    tmp_path: Path, hard: Corpus, caplog: pytest.LogCaptureFixture
):
    few = ["--l1", "16", "--output", tmp_path, *hard.arguments]
    succeed(*few, "--verbose")
    messages = [r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG]
    assert any(message.startswith("objective ") for message in messages)
    (tmp_path / "model" / "stale").write_text("x", encoding="utf8")
    succeed(*few)
    assert not (tmp_path / "model" / "stale").exists()
    assert not (tmp_path / "model.new").exists()
    assert spacy.load(tmp_path / "model").pipe_names == ["sparse_crf"]


@pytest.mark.parametrize(
    ("method", "n_calls", "shown"),
    [
        ("evaluate", 3, "Interrupted: the path ends at l1 = 4"),
        ("finish", 1, "saved before its training has ended"),
    ],
)
def test_an_interrupted_path_ends_with_the_points_reached(
    method: str,
    n_calls: int,
    shown: str,
    tmp_path: Path,
    hard: Corpus,
    monkeypatch: pytest.MonkeyPatch,
):
    calls, original = [], getattr(PipelinePath, method)

    def interrupted(self: PipelinePath, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == n_calls:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(PipelinePath, method, interrupted)
    assert shown in " ".join(succeed(*FEW, "--output", tmp_path, *hard.arguments).split())
    record = record_in(tmp_path)
    assert [p["l1"] for p in record["points"]] == (L1S[:2] if n_calls == 3 else L1S)
    chosen = record["points"][record["chosen"]]
    assert accuracy(spacy.load(tmp_path / "model"), hard.dev) == pytest.approx(chosen["score"])


def test_max_steps_hold_for_each_point(tmp_path: Path, hard: Corpus):
    with pytest.warns(UserWarning, match="SCW701"):
        one = ["--window", "0", "--training.max_steps", "1"]
        succeed(*FEW, *one, "--output", tmp_path, *hard.arguments)
    points = record_in(tmp_path)["points"]
    assert [point["steps"] for point in points] == [1, 1, 1, 1]
    # The first step is the warm start only, which has no certificate.
    assert points[0]["optimality"] is None and points[1]["optimality"] > 0.0


def test_other_pipes_are_there_and_frozen_ones_run(output: Path, tmp_path: Path, hard: Corpus):
    config = load_config(SHIPPED_CONFIG)
    config["components"]["sentencizer"] = {"factory": "sentencizer"}
    config["components"]["known"] = {"source": str(output / "model"), "component": "sparse_crf"}
    config["nlp"]["pipeline"] = ["sentencizer", "known", "sparse_crf"]
    config["training"]["frozen_components"] = ["known"]
    config.to_disk(tmp_path / "config.cfg")
    succeed("--l1", "4,1", "-o", tmp_path, *hard.arguments, config=tmp_path / "config.cfg")
    nlp = spacy.load(tmp_path / "model")
    assert nlp.pipe_names == ["sentencizer", "known", "sparse_crf"]
    known = spacy.load(output / "model").get_pipe("sparse_crf").model
    assert nlp.get_pipe("known").model.to_bytes() == known.to_bytes()


def changed(tmp_path: Path, change: dict[str, Any]) -> Path:
    """Write the shipped config with changes."""
    load_config(SHIPPED_CONFIG).merge(change).to_disk(tmp_path / "changed.cfg")
    return tmp_path / "changed.cfg"


def with_pipe(factory: str, *names: str) -> dict[str, Any]:
    """Return config changes that add another pipe to the pipeline."""
    return {"nlp": {"pipeline": [*names]}, "components": {"other": {"factory": factory}}}


@pytest.mark.parametrize(
    ("code", "change", "shown"),
    [
        ("SC706", {"training": {"frozen_components": ["sparse_crf"]}}, ""),
        ("SC706", with_pipe("sparse_crf", "sparse_crf", "other"), "sparse_crf, other"),
        ("SC707", with_pipe("senter", "other", "sparse_crf"), "other"),
        ("SC709", {"training": {"score_weights": {"tag_acc": None, "nothing": 1.0}}}, "nothing"),
        ("SC712", {"initialize": {"components": {"sparse_crf": {"checkpoint": "x"}}}}, ""),
    ],
    ids=["no CRF to train", "two of them", "another pipe", "no score", "a checkpoint"],
)
def test_configs_that_are_refused(
    code: str, change: dict[str, Any], shown: str, tmp_path: Path, hard: Corpus
):
    config = changed(tmp_path, change)
    assert shown in refuse(code, *FEW, "-o", tmp_path / "out", *hard.arguments, config=config)


def test_a_corpus_without_gold_is_refused(tmp_path: Path, hard: Corpus):
    docs = docs_of(spacy.blank("xx"), hard.train)
    DocBin(docs=docs, attrs=["TAG"]).to_disk(tmp_path / "bare.spacy")
    bare = ["--paths.train", tmp_path / "bare.spacy", "--paths.dev", hard.dev_path]
    refuse("SC203", *FEW, "-o", tmp_path, *bare)


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("SC702", ["--l1", "2,x"]),
        ("SC702", ["--l1", "2,0"]),
        ("SC703", ["--points", "0"]),
        ("SC704", ["--components.sparse_crf.l1", "0"]),
        ("SC704", ["--components.sparse_crf.l1", "1e9"]),
        ("SC710", ["--within", "0.1"]),
        ("SC710", ["--choose", "smallest", "--within", "-1"]),
        ("SC710", ["--choose", "smallest", "--within", "nan"]),
        ("SC711", ["--l1", "2", "--points", "3"]),
        ("SC713", ["--window", "1"]),
        ("SC713", ["--window", "-0.1"]),
        ("SC713", ["--window", "nan"]),
        ("SC701", [*FEW, "--components.sparse_crf.solver.@crf_solvers", SGDL1]),
    ],
)
def test_bad_options_are_refused(code: str, options: list[str], tmp_path: Path, hard: Corpus):
    refuse(code, *options, "-o", tmp_path, *hard.arguments)


def test_something_else_in_the_place_of_the_model_is_kept(tmp_path: Path, hard: Corpus):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("x", encoding="utf8")
    refuse("SC708", *FEW, "-o", tmp_path, *hard.arguments)
    assert (tmp_path / "model" / "mine").exists()
