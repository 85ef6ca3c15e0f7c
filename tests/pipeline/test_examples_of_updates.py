"""Components updated with examples that differ from those of initialization."""

import warnings
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFWarning

from ..conftest import Corpus
from ..toy import examples_of

KNOWN = [(["a", "b"], ["A", "B"]), (["b", "a"], ["B", "A"])]
OTHERS = [(["c", "c"], ["A", "A"]), (["d"], ["B"])]


def test_an_update_of_other_examples_is_warned_of_once(nlp: Language):
    nlp.initialize(lambda: examples_of(nlp, KNOWN))
    pipe: Any = nlp.get_pipe("sparse_crf")
    run = pipe.training_run()
    with pytest.warns(SparseCRFWarning, match=r"SCW207.* 2 examples.*begins 'c c '"):
        nlp.update(examples_of(nlp, OTHERS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.update(examples_of(nlp, OTHERS))
    assert pipe.training_run() is run and pipe.labels == ("A", "B")


def test_a_known_example_among_others_is_enough(nlp: Language):
    nlp.initialize(lambda: examples_of(nlp, KNOWN))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.update(examples_of(nlp, [*OTHERS, KNOWN[1]]))


def test_an_augmenter_may_make_other_examples(nlp: Language):
    nlp.config["corpora"] = {"train": {"path": "train.spacy", "augmenter": {"level": 0.1}}}
    nlp.config["training"].update(train_corpus="corpora.train", eval_frequency=1)
    pipe: Any = nlp.get_pipe("sparse_crf")
    pipe.initialize(lambda: examples_of(nlp, KNOWN), nlp=nlp)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*SCW207")
        pipe.update(examples_of(nlp, OTHERS))


def test_the_same_examples_read_again_or_in_another_vocab_are_known(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, corpus.train[:20])
    nlp.initialize(lambda: examples)
    stored = DocBin(docs=[example.reference for example in examples])
    vocab = spacy.blank("de").vocab
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.update(examples_of(nlp, corpus.train[:20]))
        nlp.update([Example(Doc(vocab, words=["a"]), doc) for doc in stored.get_docs(vocab)])
