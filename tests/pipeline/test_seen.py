"""Components updated with examples that differ from those of initialization."""

import random
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import minibatch

from spacy_sparsecrf.errors import SparseCRFWarning

from ..conftest import Corpus
from ..toy import accuracy, blank_with, examples_of

BCD = {"@crf_solvers": "spacy_sparsecrf.BCD.v1"}


def train(nlp: Language, examples: list[Example], n: int, n_epochs: int = 3) -> float:
    """Run spaCy's documented loop, initialized on a sample. RETURNS: the last loss."""
    loss, rng = {}, random.Random(0)
    optimizer = nlp.initialize(lambda: examples[:n])
    for _ in range(n_epochs):
        rng.shuffle(examples)
        for batch in minibatch(examples, 8):
            loss = nlp.update(batch, sgd=optimizer)
    return loss["sparse_crf"]


@pytest.mark.parametrize("config", [{}, {"solver": BCD}, {"model": "memm"}])
def test_a_sample_initializes_and_batches_train(corpus: Corpus, config: dict[str, Any]):
    sentences, losses = corpus.train[:100], []
    for n in (len(sentences), 10):
        nlp = blank_with(**config)
        losses.append(train(nlp, examples_of(nlp, sentences), n))
    assert accuracy(nlp, corpus.dev) == 1.0
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_an_example_that_is_given_once_is_learnt_before_the_model_is_used(nlp: Language):
    known = [(["a", "b", "a"], ["A", "B", "A"])] * 3
    nlp.initialize(lambda: examples_of(nlp, known))
    nlp.update(examples_of(nlp, known))
    pipe: Any = nlp.get_pipe("sparse_crf")
    nlp.update(examples_of(nlp, [(["c", "c", "c"], ["C", "C", "C"])]))
    assert [token.tag_ for token in nlp("c c")] == ["C", "C"]
    assert pipe.labels == pipe.model.labels == ("A", "B", "C")


def test_annotation_for_other_components_is_no_correction(nlp: Language):
    known = [(["a", "b", "a"], ["A", "B", "A"]), (["c", "c", "c"], ["C", "C", "C"])]
    nlp.initialize(lambda: examples_of(nlp, known))
    pipe: Any = nlp.get_pipe("sparse_crf")
    nlp.update(examples_of(nlp, known))
    run = pipe.training_run()
    for words, _ in known:
        gold = Doc(nlp.vocab, words, ents=["B-X", "O", "O"])
        nlp.update([Example(Doc(nlp.vocab, words), each) for each in (gold, Doc(nlp.vocab, words))])
    assert [token.tag_ for token in nlp("c c a")] == ["C", "C", "A"]
    assert pipe.training_run() is run


def test_a_correction_in_place_is_learnt(nlp: Language):
    known = [(["a", "b", "a"], ["A", "B", "A"]), (["c", "c", "c"], ["A", "A", "A"])]
    given = examples_of(nlp, known)
    nlp.initialize(lambda: given)
    for token in given[1].reference:
        token.tag_ = "C"
    nlp.update(given)
    assert [token.tag_ for token in nlp("c c a")] == ["C", "C", "A"]


def test_a_correction_of_a_known_text_is_learnt(nlp: Language):
    known = [(["a", "b", "a"], ["A", "B", "A"]), (["c", "c", "c"], ["A", "A", "A"])]
    nlp.initialize(lambda: examples_of(nlp, known))
    nlp.update(examples_of(nlp, known))
    pipe: Any = nlp.get_pipe("sparse_crf")
    nlp.update(examples_of(nlp, [(["c", "c", "c"], ["C", "C", "C"])]))
    assert [token.tag_ for token in nlp("c c a")] == ["C", "C", "A"]
    run = pipe.training_run()
    nlp.update(examples_of(nlp, known))
    assert pipe.training_run() is run


def test_examples_that_cannot_be_learnt_are_warned_of_once(nlp: Language):
    known = examples_of(nlp, [(["a", "b"], ["A", "B"])])
    nlp.initialize(lambda: known)
    pipe: Any = nlp.get_pipe("sparse_crf")
    pipe.initialize(lambda: known, nlp=nlp, labels=["A", "B"])
    other = examples_of(nlp, [(["c", "c"], ["C", "C"])])
    with pytest.warns(SparseCRFWarning, match=r"SCW207.* 1 examples.*begins 'c c '.*SC206.*'C'"):
        nlp.update(other)
    nlp.update(other)
    assert pipe.labels == ("A", "B")


def test_a_run_with_a_checkpoint_keeps_its_corpus(nlp: Language, corpus: Corpus, tmp_path: Path):
    few, others = examples_of(nlp, corpus.train[:20]), examples_of(nlp, corpus.dev)
    nlp.config["initialize"]["components"]["sparse_crf"] = {"checkpoint": str(tmp_path / "run")}
    nlp.initialize(lambda: few)
    nlp.update(few[:5])
    begins = others[0].reference.text[:20]
    with pytest.warns(SparseCRFWarning, match=f"SCW207.*20 examples.*begins '{begins}.*checkpoint"):
        nlp.update(others)
    nlp.update(others)


def test_the_same_examples_read_again_or_in_another_vocab_are_known(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, corpus.train[:20])
    nlp.initialize(lambda: examples)
    pipe: Any = nlp.get_pipe("sparse_crf")
    run = pipe.training_run()
    stored = DocBin(docs=[example.reference for example in examples])
    vocab = spacy.blank("de").vocab
    nlp.update(examples_of(nlp, corpus.train[:20]))
    nlp.update([Example(Doc(vocab, words=["a"]), doc) for doc in stored.get_docs(vocab)])
    assert pipe.training_run() is run
