"""The settings of spaCy's training loop with a solver that holds the whole corpus."""

import warnings
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

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.batchers import ONE_STEP, one_step_per_epoch
from spacy_sparsecrf.pipeline.spacy_loop import Loop

from ..toy import examples_of


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
    assert not Loop.of(None, None).quiet and not Loop.of(nlp, None).quiet
    nlp.config["training"]["logger"]["@loggers"] = "spacy.ConsoleLogger.v3"
    for wanted in (True, False):
        nlp.config["training"]["logger"]["console_output"] = wanted
        assert Loop.of(nlp, None).quiet is not wanted


def test_an_epoch_is_one_batch(config: Config) -> None:
    config["training"].update(batcher={"@batchers": ONE_STEP}, eval_frequency=1, patience=5)
    nlp = init_nlp(config)
    read = registry.resolve({"train": config.interpolate()["corpora"]["train"]})["train"]
    pipe, losses, sizes = nlp.get_pipe("sparse_crf"), [], []
    for _, batch in create_train_batches(nlp, read, one_step_per_epoch, 3):
        sizes.append(len(batch))
        losses.append(pipe.update(batch)["sparse_crf"])
        pipe.finish_update(None)
    assert sizes == [1, 1, 1] and losses == sorted(losses, reverse=True)
    with pytest.raises(SparseCRFError, match="SC218"):
        list(one_step_per_epoch([]))


def test_two_pipelines_of_one_vocab_train_on_their_own(config: Config) -> None:
    config["training"].update(batcher={"@batchers": ONE_STEP}, eval_frequency=1)
    pipelines = [init_nlp(config), init_nlp(config)]
    pipelines[1].vocab = pipelines[0].vocab
    [first, second] = [nlp.get_pipe("sparse_crf") for nlp in pipelines]
    batch = examples_of(pipelines[0], [(["a", "b"], ["X", "Y"])] * 3)
    while not first.training_run().converged:
        first.update(next(one_step_per_epoch(batch)))
        first.finish_update(None)
    # The second has batches after the first has converged.
    assert [len(each) for each in one_step_per_epoch(batch)] == [1]
    assert second.update(batch)["sparse_crf"] > 0.0
