"""Prediction by the component does not depend on cached words and sums, nor on threads."""

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokens import Doc

from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer

from ..conftest import Corpus
from ..support.toy import blank_with, docs_of, examples_of, run_steps, tags_of, train

TEMPLATES = ["b:", "u:", "u:norm[0]", "u:norm[-1]|lower[0]", "u:like_num[0]", "u:lower[1]"]


@pytest.fixture
def normed(corpus) -> Language:
    """A pipeline whose features read an attribute that users can change in the vocab."""
    nlp = blank_with(TEMPLATES, l1=0.1)
    train(nlp, examples_of(nlp, corpus.train), 4)
    return nlp


def plain(nlp: Language, docs: Sequence[Doc]) -> list[int]:
    """Return labels from every feature's hash, with a new featurizer and decoder."""
    pipe = nlp.get_pipe("sparse_crf")
    features = Featurizer(pipe.features.templates, pipe.features.start_label)
    return Decoder(pipe.model).viterbi(features(docs)).tolist()


def predicted(nlp: Language, docs: Sequence[Doc]) -> list[int]:
    return np.concatenate(nlp.get_pipe("sparse_crf").predict(docs)).tolist()


def test_a_norm_that_changes_is_seen(normed):
    words = ["fentovtion", "fentovizes", "of"]
    before = predicted(normed, [Doc(normed.vocab, words=words)])
    normed.vocab["fentovtion"].norm_ = "of"
    normed.vocab["fentovizes"].norm_ = "the"
    doc = Doc(normed.vocab, words=words)
    assert predicted(normed, [doc]) == plain(normed, [doc]) != before


def add_labels(pipe: Any) -> None:
    for i in range(4):  # more labels than fit in the padding of a row of scores
        pipe.add_label(f"Z{i}")


CHANGES: list[Callable[[Any], object]] = [
    lambda pipe: pipe.patch(["u\tsuffix(3)[0]=ion\t#\tVB\t50"]),
    lambda pipe: setattr(pipe, "model", CRFModel(pipe.label_data)),
    lambda pipe: setattr(pipe, "features", Featurizer(["b:", "u:suffix(3)[0]"])),
    add_labels,
]


@pytest.mark.parametrize("change", CHANGES, ids=["weights", "model", "features", "labels"])
def test_what_changes_after_prediction_is_seen(trained, corpus, change):
    docs = docs_of(trained, corpus.dev)
    first = predicted(trained, docs)
    change(trained.get_pipe("sparse_crf"))
    assert predicted(trained, docs) == plain(trained, docs)
    assert (predicted(trained, docs) == first) == (change is add_labels)


def test_steps_after_prediction_are_seen(nlp, corpus):
    examples = examples_of(nlp, corpus.train)
    nlp.initialize(lambda: examples)
    docs = docs_of(nlp, corpus.dev)
    for _ in range(3):
        run_steps(nlp, examples, 1)
        assert predicted(nlp, docs) == plain(nlp, docs)


def test_features_may_be_a_plain_function(trained, corpus):
    docs = docs_of(trained, corpus.dev)
    pipe = trained.get_pipe("sparse_crf")
    expected = predicted(trained, docs)
    templates = pipe.features

    def features(docs: Sequence[Doc], sequences: str) -> Observations:
        return templates(docs, sequences)

    pipe.features = features
    assert predicted(trained, docs) == expected


def test_docs_of_several_vocabs_and_without_tokens(fitted, corpus):
    others = [spacy.blank("en"), spacy.blank("de"), fitted]
    docs = [doc for nlp in others for doc in docs_of(nlp, corpus.dev[:5])]
    docs.insert(3, Doc(others[0].vocab))
    docs.insert(7, Doc(others[2].vocab))
    pipe = fitted.get_pipe("sparse_crf")
    apart = tags_of([pipe(doc.copy()) for doc in docs])
    assert tags_of(list(pipe.pipe(docs, batch_size=100))) == apart
    assert apart[3] == []


def test_nothing_that_is_kept_is_stored(trained, corpus, tmp_path):
    fresh = trained.to_bytes(exclude=["vocab"])
    list(trained.pipe(docs_of(trained, corpus.dev)))
    assert trained.to_bytes(exclude=["vocab"]) == fresh


def test_tags_written_after_strings_are_lost(trained):
    words = ["the", "fentovtion"]
    with trained.memory_zone():
        assert tags_of([trained(Doc(trained.vocab, words=words))]) == [["DT", "NN"]]
    assert tags_of([trained(Doc(trained.vocab, words=words))]) == [["DT", "NN"]]
    vocab = spacy.blank("xx").vocab
    pipe = trained.get_pipe("sparse_crf")
    for _ in range(2):
        assert tags_of([pipe(Doc(vocab, words=words))]) == [["DT", "NN"]]
        vocab.strings.from_bytes(StringStore().to_bytes())


def test_memory_zones_change_no_label_and_leave_no_words(trained, corpus):
    """20,000 new words in 20 zones, and the words of the corpus before, within and after them."""
    rng = random.Random(1)
    pipe: Any = trained.get_pipe("sparse_crf")

    def labels() -> list[list[str]]:
        return tags_of([*trained.pipe(docs_of(trained, corpus.dev[:5]))])

    expected, n_strings = labels(), len(trained.vocab.strings)
    own = ["".join(rng.choices("abcdefghijk", k=9)) for _ in range(20_000)]
    found = []
    for first in (*range(0, 20_000, 1000), 0):
        with trained.memory_zone():
            docs = [
                Doc(trained.vocab, words=own[i : i + 50]) for i in range(first, first + 1000, 50)
            ]
            found.append(tags_of([*trained.pipe(docs)]))
            assert labels() == expected
    assert labels() == expected and found[0] == found[-1]
    assert len(trained.vocab.strings) == n_strings
    # Attributes of words stay, by their hashes, without strings.
    table = pipe.features._table[1]
    assert len(table) > 20_000


N_THREADS = 8


def digest(found: Any) -> Any:
    """Return a comparable form of a result: arrays as bytes, other objects as strings."""
    if isinstance(found, list | tuple):
        return [digest(part) for part in found]
    return found.tobytes() if isinstance(found, np.ndarray) else str(found)


def run(nlp: Language, corpus: Corpus, seed: int, barrier: threading.Barrier | None) -> list[Any]:
    """Run each job once, in a random order, and return the results by name."""
    pipe: Any = nlp.get_pipe("sparse_crf")
    rng = random.Random(seed)
    docs = docs_of(nlp, rng.sample(corpus.dev, 6))
    examples = examples_of(nlp, rng.sample(corpus.dev, 4))
    jobs = {
        "predict": lambda: pipe.predict(docs),
        "label": lambda: [token.tag_ for doc in docs for token in pipe(doc.copy())],
        "marginals": lambda: pipe.marginals(docs),
        "nbest": lambda: pipe.nbest(docs[0], 3),
        "explain": lambda: [pipe.explain(3), pipe.explain_doc(docs[1])],
        "to_bytes": lambda: pipe.to_bytes(exclude=["vocab"]),
        "score": lambda: nlp.evaluate(examples)["tag_acc"],
    }
    names = rng.sample(sorted(jobs), len(jobs))
    if barrier:
        barrier.wait(60.0)
    found = {name: digest(jobs[name]()) for name in names}
    return sorted(found.items())


@pytest.mark.parametrize("n_rounds", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_threads_find_what_one_finds(trained_dir, corpus, n_rounds):
    expected = [run(spacy.load(trained_dir), corpus, seed, None) for seed in range(N_THREADS)]
    nlp, barrier = spacy.load(trained_dir), threading.Barrier(N_THREADS)  # its caches are empty
    with ThreadPoolExecutor(N_THREADS) as pool:
        for _ in range(n_rounds):
            found = pool.map(partial(run, nlp, corpus, barrier=barrier), range(N_THREADS))
            assert list(found) == expected
