"""The settings of spaCy's training loop with a solver that holds the whole corpus."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy import Config
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches
from spacy.util import registry

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.pipeline.batchers import ONE_STEP, is_quiet, one_step_per_epoch


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The config of `spacy init config --pipeline sparse_crf`, with a corpus."""
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["a", "b"], tags=["X", "Y"]) for _ in range(3)]
    DocBin(docs=docs).to_disk(tmp_path / "corpus.spacy")
    config = init_config(pipeline=["sparse_crf"], silent=True)
    for key in ("train", "dev"):
        config["paths"][key] = str(tmp_path / "corpus.spacy")
    return config


def test_the_config_that_spacy_makes_is_told_which_two_lines_to_change(config: Config) -> None:
    with pytest.warns(SparseCRFWarning, match="SCW209.*'sparse_crf'.*200 steps") as told:
        init_nlp(config)
    (message,) = [str(each.message) for each in told if "SCW209" in str(each.message)]
    header, *lines = message.split("\n")[1:]
    assert header == "[training]"
    changes: dict[str, Any] = dict(line.split(" = ") for line in lines)
    assert list(changes) == ["eval_frequency", "patience"]
    config["training"].update({key: int(value) for key, value in changes.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("error", SparseCRFWarning)
        init_nlp(config)


def test_a_loop_with_others_or_of_ones_own_is_not_told(config: Config) -> None:
    both = init_config(pipeline=["sparse_crf", "tagger"], silent=True)
    both["paths"] = config["paths"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SparseCRFWarning)
        assert init_nlp(both).pipe_names[-2:] == ["sparse_crf", "tagger"]
        nlp = spacy.blank("en")
        nlp.add_pipe("sparse_crf")
        doc = Doc(nlp.vocab, words=["a", "b"], tags=["X", "Y"])
        nlp.initialize(lambda: [Example(doc, doc)])


def test_rows_that_are_not_wanted_silence_all(config: Config) -> None:
    nlp = spacy.blank("en")
    assert not is_quiet(None) and not is_quiet(nlp)
    nlp.config["training"]["logger"]["@loggers"] = "spacy.ConsoleLogger.v3"
    for wanted in (True, False):
        nlp.config["training"]["logger"]["console_output"] = wanted
        assert is_quiet(nlp) is not wanted


@pytest.mark.parametrize("reader", ["spacy.Corpus.v1", "spacy_sparsecrf.AnnotatedCorpus.v1"])
def test_training_holds_one_example_of_the_loop_and_no_corpus(config: Config, reader: str) -> None:
    config["training"].update(batcher={"@batchers": ONE_STEP}, eval_frequency=1, patience=5)
    config["corpora"]["train"]["@readers"] = reader
    nlp = init_nlp(config)
    read = registry.resolve({"train": config.interpolate()["corpora"]["train"]})["train"]
    own, held = list(read(nlp)), []
    assert [*map(len, one_step_per_epoch(own))] == [1] and len(own) == 3

    def batcher(examples: list[Example]) -> Iterator[list[Example]]:
        held.append(len(examples))
        yield from one_step_per_epoch(examples)
        held.append(len(examples))

    pipe, losses = nlp.get_pipe("sparse_crf"), []
    for _, batch in create_train_batches(nlp, read, batcher, 3):
        losses.append(pipe.update(batch)["sparse_crf"])
    assert held == [3 if reader == "spacy.Corpus.v1" else 1, *[1] * 5]
    assert len(losses) == 3 and losses == sorted(losses, reverse=True)
    assert not hasattr(pipe.training_run(), "restart")
    assert len(own) == 3 and len(list(read(nlp))) == 3


def test_free_corpus_changes_no_step_and_no_checkpoint(config: Config, tmp_path: Path) -> None:
    config["training"].update(batcher={"@batchers": ONE_STEP}, eval_frequency=1, patience=5)
    runs = [init_nlp(config).get_pipe("sparse_crf").training_run() for _ in range(2)]
    runs[1].free_corpus()
    for i, run in enumerate(runs):
        run.step()
        run.save(tmp_path / f"{i}")
        run.step()
    saved = [(tmp_path / f"{i}").read_bytes() for i in range(2)]
    assert saved[0] == saved[1] and runs[0].objective == runs[1].objective
    assert hasattr(runs[0], "restart") and not hasattr(runs[1], "restart")
