"""`python -m spacy_sparsecrf tune`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import srsly
from confection import Config
from spacy.util import load_config

from spacy_sparsecrf.analysis.tuning import Encoding, Measured, Trial, TrialPipeline, front
from spacy_sparsecrf.cli.config import make_config

from ..cli.commands import run, run_spacy
from ..conftest import SHIPPED_CONFIG, Corpus, make_corpus

pytestmark = pytest.mark.usefixtures("level_of_the_logger")

FEW = ["--l1", "1,0.3", "--l2", "0.3,1", "--min-freq", "1,2"]
ONE = ["--l1", "1", "--l2", "0.3", "--min-freq", "1"]


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Few training sentences, so that the score depends on the hyperparameters."""
    return make_corpus(tmp_path_factory.mktemp("hard"), 40, 60)


def tune(directory: Path, *arguments: object) -> tuple[list[list[str]], Any, str]:
    """Run the command. RETURNS: cells of its log, the config it wrote, and its output."""
    path = directory / "tuned.cfg"
    text = run("tune", SHIPPED_CONFIG, "-o", path, *arguments).output
    log = text[: text.index("Trade-off")].splitlines()
    rows = [line.split() for line in log if re.search(r"  (path|\d+)  +\d+\.\d\d  ", line)]
    return rows, load_config(path), text


def test_spacy_train_repeats_the_best_trial(tmp_path: Path, hard: Corpus):
    rows, config, text = tune(tmp_path, *FEW, "--templates", "config,@entities", *hard.arguments)
    # Paths with the config's templates, other templates, min_freq = 2, and another l2.
    assert [row[-5] for row in rows[1:9]] == ["path"] * 8
    assert {row[0] for row in rows} == {"config", "@entities"}
    assert {row[1] for row in rows} == {"1", "2"}
    runs = [row for row in rows if row[-5] != "path"]
    assert len(runs) == 4
    best = max(runs, key=lambda row: (float(row[-4]), -float(row[-2])))
    block = config["components"]["sparse_crf"]
    assert [block["l1"], block["l2"]] == [float(best[2]), float(best[3])]
    marked = [line for line in text.splitlines() if f" {best[-5]} * " in line]
    assert len(marked) == 1 and best[-4] in marked[0]
    run_spacy("train", tmp_path / "tuned.cfg", "-o", tmp_path / "out")
    meta = srsly.read_json(tmp_path / "out" / "model-best" / "meta.json")
    assert f"{100 * meta['performance']['tag_acc']:.2f}" == best[-4]
    model = tmp_path / "out" / "model-best" / "sparse_crf" / "model"
    assert f"{model.stat().st_size / 1000:,.1f}" == best[-2]


def test_folds_need_no_development_data(tmp_path: Path, hard: Corpus):
    few = [*ONE, "--folds", "2", "--force", "--paths.train", hard.train_path]
    (first, config, _), (again, _, _) = tune(tmp_path, *few), tune(tmp_path, *few)
    assert [row[:-1] for row in first] == [row[:-1] for row in again]
    assert config["training"]["dev_corpus"] == "corpora.dev"
    other, _, _ = tune(tmp_path, *few, "--seed", "1")
    assert first[0][-4] != other[0][-4]


@pytest.mark.parametrize(("budget", "n_rows"), [("0.001s", 1), ("10m", 2)])
def test_the_best_so_far_is_written(
    budget: str, n_rows: int, tmp_path: Path, hard: Corpus, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(self: TrialPipeline, *arguments: Any) -> Iterator[Any]:
        yield 1.0, Measured(0.5, 1, 1, 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(TrialPipeline, "path", interrupted)
    rows, config, text = tune(tmp_path, *FEW, "--budget", budget, *hard.arguments)
    assert len([row for row in rows if row[-5] != "path"]) == n_rows
    assert ("Interrupted" in text) == (n_rows > 1)
    assert config["components"]["sparse_crf"]["l2"] == 0.3


def test_scheme_and_stages_reach_the_config(tmp_path: Path):
    from spacy_sparsecrf.analysis.tuning import TunableConfig

    text = make_config("ner").replace("= null", '= "x.spacy"', 2)
    tunable = TunableConfig(Config().from_str(text, interpolate=False), 0, 0)
    assert tunable.encoding == Encoding("config", "IOB2", 1)
    trial = Trial(Encoding("config+@tags", "BILUO", 2), 0.5, 3.0, Measured(0.9, 1, 1, 1.0), 0)
    block = tunable.tuned(trial)["components"]["ner"]
    assert block["target"]["scheme"] == "BILUO" and block["learning"]["min_freq"] == 2
    assert block["features"]["templates"] == ["@entities", "@word_labels", "@tags"]


def test_the_front_has_the_best_score_for_each_size():
    own = [(0.9, 5), (0.9, 6), (0.8, 3), (0.7, 3), (0.95, 9), (0.94, 10)]
    trials = [Trial(Encoding("config", None, 1), 1.0, 1.0, Measured(*each, 1, 1.0)) for each in own]
    assert front(trials, lambda trial: trial.measured.size) == {trials[i] for i in (0, 2, 4)}


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("SC714", ["--budget", "10"]),
        ("SC714", ["--budget", "0m"]),
        ("SC716", ["--folds", "1"]),
        ("SC717", ["--paths.dev", "null"]),
        ("SC718", ["--folds", "1000"]),
        ("SC702", ["--l1", "1,0"]),
        ("SC715", ["--l2", "1,x"]),
        ("SC205", ["--l2", "-1"]),
        ("SC205", ["--min-freq", "0"]),
        ("SC715", ["--scheme", "IOB2"]),
        ("SC101", ["--templates", "u:lower"]),
        ("SC106", ["--templates", "@nothing"]),
        ("SC706", ["--training.frozen_components", '["sparse_crf"]']),
        ("SC608", ["-o", SHIPPED_CONFIG]),
    ],
)
def test_bad_options_are_refused(code: str, options: list[str], tmp_path: Path, hard: Corpus):
    own = ["tune", SHIPPED_CONFIG, "-o", tmp_path / "x.cfg", *hard.arguments, *options]
    assert f"[{code}]" in run(*own, code=1).output
    assert not (tmp_path / "x.cfg").exists()
