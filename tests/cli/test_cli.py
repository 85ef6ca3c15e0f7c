"""spaCy's command line with the component."""

import json
import logging
import re
import warnings
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import spacy
from confection import Config
from spacy.util import load_config, logger

from ..conftest import SHIPPED_CONFIG
from ..support.commands import run_spacy
from ..support.processes import run_python
from ..support.toy import accuracy, docs_of, tags_of

pytestmark = pytest.mark.usefixtures("level_of_the_logger")


@pytest.fixture(scope="module")
def cli_dir(corpus, tmp_path_factory) -> Path:
    """The output of `spacy train` with the shipped config."""
    output = tmp_path_factory.mktemp("cli")
    level = logger.level
    run_spacy("train", SHIPPED_CONFIG, "--output", output, *corpus.arguments)
    logger.setLevel(level)
    return output


@pytest.fixture(scope="module")
def model_best(cli_dir) -> Path:
    return cli_dir / "model-best"


def test_train_and_evaluate(model_best, corpus, tmp_path):
    nlp = spacy.load(model_best)
    assert accuracy(nlp, corpus.dev) > 0.95
    assert nlp.meta["performance"]["tag_acc"] > 0.95
    assert nlp.meta["performance"]["sparse_crf_loss"] > 0
    assert nlp.config["components"]["sparse_crf"]["features"]["templates"]
    metrics = tmp_path / "metrics.json"
    run_spacy("evaluate", model_best, corpus.dev_path, "--output", metrics)
    score = json.loads(metrics.read_text(encoding="utf8"))["tag_acc"]
    assert score == pytest.approx(accuracy(nlp, corpus.dev))
    few = ["--batches", "30", "--batch-size", "5", "--warmup", "1"]
    assert "words/s" in run_spacy("benchmark", "speed", model_best, corpus.dev_path, *few)


def test_train_reports_progress(corpus, caplog):
    settings = ["--training.patience", "0", "--training.max_steps", "40", "--verbose"]
    output = run_spacy("train", SHIPPED_CONFIG, *corpus.arguments, *settings)
    messages = [record.getMessage() for record in caplog.records]
    assert any(re.match(r"sparse_crf: \d+ sequences, ", m) for m in messages)
    levels = {r.levelno for r in caplog.records if "sparse_crf: objective" in r.getMessage()}
    assert levels == {logging.DEBUG}
    assert sum(m.startswith("sparse_crf: converged") for m in messages) == 1
    assert "TAG_ACC" in output


def default_block(**settings: Any) -> dict[str, Any]:
    """Return the config of a component with default settings, as read from a file."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("sparse_crf", config=settings)
    block: dict[str, Any] = Config().from_str(nlp.config.to_str())["components"]["sparse_crf"]
    return block


def test_fill_config_completes_configs(tmp_path):
    base, filled = tmp_path / "base.cfg", tmp_path / "filled.cfg"
    base.write_text(
        '[nlp]\nlang = "xx"\npipeline = ["sparse_crf"]\n'
        '[components]\n[components.sparse_crf]\nfactory = "sparse_crf"\nl1 = 1.0\n',
        encoding="utf8",
    )
    run_spacy("init", "fill-config", base, filled)
    assert load_config(filled)["components"]["sparse_crf"] == default_block(l1=1.0)
    # The shipped config differs from the defaults as documented.
    run_spacy("init", "fill-config", SHIPPED_CONFIG, filled)
    config = load_config(filled)
    block = default_block()
    block["features"]["templates"] = ["@tags", "@word_labels"]
    block["solver"] |= {"inner_iterations": 12, "later_iterations": 5}
    block["learning"]["warm_start"] = {"evaluated": False}
    assert config["components"] == {"sparse_crf": block}
    training: dict[str, Any] = config["training"]
    assert training["batcher"] == {"@batchers": "spacy_sparsecrf.one_step_per_epoch.v1"}
    assert (training["eval_frequency"], training["max_epochs"]) == (1, 0)


UNKNOWN = ["--components.sparse_crf.solver.histroy", "3"]


@pytest.mark.parametrize(
    ("command", "code", "shown"),
    [
        (
            ["debug", "config", SHIPPED_CONFIG, "--show-functions", "--show-variables"],
            0,
            ["Config is valid", "spacy_sparsecrf.one_step_per_epoch.v1"],
        ),
        (["debug", "config", SHIPPED_CONFIG, *UNKNOWN], 1, ["sparse_crf.solver -> histroy"]),
        (["debug", "data", SHIPPED_CONFIG], 0, ["Pipeline can be initialized with data"]),
    ],
)
def test_debug(command, code, shown, corpus):
    output = run_spacy(*command, *corpus.arguments, code=code)
    assert all(text in output for text in shown)


def test_init_labels_writes_labels_that_train_reads(corpus, tmp_path):
    run_spacy("init", "labels", SHIPPED_CONFIG, tmp_path / "labels", *corpus.arguments)
    path = tmp_path / "labels" / "sparse_crf.json"
    assert json.loads(path.read_text(encoding="utf8")) == ["DT", "IN", "JJ", "NN", "VB"]
    path.write_text('["VB", "NN", "JJ", "IN", "DT"]', encoding="utf8")
    config = load_config(SHIPPED_CONFIG)
    labels = {"@readers": "spacy.read_labels.v1", "path": str(path)}
    config["initialize"]["components"] = {"sparse_crf": {"labels": labels}}
    config.to_disk(tmp_path / "labels.cfg")
    settings = ["--training.max_steps", "1", "--output", tmp_path / "output"]
    # The command line can set a checkpoint.
    settings += ["--initialize.components.sparse_crf.checkpoint", tmp_path / "checkpoint"]
    run_spacy("train", tmp_path / "labels.cfg", *corpus.arguments, *settings)
    assert (tmp_path / "checkpoint").is_file()
    nlp = spacy.load(tmp_path / "output" / "model-last")
    assert nlp.get_pipe("sparse_crf").labels == ("VB", "NN", "JJ", "IN", "DT")


def test_assemble_with_a_sourced_component(model_best, corpus, tmp_path):
    config = tmp_path / "assemble.cfg"
    config.write_text(
        '[nlp]\nlang = "xx"\npipeline = ["sentencizer", "sparse_crf"]\n'
        '[components]\n[components.sentencizer]\nfactory = "sentencizer"\n'
        f'[components.sparse_crf]\nsource = "{model_best.as_posix()}"\n',
        encoding="utf8",
    )
    run_spacy("assemble", config, tmp_path / "assembled")
    nlp = spacy.load(tmp_path / "assembled")
    assert nlp.pipe_names == ["sentencizer", "sparse_crf"]
    assert accuracy(nlp, corpus.dev) > 0.95


@pytest.fixture(scope="module")
def package_dir(model_best, tmp_path_factory) -> Path:
    """The output of `spacy package`."""
    output = tmp_path_factory.mktemp("package")
    named = ["--name", "toy", "--version", "1.2.3", "--build", "none"]
    with warnings.catch_warnings():
        # spaCy relies on the garbage collector to close the files that it writes.
        warnings.simplefilter("ignore", ResourceWarning)
        run_spacy("package", model_best, output, *named)
    return output / "xx_toy-1.2.3"


def test_a_package_lists_its_labels_and_describes_its_scores(package_dir):
    meta = json.loads((package_dir / "meta.json").read_text(encoding="utf8"))
    assert meta["labels"] == {"sparse_crf": ["DT", "IN", "JJ", "NN", "VB"]}
    assert "| `TAG_ACC` | " in (package_dir / "README.md").read_text(encoding="utf8")


@pytest.mark.skipif(
    "spacy_sparsecrf" not in packages_distributions(),
    reason="this editable installation does not tell spaCy to which package the module belongs",
)
def test_a_package_requires_this_plugin(package_dir):
    meta = json.loads((package_dir / "meta.json").read_text(encoding="utf8"))
    assert [name for name in meta["requirements"] if name.startswith("spacy-sparsecrf>=")]


def test_an_installed_package_tags(package_dir, model_best, corpus, tmp_path):
    pytest.importorskip("pip", reason="installs with pip")
    pytest.importorskip("setuptools", "70.1", reason="builds wheels offline")
    target = tmp_path / "site"
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", target]
    run_python("-m", "pip", "install", *options, package_dir)
    words = corpus.dev[0][0]
    code = (
        f"import json, sys; sys.path.append({str(target)!r})\n"
        "import spacy; from spacy.tokens import Doc; nlp = spacy.load('xx_toy')\n"
        f"doc = nlp(Doc(nlp.vocab, words={words!r}))\n"
        "print(json.dumps([token.tag_ for token in doc]))"
    )
    done = run_python("-c", code)
    nlp = spacy.load(model_best)
    assert [json.loads(done.stdout)] == tags_of([nlp(docs_of(nlp, corpus.dev)[0])])
