"""`python -m spacy_sparsecrf tune`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy
from confection import Config
from spacy.tokens import DocBin
from spacy.util import load_config

from spacy_sparsecrf.errors import Errors, SparseCRFError
from spacy_sparsecrf.tools.analysis import search
from spacy_sparsecrf.tools.analysis.search import EncodedPipeline, Trial, TunableConfig, choose
from spacy_sparsecrf.tools.cli.config import make_config

from ..conftest import SHIPPED_CONFIG, Corpus, make_corpus
from ..support.commands import run
from ..support.toy import docs_of

pytestmark = pytest.mark.usefixtures("level_of_the_logger")

FEW = ["--l1", "0.3,1", "--l2", "0.3,1"]
ONE = ["--l1", "1", "--l2", "0.3"]
SGDL1 = "spacy_sparsecrf.SGDL1.v1"


@pytest.fixture(scope="module")
def hard(tmp_path_factory) -> Corpus:
    """Few training sentences, so that the score depends on the hyperparameters."""
    return make_corpus(tmp_path_factory.mktemp("hard"), 40, 60)


def tune(directory: Path, *arguments: object) -> tuple[list[list[str]], Any, str]:
    """Run the command. RETURNS: cells of its table, the config it wrote, and its output."""
    path = directory / "tuned.cfg"
    text = run("tune", SHIPPED_CONFIG, "-o", path, *arguments).output
    rows = [line.split() for line in text.splitlines() if re.search(r" \d+\.\d\d  .*\.\d$", line)]
    return rows, load_config(path), text


def test_each_l2_is_tried_along_falling_l1(tmp_path, hard):
    rows, config, text = tune(tmp_path, *FEW, *hard.arguments)
    assert [row[-5] for row in rows] == ["1", "0.3"] * 2
    assert [row[0] for row in rows] == [f"{trial}/4" for trial in range(1, 5)]
    used = [int(row[1]) for row in rows]
    assert used == sorted(used) and "4 trials, at most 600 s" in text
    # Each l2 is printed once, above its path; the config's own is first.
    l2s = re.findall(r"l2 (\S+)\n(?:    trial.*\n)? +(\d)/4", text)
    assert l2s == [("0.3", "1"), ("1.0", "3")]
    ranks = [(float(row[-4]), -float(row[-2].replace(",", ""))) for row in rows]
    i_best = max(range(4), key=lambda i: ranks[i])
    best = rows[i_best]
    block = config["components"]["sparse_crf"]
    assert [block["l1"], block["l2"]] == [float(best[-5]), float(l2s[i_best // 2][0])]
    assert f"the best score: {best[-4]}" in text
    weights = [int(row[-3].replace(",", "")) for row in rows]
    assert all(a < b for a, b in zip(weights[::2], weights[1::2], strict=True))


def test_a_model_is_trained_from_the_one_before(hard, tmp_path):
    checkpoint = str(tmp_path / "run")
    config = load_config(SHIPPED_CONFIG, interpolate=False).merge(
        {
            "paths": {"train": str(hard.train_path), "dev": str(hard.dev_path)},
            "initialize": {"components": {"sparse_crf": {"checkpoint": checkpoint}}},
        }
    )
    tunable = TunableConfig(config, 0, 0)
    [pipeline] = tunable.encode(0.1, 1.0)
    reports: list[Any] = []
    last = pipeline.train(0.3, 1.0, None, reports.append)
    n_steps = len(reports)
    again = pipeline.train(0.3, 1.0, last, reports.append)
    # Already converged: an iteration shows it.
    assert len(reports) - n_steps <= 2 < n_steps
    assert pipeline.score(again) == pytest.approx(pipeline.score(last), abs=0.01)
    lower = pipeline.train(0.1, 1.0, last, reports.append)
    assert lower.n_active > last.n_active
    assert not list(tmp_path.iterdir())
    assert config["initialize"]["components"]["sparse_crf"]["checkpoint"] == checkpoint


def test_folds_need_no_development_data(tmp_path, hard):
    few = [*ONE, "--folds", "2", "--force", "--paths.train", hard.train_path]
    (first, config, _), (again, _, _) = tune(tmp_path, *few), tune(tmp_path, *few)
    # The first cells have the seconds that were used, the last one those of the trial.
    assert [row[3:-1] for row in first] == [row[3:-1] for row in again]
    assert config["training"]["dev_corpus"] == "corpora.dev"
    other, _, _ = tune(tmp_path, *few, "--seed", "1")
    assert first[0][-4] != other[0][-4]


@pytest.mark.parametrize(("options", "shown"), [((), "Interrupted"), (("0.001s",), "budget")])
def test_the_best_so_far_is_written(options, shown, tmp_path, hard, monkeypatch):
    def interrupted(*arguments: Any, **receivers: Any) -> Iterator[Trial]:
        found = original(*arguments, **receivers)
        yield next(found)
        if not options:
            raise KeyboardInterrupt
        yield from found

    original = search.search
    monkeypatch.setattr(search, "search", interrupted)
    budget = [part for each in options for part in ("--budget", each)]
    rows, config, text = tune(tmp_path, *FEW, *budget, *hard.arguments)
    assert len(rows) == 1 and shown in text
    assert config["components"]["sparse_crf"]["l1"] == 1.0


def test_a_value_that_fails_is_left_out(tmp_path, hard, monkeypatch):
    def train(self: EncodedPipeline, l1: float, l2: float, *arguments: Any) -> Any:
        if l2 == 1.0:
            raise SparseCRFError(Errors.SC705.format(l1=l1, objective=float("inf")))
        return original(self, l1, l2, *arguments)

    original = EncodedPipeline.train
    monkeypatch.setattr(EncodedPipeline, "train", train)
    rows, _, text = tune(tmp_path, *FEW, *hard.arguments)
    assert len(rows) == 2 and "left out: [SC705]" in text


def test_penalties_of_a_first_stage_do_not_change():
    text = make_config("ner_documents").replace("= null", '= "x.spacy"', 2)
    tunable = TunableConfig(Config().from_str(text, interpolate=False), 0, 0)
    block = tunable.with_penalty(0.5, 3.0)["components"]["ner"]
    assert (block["l1"], block["l2"]) == (0.5, 3.0)
    stack = block["learning"]["stack"]
    assert (stack["l1"], stack["l2"]) == (tunable.filled["l1"], tunable.filled["l2"])


def test_the_smallest_model_near_the_best_is_chosen():
    own = [(0.9, 5), (0.9, 6), (0.8, 3), (0.7, 3), (0.95, 9), (0.95, 10)]
    trials = [Trial(1.0, 1.0, score, size, 1, 1.0) for score, size in own]
    assert choose(trials) == trials[4]
    assert choose(trials, 0.06) == trials[0]
    assert choose(trials, 1.0) == trials[2]


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("SC614", ["--budget", "10"]),
        ("SC614", ["--budget", "0m"]),
        ("SC614", ["--folds", "1"]),
        ("SC717", ["--paths.dev", "null"]),
        ("SC614", ["--folds", "1000"]),
        ("SC614", ["--l1", "1,0"]),
        ("SC614", ["--components.sparse_crf.l1", "0"]),
        ("SC614", ["--within", "-1"]),
        ("SC614", ["--within", "nan"]),
        ("SC614", ["--l1", "2,x"]),
        ("SC614", ["--l2", "1,x"]),
        ("SC205", ["--l2", "-1"]),
        ("SC706", ["--training.frozen_components", '["sparse_crf"]']),
        ("SC701", ["--components.sparse_crf.solver.@crf_solvers", SGDL1]),
        ("SC608", ["-o", SHIPPED_CONFIG]),
    ],
)
def test_bad_options_are_refused(code, options, tmp_path, hard):
    own = ["tune", SHIPPED_CONFIG, "-o", tmp_path / "x.cfg", *hard.arguments, *options]
    assert f"[{code}]" in run(*own, code=1).output
    assert not (tmp_path / "x.cfg").exists()


def with_pipe(factory: str, *names: str) -> dict[str, Any]:
    """Return config changes that add another pipe to the pipeline."""
    return {"nlp": {"pipeline": [*names]}, "components": {"other": {"factory": factory}}}


@pytest.mark.parametrize(
    ("code", "change", "shown"),
    [
        ("SC706", with_pipe("sparse_crf", "sparse_crf", "other"), "sparse_crf, other"),
        ("SC706", with_pipe("senter", "other", "sparse_crf"), "other, sparse_crf"),
        ("SC709", {"training": {"score_weights": {"tag_acc": None, "nothing": 1.0}}}, "nothing"),
        ("SC203", {}, ""),  # A corpus without gold labels.
    ],
)
def test_configs_and_corpora_that_are_refused(code, change, shown, tmp_path, hard):
    config, bare = tmp_path / "changed.cfg", tmp_path / "bare.spacy"
    load_config(SHIPPED_CONFIG).merge(change).to_disk(config)
    DocBin(docs=docs_of(spacy.blank("xx"), hard.train), attrs=["TAG"]).to_disk(bare)
    data = hard.arguments if change else ["--paths.train", bare, "--paths.dev", hard.dev_path]
    output = run("tune", config, "-o", tmp_path / "x.cfg", *ONE, *data, code=1).output
    assert f"[{code}]" in output and shown in " ".join(output.split())
