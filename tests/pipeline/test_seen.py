"""A batch solver that is updated with other examples than it was initialized with."""

import warnings

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.pipeline.seen import Seen

from ..conftest import Corpus
from ..toy import examples_of


def test_examples_that_initialize_has_not_read_are_warned_of_once(nlp: Language, corpus: Corpus):
    few, others = examples_of(nlp, corpus.train[:20]), examples_of(nlp, corpus.dev)
    nlp.initialize(lambda: few)
    nlp.update(few[:5])
    begins = others[0].reference.text[:20]
    with pytest.warns(SparseCRFWarning, match=f"SCW207.*20 examples.*begins '{begins}"):
        nlp.update(others)
    nlp.update(others)
    nlp.initialize(lambda: few)
    with pytest.warns(SparseCRFWarning, match="SCW207"):
        nlp.update(others)


def test_the_same_examples_read_again_or_in_another_vocab_are_known(nlp: Language, corpus: Corpus):
    examples = examples_of(nlp, corpus.train[:20])
    nlp.initialize(lambda: examples)
    stored = DocBin(docs=[example.reference for example in examples])
    vocab = spacy.blank("de").vocab
    nlp.update(examples_of(nlp, corpus.train[:20]))
    nlp.update([Example(Doc(vocab, words=["a"]), doc) for doc in stored.get_docs(vocab)])


def test_examples_are_not_looked_at_where_training_is_on_batches(corpus: Corpus):
    nlp = spacy.blank("en")
    solver = {"@crf_solvers": "spacy_sparsecrf.SGDL1.v1", "online": True}
    nlp.config["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 8}
    nlp.add_pipe("sparse_crf", config={"solver": solver, "n_threads": 1})
    nlp.initialize(lambda: examples_of(nlp, corpus.train))
    nlp.update(examples_of(nlp, corpus.dev))


def test_nothing_that_was_read_tells_nothing(nlp: Language, corpus: Corpus):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Seen().warn_of_others("x", examples_of(nlp, corpus.dev))
        Seen().warn_of_others("x", [])
