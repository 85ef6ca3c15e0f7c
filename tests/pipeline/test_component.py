"""The component alone: labels, prediction, annotation, storage, processes."""

import copy
import os
import shutil
import sys
import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..conftest import Corpus
from ..support.processes import run_python
from ..support.toy import (
    accuracy,
    blank_with,
    call_methods,
    docs_of,
    examples_of,
    pickled,
    run_steps,
    tags_of,
    train,
)


def test_the_factory_declares_and_fills_what_spacy_asks_for(nlp):
    meta = nlp.get_factory_meta("sparse_crf")
    assert meta.assigns == ["token.tag"]
    assert meta.default_score_weights == {"tag_acc": 1.0}
    block = nlp.config["components"]["sparse_crf"]
    assert (block["l1"], block["l2"], block["sequences"]) == (0.1, 0.3, "docs")
    assert block["features"]["templates"] and block["solver"]["history"] == 20
    assert block["target"]["attr"] == "tag"


def test_it_learns_and_generalises_to_words_it_has_not_seen(fitted, corpus):
    assert accuracy(fitted, corpus.train) > 0.99
    assert accuracy(fitted, corpus.dev) > 0.95


def test_labels_come_sorted_from_the_examples_and_given_ones_keep_their_order(nlp, corpus):
    examples, pipe = examples_of(nlp, corpus.train), nlp.get_pipe("sparse_crf")
    nlp.initialize(lambda: examples)
    assert pipe.labels == pipe.label_data == ("DT", "IN", "JJ", "NN", "VB")
    assert nlp.pipe_labels["sparse_crf"] == list(pipe.labels)
    given = ["VB", "NN", "XX", "JJ", "IN", "DT"]
    pipe.initialize(lambda: examples, nlp=nlp, labels=given)
    assert list(pipe.labels) == given
    run_steps(nlp, examples, 3)
    assert accuracy(nlp, corpus.train) > 0.95
    pipe.set_output(6)
    with pytest.raises(SparseCRFError, match="SC213"):
        pipe.set_output(7)


def test_a_label_above_the_limit_is_refused_and_changes_nothing(fitted, monkeypatch):
    pipe: Any = fitted.get_pipe("sparse_crf")
    before = pipe.to_bytes()
    monkeypatch.setattr("spacy_sparsecrf.crf.model.model.MAX_LABELS", len(pipe.labels))
    with pytest.raises(SparseCRFError, match="SC311"):
        pipe.add_label("ZZ")
    assert "ZZ" not in pipe.labels and pipe.to_bytes() == before


def test_pipe_equals_call_and_predict_changes_nothing(fitted, corpus):
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


def test_tags_that_are_set_are_kept_unless_overwrite(fitted, trained_dir):
    words = ["the", "fentovtion"]
    kept = fitted(Doc(fitted.vocab, words=words, tags=["", "MINE"]))
    assert tags_of([kept]) == [["DT", "MINE"]]
    config = {"components": {"sparse_crf": {"overwrite": True}}}
    overwriting = spacy.load(trained_dir, config=config)
    replaced = overwriting(Doc(overwriting.vocab, words=words, tags=["", "MINE"]))
    assert tags_of([replaced]) == [["DT", "NN"]]


def test_pos_can_be_the_target(corpus):
    target = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": "pos"}
    nlp = blank_with(target=target, scorer={"@scorers": "spacy.morphologizer_scorer.v1"})
    names = {"DT": "DET", "IN": "ADP", "JJ": "ADJ", "NN": "NOUN", "VB": "VERB"}
    sentences = [(words, [names[tag] for tag in tags]) for words, tags in corpus.train]
    examples = examples_of(nlp, sentences, "pos")
    train(nlp, examples, 4)
    assert nlp.get_pipe("sparse_crf").labels == ("ADJ", "ADP", "DET", "NOUN", "VERB")
    doc = nlp(Doc(nlp.vocab, words=["the", "fentovtion"]))
    assert [(token.pos_, token.tag) for token in doc] == [("DET", 0), ("NOUN", 0)]
    assert nlp.evaluate(examples)["pos_acc"] > 0.95
    with pytest.raises(SparseCRFError, match="SC215"):
        nlp.get_pipe("sparse_crf").add_label("NNP")


def pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(items[::2], items[1::2], strict=True))


def with_boundaries(nlp: Language, corpus: Corpus) -> list[Doc]:
    """Return Docs of two sentences each, with sentence boundaries."""
    return [
        Doc(nlp.vocab, words=a + b, sent_starts=[i in (0, len(a)) for i in range(len(a + b))])
        for (a, _), (b, _) in pairs(corpus.dev)
    ]


def test_sentences_are_tagged_as_docs_of_their_own(trained_dir, corpus):
    """Without a warning, as training Docs without any boundaries tell nothing about skew."""
    nlp = spacy.load(trained_dir, config={"components": {"sparse_crf": {"sequences": "sents"}}})
    assert nlp.get_pipe("sparse_crf").cfg["sentences"] is False
    joint = tags_of(list(nlp.pipe(with_boundaries(nlp, corpus))))
    apart = tags_of(list(nlp.pipe(docs_of(nlp, corpus.dev))))
    assert joint == [a + b for a, b in pairs(apart)]


def test_training_on_sentences_and_predicting_on_docs_warns_once(corpus):
    nlp = blank_with(sequences="sents")
    pipe: Any = nlp.get_pipe("sparse_crf")
    examples = examples_of(nlp, corpus.train)
    for example in examples:
        for token in example.predicted[1:]:
            token.is_sent_start = False
    train(nlp, examples, 1)
    assert pipe.cfg["sentences"] is True
    pipe.predict(with_boundaries(nlp, corpus))
    call_methods(pipe, docs_of(nlp, corpus.dev)[0])
    with pytest.warns(SparseCRFWarning, match="SCW202"):
        pipe.predict(docs_of(nlp, corpus.dev))
    pipe.predict(docs_of(nlp, corpus.dev))


def test_pipelines_and_pipes_are_stored(fitted, corpus, tmp_path):
    fitted.to_disk(tmp_path / "whole")
    folder = tmp_path / "whole" / "sparse_crf"
    assert sorted(path.name for path in folder.iterdir()) == ["cfg", "model", "names"]
    fitted.get_pipe("sparse_crf").to_disk(tmp_path / "pipe")
    alone = spacy.blank("xx")
    alone.add_pipe("sparse_crf").from_disk(tmp_path / "pipe")
    expected = fitted.get_pipe("sparse_crf").to_bytes(exclude=["vocab"])
    tags = tags_of(list(fitted.pipe(docs_of(fitted, corpus.dev))))
    for nlp in (spacy.load(tmp_path / "whole"), alone):
        assert nlp.get_pipe("sparse_crf").to_bytes(exclude=["vocab"]) == expected
        assert tags_of(list(nlp.pipe(docs_of(nlp, corpus.dev)))) == tags


def trained_on(nlp: Language, corpus: Corpus, n: int = 1) -> tuple[Any, list[Example]]:
    examples = examples_of(nlp, corpus.train)
    train(nlp, examples, n)
    return nlp.get_pipe("sparse_crf"), examples


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_made_during_training_has_the_weights_but_not_the_corpus(nlp, corpus, duplicate):
    pipe, examples = trained_on(nlp, corpus, 2)
    nlp("of the")
    assert len(fields(pipe._state)) <= 6
    assert copy.copy(pipe._state) is None and duplicate(pipe._state) is None
    other = duplicate(pipe)
    assert other._state is None and "reader" not in vars(other.trained)
    assert other.model.to_bytes() == pipe.model.to_bytes()
    assert other.model.n_active > 0
    before = pipe.model.to_bytes()
    # The copy learns from batches around its weights; the run of the original continues.
    assert other.update(examples)["sparse_crf"] > 0.0
    assert pipe.model.to_bytes() == before != other.to_bytes()
    assert pipe.update(examples)


def test_saving_during_training_saves_the_current_weights(nlp, corpus):
    pipe, examples = trained_on(nlp, corpus, 0)
    saved = [pipe.to_bytes(exclude=["vocab"])]
    for _ in range(2):
        run_steps(nlp, examples, 1)
        saved.append(pipe.to_bytes(exclude=["vocab"]))
    assert len(set(saved)) == 3


def test_newer_formats_and_files_that_do_not_belong_together_are_refused(
    trained, trained_dir, tmp_path
):
    pipe = trained.get_pipe("sparse_crf")
    pipe.add_label("ZZ")
    trained.to_disk(tmp_path)
    shutil.copy(trained_dir / "sparse_crf" / "model", tmp_path / "sparse_crf" / "model")
    with pytest.raises(SparseCRFError, match="SC211"):
        spacy.load(tmp_path)
    (tmp_path / "sparse_crf" / "cfg").write_text('{"format": 10, "more": 1}')
    with pytest.raises(SparseCRFError, match="SC210.*sparse_crf.*format 10, later than 2"):
        spacy.load(tmp_path)


ROOT = Path(__file__).parents[2]

IN_PROCESSES = """
import multiprocessing, sys
import spacy
from tests.support.toy import docs_of, examples_of, make_sentences, tags_of, train

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    nlp = spacy.blank("xx")
    nlp.add_pipe("sparse_crf", config={"n_threads": 2})
    examples = examples_of(nlp, make_sentences(60, seed=1))
    train(nlp, examples, 2)
    sentences = make_sentences(40, seed=3)
    expected = tags_of(list(nlp.pipe(docs_of(nlp, sentences))))
    docs = nlp.pipe(docs_of(nlp, sentences), n_process=2, batch_size=10)
    assert tags_of(list(docs)) == expected
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_two_processes_after_a_parallel_training_step(method, tmp_path):
    if method == "fork" and sys.platform in ("win32", "darwin"):
        pytest.skip("no safe fork on this platform")
    script = tmp_path / "in_processes.py"
    script.write_text(IN_PROCESSES, encoding="utf8")
    # Put the tests on the script's path.
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    run_python(script, method, timeout=300, env={"PYTHONPATH": path})


def test_only_training_changes_the_model(nlp, corpus):
    pipe, examples = trained_on(nlp, corpus)
    run = pipe.training_run()
    with pytest.warns(SparseCRFWarning, match="SCW207"):
        nlp.update(examples_of(nlp, [(["new", "words"], ["XX", "XX"])]))
    model, objective = pipe.model, run.objective
    for use in (
        lambda: pipe.predict([example.predicted for example in examples]),
        *(lambda: pipe.labels, pipe.to_bytes, lambda: pipe.score(examples)),
        *(lambda: list(pipe.dump()), pipe.explain),
    ):
        use()
        assert pipe.model is model and pipe.training_run() is run and run.objective == objective
    assert pipe.labels == ("DT", "IN", "JJ", "NN", "VB")


def test_a_refused_initialize_leaves_a_trained_component_as_it_was(nlp, corpus, tmp_path):
    pipe, examples = trained_on(nlp, corpus)
    before, run, n_active = pipe.to_bytes(), pipe.training_run(), pipe.model.n_active
    assert n_active > 0
    learning = pipe.settings.learning.model_copy(update={"label_weights": {"?": 2.0}})
    kept, pipe.settings = pipe.settings, pipe.settings.model_copy(update={"learning": learning})
    with pytest.raises(SparseCRFError, match="SC353"):
        nlp.initialize(lambda: examples)
    pipe.settings = kept
    damaged = tmp_path / "run"
    damaged.write_bytes(b"no checkpoint")
    for read, settings in ((list, {}), (lambda: examples, {"checkpoint": damaged})):
        with pytest.raises(SparseCRFError):
            pipe.initialize(read, nlp=nlp, **settings)
    for path, code in (("nowhere", "SC"), (damaged, "SC3")):
        with pytest.raises(SparseCRFError, match=code):
            pipe.initialize(lambda: examples, nlp=nlp, init_weights=path)
    assert pipe.to_bytes() == before and pipe.training_run() is run
    assert pipe.model.n_active == n_active
    nlp.update(examples)
    assert pipe.training_run().objective < float("inf")


def test_updates_after_convergence_take_no_step(nlp, corpus):
    examples = examples_of(nlp, corpus.train[:10])
    nlp.initialize(lambda: examples)
    pipe: Any = nlp.get_pipe("sparse_crf")
    while not pipe.training_run().converged:
        nlp.update(examples)
    model, loss = pipe.model, nlp.update(examples)
    assert nlp.update(examples) == loss and pipe.model is model


def test_initialize_ends_the_threads_of_the_run_that_it_replaces(corpus):
    nlp, before = blank_with(n_threads=2), threading.enumerate()
    trained_on(nlp, corpus)
    begun = [thread for thread in threading.enumerate() if thread not in before]
    assert begun
    nlp.initialize(lambda: examples_of(nlp, corpus.train))
    assert not any(thread.is_alive() for thread in begun)
