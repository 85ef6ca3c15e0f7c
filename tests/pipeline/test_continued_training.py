"""Continued training around saved weights, and updates by examples unlike the initial ones."""

import random
import warnings
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, minibatch

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..conftest import SHIPPED_CONFIG
from ..support.toy import accuracy, blank_with, examples_of, train

NEW = [(["the", "plan", "gadgetoid"], ["DT", "NN", "XX"]), (["a", "quuxoid"], ["DT", "XX"])]


def test_a_new_label_is_learnt_around_a_saved_pipeline(corpus, trained_dir, tmp_path):
    nlp = blank_with(learning={"prior": str(trained_dir)}, l2=1.0)
    examples = examples_of(nlp, NEW * 3)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("sparse_crf")
    assert pipe.labels == ("DT", "IN", "JJ", "NN", "VB", "XX")
    before = accuracy(nlp, corpus.dev)
    while not pipe.training_run().converged:
        nlp.update(examples)
    assert accuracy(nlp, NEW) == 1.0
    assert accuracy(nlp, corpus.dev) > before - 0.05
    nlp.to_disk(tmp_path / "adapted")
    assert accuracy(spacy.load(tmp_path / "adapted"), NEW) == 1.0
    # Names of features that only the saved pipeline had are kept.
    assert not any("0x" in line.split("\t")[0] for line in pipe.dump())


def test_weights_of_other_templates_are_warned_of(corpus, trained_dir):
    nlp = blank_with(["b:", "u:shape[0]"])
    nlp.config["initialize"]["components"]["sparse_crf"] = {"init_weights": str(trained_dir)}
    with pytest.warns(SparseCRFWarning, match="SCW222.*init_weights.*differ"):
        nlp.initialize(lambda: examples_of(nlp, corpus.train[:5]))


@pytest.mark.parametrize("solver", ["OWLQN", "AdaGrad"])
def test_spacys_loop_goes_on_with_a_new_label(solver, corpus, tmp_path):
    nlp = blank_with(solver={"@crf_solvers": f"spacy_sparsecrf.{solver}.v1"})
    train(nlp, examples_of(nlp, corpus.train), 6)
    nlp.to_disk(tmp_path / "first")
    nlp = spacy.load(tmp_path / "first")
    before = accuracy(nlp, corpus.dev)
    assert nlp.get_pipe("sparse_crf").add_label("XX") == 1
    sgd, examples = nlp.resume_training(), examples_of(nlp, NEW)
    losses = [nlp.update(examples, sgd=sgd)["sparse_crf"] for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]
    assert accuracy(nlp, NEW) == 1.0
    assert accuracy(nlp, corpus.dev) > before - 0.2
    nlp.to_disk(tmp_path / "second")
    assert accuracy(spacy.load(tmp_path / "second"), NEW) == 1.0


def test_an_unknown_label_is_refused_and_changes_no_weight(trained, corpus):
    with pytest.raises(SparseCRFError, match="SC385.*'XX'.*add_label"):
        trained.update(examples_of(trained, NEW))
    trained.update(examples_of(trained, corpus.train[:5]))
    pipe = trained.get_pipe("sparse_crf")
    assert pipe.patch(["u\tlower[0]=gadgetoid\t#\tNN\t7.5"]) == 1
    before = pipe.to_bytes(exclude=["vocab"])
    with pytest.raises(SparseCRFError, match="SC385"):
        trained.update(examples_of(trained, NEW))
    assert pipe.to_bytes(exclude=["vocab"]) == before


def passes(nlp: Language, examples: list[Example], n: int) -> list[float]:
    """Update a pipeline with shuffled batches of 8. RETURNS: the sum of losses of each pass."""
    examples, rng, sums = [*examples], random.Random(0), []
    for _ in range(n):
        rng.shuffle(examples)
        losses: dict[str, float] = {}
        for batch in minibatch(examples, 8):
            nlp.update(batch, losses=losses)
        sums.append(losses["sparse_crf"])
    return sums


@pytest.mark.parametrize("labels", [(), ("DT", "IN", "JJ", "NN", "VB")])
@pytest.mark.parametrize(
    "config", [{}, {"model": "maxent"}, {"model": "memm", "learning": {"dtype": "float64"}}]
)
def test_updates_learn_after_initialization_without_examples(corpus, labels, config, tmp_path):
    nlp = blank_with(**config)
    for label in labels:
        nlp.get_pipe("sparse_crf").add_label(label)
    nlp.initialize()
    examples = examples_of(nlp, corpus.train)
    # Without labels, the first batch has all of them.
    nlp.update(examples[:40])
    losses = passes(nlp, examples, 6)
    assert 0.0 < losses[-1] < 0.5 * losses[0]
    assert nlp.get_pipe("sparse_crf").labels == ("DT", "IN", "JJ", "NN", "VB")
    assert accuracy(nlp, corpus.dev) > 0.97
    nlp.to_disk(tmp_path / "learnt")
    assert accuracy(spacy.load(tmp_path / "learnt"), corpus.dev) == accuracy(nlp, corpus.dev)


def test_continued_training_keeps_what_was_learnt(trained, corpus):
    few = examples_of(trained, corpus.train[:10])
    before = accuracy(trained, corpus.dev)
    passes(trained, few, 20)
    assert accuracy(trained, corpus.dev) >= before


def test_an_update_without_gold_labels_changes_nothing(trained):
    blank = Example(trained.make_doc("of the"), trained.make_doc("of the"))
    pipe: Any = trained.get_pipe("sparse_crf")
    before = pipe.to_bytes()
    assert trained.update([blank, blank], losses={"sparse_crf": 3.0}) == {"sparse_crf": 3.0}
    assert pipe.to_bytes() == before


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_update_that_diverges_names_the_component_and_changes_nothing(trained, monkeypatch):
    monkeypatch.setattr("spacy_sparsecrf.pipeline.continued.ETA", float("inf"))
    before = trained.to_bytes()
    with pytest.raises(SparseCRFError, match="SC209.*'sparse_crf'.*l2"):
        trained.update(examples_of(trained, [(["the", "plan"], ["DT", "NN"])] * 4))
    assert trained.to_bytes() == before


def test_weights_of_docs_and_labels_count(corpus):
    sentences, found = corpus.train[:8], []
    for learning in ({}, {"label_weights": {"NN": 2.0}}):
        nlp = blank_with(learning=learning)
        nlp.initialize()
        found.append(nlp.update(examples_of(nlp, sentences))["sparse_crf"])
    assert found[1] > found[0]


def test_settings_that_need_a_corpus_and_a_streamed_corpus_are_refused(corpus):
    nlp = blank_with(model="maxent", learning={"clusters": 2})
    nlp.initialize()
    with pytest.raises(SparseCRFError, match=r"SC384.*sparse_crf.* clusters = 2\. Set it"):
        nlp.update(examples_of(nlp, corpus.train[:8]))
    config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
    config["training"]["max_epochs"] = -1
    with pytest.raises(SparseCRFError, match=r"SC204.*'sparse_crf'.* Set .*max_epochs = 0"):
        init_nlp(config)


KNOWN = [(["a", "b"], ["A", "B"]), (["b", "a"], ["B", "A"])]
OTHERS = [(["c", "c"], ["A", "A"]), (["d"], ["B"])]


@pytest.mark.filterwarnings("error")
def test_an_update_of_other_examples_is_warned_of_once(nlp, corpus):
    nlp.initialize(lambda: examples_of(nlp, KNOWN))
    pipe: Any = nlp.get_pipe("sparse_crf")
    run = pipe.training_run()
    # A known example among others is enough.
    nlp.update(examples_of(nlp, [*OTHERS, KNOWN[1]]))
    with pytest.warns(SparseCRFWarning, match=r"SCW207.* 2 examples.*begins 'c c '"):
        nlp.update(examples_of(nlp, OTHERS))
    nlp.update(examples_of(nlp, OTHERS))
    assert pipe.training_run() is run and pipe.labels == ("A", "B")
    # An augmenter may make other examples.
    nlp.config["corpora"] = {"train": {"path": "train.spacy", "augmenter": {"level": 0.1}}}
    nlp.config["training"].update(train_corpus="corpora.train", eval_frequency=1)
    pipe.initialize(lambda: examples_of(nlp, KNOWN), nlp=nlp)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*SCW207")
        pipe.update(examples_of(nlp, OTHERS))


@pytest.mark.filterwarnings("error")
def test_the_same_examples_read_again_or_in_another_vocab_are_known(nlp, corpus):
    examples = examples_of(nlp, corpus.train[:20])
    nlp.initialize(lambda: examples)
    stored = DocBin(docs=[example.reference for example in examples])
    vocab = spacy.blank("de").vocab
    nlp.update(examples_of(nlp, corpus.train[:20]))
    nlp.update([Example(Doc(vocab, words=["a"]), doc) for doc in stored.get_docs(vocab)])
