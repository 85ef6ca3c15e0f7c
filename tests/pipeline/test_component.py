"""The component alone: labels, prediction, annotation, storage, processes."""

import copy
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..conftest import Corpus
from ..toy import accuracy, docs_of, examples_of, run_steps, tags_of, train


def test_the_factory_declares_and_fills_what_spacy_asks_for(nlp: Language):
    meta = nlp.get_factory_meta("sparse_crf")
    assert meta.assigns == ["token.tag"]
    assert meta.default_score_weights == {"tag_acc": 1.0}
    block = nlp.config["components"]["sparse_crf"]
    assert (block["l1"], block["l2"], block["sequences"]) == (0.1, 0.3, "sents")
    assert block["features"]["templates"] and block["solver"]["history"] == 20
    assert block["target"]["attr"] == "tag"


def test_it_learns_and_generalises_to_words_it_has_not_seen(fitted: Language, corpus: Corpus):
    assert accuracy(fitted, corpus.train) > 0.99
    assert accuracy(fitted, corpus.dev) > 0.95


def test_labels_come_sorted_from_the_examples(nlp: Language, corpus: Corpus):
    nlp.initialize(lambda: examples_of(nlp, corpus.train))
    pipe = nlp.get_pipe("sparse_crf")
    assert pipe.labels == pipe.label_data == ("DT", "IN", "JJ", "NN", "VB")
    assert nlp.pipe_labels["sparse_crf"] == list(pipe.labels)


def test_given_labels_keep_their_order(nlp: Language, corpus: Corpus):
    given = ["VB", "NN", "XX", "JJ", "IN", "DT"]
    examples = examples_of(nlp, corpus.train)
    nlp.get_pipe("sparse_crf").initialize(lambda: examples, nlp=nlp, labels=given)
    assert list(nlp.get_pipe("sparse_crf").labels) == given
    run_steps(nlp, examples, 3)
    assert accuracy(nlp, corpus.train) > 0.95


def test_set_output_accepts_the_number_of_labels_only(fitted: Language):
    pipe = fitted.get_pipe("sparse_crf")
    pipe.set_output(5)
    with pytest.raises(SparseCRFError, match="SC213"):
        pipe.set_output(6)


def test_pipe_equals_call_and_predict_changes_nothing(fitted: Language, corpus: Corpus):
    docs = docs_of(fitted, corpus.dev)
    pipe = fitted.get_pipe("sparse_crf")
    before = [doc.to_bytes() for doc in docs]
    ids = pipe.predict(docs)
    assert [doc.to_bytes() for doc in docs] == before
    assert all(
        len(doc) == len(row) and row.dtype == np.int32 for doc, row in zip(docs, ids, strict=True)
    )
    one_by_one = tags_of([fitted(doc) for doc in docs_of(fitted, corpus.dev)])
    streamed = tags_of(list(fitted.pipe(docs_of(fitted, corpus.dev), batch_size=7)))
    assert one_by_one == streamed == [[pipe.labels[i] for i in row] for row in ids]


def test_tags_that_are_set_are_kept_unless_overwrite(fitted: Language, trained_dir: Path):
    words = ["the", "fentovtion"]
    kept = fitted(Doc(fitted.vocab, words=words, tags=["", "MINE"]))
    assert tags_of([kept]) == [["DT", "MINE"]]
    config = {"components": {"sparse_crf": {"overwrite": True}}}
    overwriting = spacy.load(trained_dir, config=config)
    replaced = overwriting(Doc(overwriting.vocab, words=words, tags=["", "MINE"]))
    assert tags_of([replaced]) == [["DT", "NN"]]


def test_pos_can_be_the_target(corpus: Corpus):
    nlp = spacy.blank("en")
    target = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": "pos"}
    scorer = {"@scorers": "spacy.morphologizer_scorer.v1"}
    nlp.add_pipe("sparse_crf", config={"target": target, "scorer": scorer, "n_threads": 1})
    names = {"DT": "DET", "IN": "ADP", "JJ": "ADJ", "NN": "NOUN", "VB": "VERB"}
    sentences = [(words, [names[tag] for tag in tags]) for words, tags in corpus.train]
    examples = examples_of(nlp, sentences, "pos")
    train(nlp, examples, 4)
    assert nlp.get_pipe("sparse_crf").labels == ("ADJ", "ADP", "DET", "NOUN", "VERB")
    doc = nlp(Doc(nlp.vocab, words=["the", "fentovtion"]))
    assert [token.pos_ for token in doc] == ["DET", "NOUN"]
    assert [token.tag for token in doc] == [0, 0]
    assert nlp.evaluate(examples)["pos_acc"] > 0.95
    with pytest.raises(SparseCRFError, match="SC215"):
        nlp.get_pipe("sparse_crf").add_label("NNP")


def pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(items[::2], items[1::2], strict=True))


def with_boundaries(nlp: Language, corpus: Corpus) -> list[Doc]:
    """Return Docs of two sentences each, with sentence boundaries."""
    docs = []
    for (first, _), (second, _) in pairs(corpus.dev):
        starts = [i in (0, len(first)) for i in range(len(first) + len(second))]
        docs.append(Doc(nlp.vocab, words=first + second, sent_starts=starts))
    return docs


def test_sentences_are_tagged_as_docs_of_their_own(fitted: Language, corpus: Corpus):
    joint = tags_of(list(fitted.pipe(with_boundaries(fitted, corpus))))
    apart = tags_of(list(fitted.pipe(docs_of(fitted, corpus.dev))))
    assert joint == [a + b for a, b in pairs(apart)]


def test_training_on_sentences_and_predicting_on_docs_warns_once(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, corpus.train)
    for example in examples:
        for token in example.predicted[1:]:
            token.is_sent_start = False
    train(nlp, examples, 1)
    pipe = nlp.get_pipe("sparse_crf")
    assert pipe.cfg["sequences"] == "sents"
    pipe.predict(with_boundaries(nlp, corpus))
    with pytest.warns(SparseCRFWarning, match="SCW202"):
        pipe.predict(docs_of(nlp, corpus.dev))
    pipe.predict(docs_of(nlp, corpus.dev))


def test_training_on_docs_and_predicting_on_sentences_warns(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, [(a + b, s + t) for (a, s), (b, t) in pairs(corpus.train)])
    for example, ((first, _), _) in zip(examples, pairs(corpus.train), strict=True):
        example.reference[len(first)].is_sent_start = True
    train(nlp, examples, 1)
    pipe = nlp.get_pipe("sparse_crf")
    assert pipe.cfg["sequences"] == "docs"
    with pytest.warns(SparseCRFWarning, match="SCW202"):
        pipe.predict(with_boundaries(nlp, corpus))


def test_docs_without_any_boundaries_tell_nothing_about_skew(fitted: Language, corpus: Corpus):
    pipe = fitted.get_pipe("sparse_crf")
    assert pipe.cfg["sequences"] is None
    pipe.predict(with_boundaries(fitted, corpus))
    pipe.predict(docs_of(fitted, corpus.dev))


def assert_same(one: Language, other: Language, corpus: Corpus) -> None:
    assert one.get_pipe("sparse_crf").to_bytes(exclude=["vocab"]) == other.get_pipe(
        "sparse_crf"
    ).to_bytes(exclude=["vocab"])
    predictions = [tags_of(list(nlp.pipe(docs_of(nlp, corpus.dev)))) for nlp in (one, other)]
    assert predictions[0] == predictions[1]


def test_to_disk_and_back(fitted: Language, corpus: Corpus, tmp_path: Path):
    fitted.to_disk(tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy" / "sparse_crf").iterdir()) == [
        "cfg",
        "model",
        "names",
    ]
    assert_same(fitted, spacy.load(tmp_path / "copy"), corpus)


def test_a_pipe_can_be_stored_by_itself(fitted: Language, corpus: Corpus, tmp_path: Path):
    fitted.get_pipe("sparse_crf").to_disk(tmp_path / "pipe")
    other = spacy.blank("en")
    other.add_pipe("sparse_crf").from_disk(tmp_path / "pipe")
    assert_same(fitted, other, corpus)


def pickled(item: Any) -> Any:
    return pickle.loads(pickle.dumps(item))  # noqa: S301


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_made_during_training_has_the_weights_but_not_the_corpus(
    nlp: Language, corpus: Corpus, duplicate: Callable[[Any], Any]
):
    examples = examples_of(nlp, corpus.train)
    train(nlp, examples, 2)
    pipe = nlp.get_pipe("sparse_crf")
    other = duplicate(pipe)
    assert other.model.to_bytes() == pipe.model.to_bytes()
    assert other.model.n_active > 0
    before = pipe.model.to_bytes()
    # The copy learns from batches around its weights; the run of the original continues.
    assert other.update(examples)["sparse_crf"] > 0.0
    assert pipe.model.to_bytes() == before != other.to_bytes()
    assert pipe.update(examples)


def test_saving_during_training_saves_the_current_weights(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, corpus.train)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("sparse_crf")
    saved = [pipe.to_bytes(exclude=["vocab"])]
    for _ in range(2):
        run_steps(nlp, examples, 1)
        saved.append(pipe.to_bytes(exclude=["vocab"]))
    assert len(set(saved)) == 3


def test_a_newer_format_is_refused(trained: Language):
    pipe = trained.get_pipe("sparse_crf")
    pipe.cfg["format"] = 2
    data = pipe.to_bytes(exclude=["vocab"])
    blank = spacy.blank("en").add_pipe("sparse_crf")
    with pytest.raises(SparseCRFError, match="SC210"):
        blank.from_bytes(data)


def test_cfg_and_model_that_do_not_belong_together_are_refused(trained_dir: Path, tmp_path: Path):
    nlp = spacy.load(trained_dir)
    nlp.get_pipe("sparse_crf").add_label("ZZ")
    nlp.to_disk(tmp_path / "mixed")
    model = trained_dir / "sparse_crf" / "model"
    (tmp_path / "mixed" / "sparse_crf" / "model").write_bytes(model.read_bytes())
    with pytest.raises(SparseCRFError, match="SC211"):
        spacy.load(tmp_path / "mixed")


ROOT = Path(__file__).parents[2]

IN_PROCESSES = """
import multiprocessing, sys
import spacy
from tests.toy import docs_of, examples_of, make_sentences, tags_of, train

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config={"n_threads": 2})
    examples = examples_of(nlp, make_sentences(60, seed=1))
    train(nlp, examples, 2)
    sentences = make_sentences(40, seed=3)
    expected = tags_of(list(nlp.pipe(docs_of(nlp, sentences))))
    docs = nlp.pipe(docs_of(nlp, sentences), n_process=2, batch_size=10)
    assert tags_of(list(docs)) == expected
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_two_processes_after_a_parallel_training_step(method: str, tmp_path: Path):
    if method == "fork" and sys.platform in ("win32", "darwin"):
        pytest.skip("no safe fork on this platform")
    script = tmp_path / "in_processes.py"
    script.write_text(IN_PROCESSES, encoding="utf8")
    # Put the tests on the script's path.
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    given = {"timeout": 300, "env": {**os.environ, "PYTHONPATH": path}}
    command = [sys.executable, str(script), method]
    done = subprocess.run(command, capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stderr


def test_only_training_changes_the_model(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, corpus.train)
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    pipe: Any = nlp.get_pipe("sparse_crf")
    run = pipe.training_run()
    with pytest.warns(SparseCRFWarning, match="SCW207"):
        nlp.update(examples_of(nlp, [(["new", "words"], ["XX", "XX"])]))
    model, objective = pipe.model, run.objective
    for use in (
        lambda: pipe.predict([example.predicted for example in examples]),
        lambda: pipe.labels,
        lambda: pipe.to_bytes(),
        lambda: pipe.score(examples),
        lambda: list(pipe.dump()),
        lambda: pipe.explain(),
    ):
        use()
        assert pipe.model is model and pipe.training_run() is run and run.objective == objective
    assert pipe.labels == ("DT", "IN", "JJ", "NN", "VB")


def test_a_refused_initialize_leaves_a_trained_component_as_it_was(
    nlp: Language, corpus: Corpus, tmp_path: Path
):
    examples = examples_of(nlp, corpus.train)
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    pipe: Any = nlp.get_pipe("sparse_crf")
    before, run, n_active = pipe.to_bytes(), pipe.training_run(), pipe.model.n_active
    assert n_active > 0
    setting = pipe.settings.model_copy(
        update={"learning": pipe.settings.learning.model_copy(update={"label_weights": {"?": 2.0}})}
    )
    pipe.settings, kept = setting, pipe.settings
    with pytest.raises(SparseCRFError, match="SC353"):
        nlp.initialize(lambda: examples)
    pipe.settings = kept
    damaged = tmp_path / "run"
    damaged.write_bytes(b"no checkpoint")
    for refused in (
        lambda: pipe.initialize(lambda: [], nlp=nlp),
        lambda: pipe.initialize(lambda: examples, nlp=nlp, checkpoint=damaged),
        lambda: pipe.initialize(lambda: examples, nlp=nlp, init_weights="nowhere"),
    ):
        with pytest.raises(SparseCRFError):
            refused()
    assert pipe.to_bytes() == before and pipe.training_run() is run
    assert pipe.model.n_active == n_active
    nlp.update(examples)
    assert pipe.training_run().objective < float("inf")


def test_the_training_state_of_a_component_is_never_copied(nlp: Language, corpus: Corpus):
    nlp.initialize(lambda: examples_of(nlp, corpus.train[:10]))
    pipe: Any = nlp.get_pipe("sparse_crf")
    state = pipe._state
    assert len(fields(state)) <= 6
    assert copy.copy(state) is None and copy.deepcopy(state) is None
    assert pickle.loads(pickle.dumps(state)) is None  # noqa: S301
    nlp("of the")
    other = copy.deepcopy(pipe)
    assert other._state is None and other._cache.decoder is None


def test_updates_after_convergence_take_no_step(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, corpus.train[:10])
    nlp.initialize(lambda: examples)
    pipe: Any = nlp.get_pipe("sparse_crf")
    while not pipe.training_run().converged:
        nlp.update(examples)
    model, loss = pipe.model, nlp.update(examples)
    assert nlp.update(examples) == loss and pipe.model is model


def test_initialize_ends_the_threads_of_the_run_that_it_replaces(corpus: Corpus):
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config={"n_threads": 2})
    examples, before = examples_of(nlp, corpus.train), threading.enumerate()
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    begun = [thread for thread in threading.enumerate() if thread not in before]
    assert begun
    nlp.initialize(lambda: examples)
    assert not any(thread.is_alive() for thread in begun)
