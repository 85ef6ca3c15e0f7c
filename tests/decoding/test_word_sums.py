"""Decoding with cached sums of words equals decoding from every hash."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.crf.decoding import rows as word_sums
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.decoding.rows import ModelRows, WordScores
from spacy_sparsecrf.crf.kernels import model_lookup
from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.pipeline.features import lexemes
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer

from ..support.decoding_cases import table
from ..support.feature_cases import EVERY_TEMPLATE
from ..support.toy import vocab_of

WORDS = ["a", "an", "Ms.", "Straße", "sold", "12", "e-mails", "!", "NOUN", " ", "x1", "Two"]
VOCABS = [vocab_of("en"), vocab_of("en"), vocab_of("es")]


def random_model(observations: Observations, n_labels: int, seed: int) -> CRFModel:
    rng = np.random.default_rng(seed)
    return CRFModel(
        [f"L{y}" for y in range(n_labels)],
        "float64",
        table(rng, observations.unigram_hashes, n_labels, pairs=False),
        table(rng, observations.bigram_hashes, n_labels, pairs=True),
    )


def random_docs(
    n: int, seed: int, vocabs: Sequence[Vocab] = VOCABS[:1], words: Sequence[str] = WORDS
) -> list[Doc]:
    rng = np.random.default_rng(seed)
    docs = []
    for i in range(n):
        length = int(rng.integers(0, 9))
        starts = [bool(x) for x in rng.random(length) < 0.2]
        chosen = [words[k] for k in rng.integers(0, len(words), length)]
        spaces = [bool(x) for x in rng.random(length) < 0.5]
        vocab = vocabs[i * len(vocabs) // n]
        docs.append(Doc(vocab, words=chosen, spaces=spaces, sent_starts=starts))
    return docs


def decode(decoder: Decoder, features: Featurizer, docs: list[Doc]) -> list[int]:
    parts = features.readings(docs)
    return [label for part in parts for label in decoder.viterbi(part).tolist()]


def marginals(decoder: Decoder, features: Featurizer, docs: list[Doc]) -> np.ndarray:
    return np.concatenate([decoder.marginals(part) for part in features.readings(docs)])


@given(
    st.lists(st.sampled_from(EVERY_TEMPLATE), min_size=1, max_size=8, unique=True),
    st.integers(1, 10),
    st.integers(0, 1000),
    st.booleans(),
)
def test_equals_decoding_from_every_hash(templates, n_labels, seed, start_label):
    docs = random_docs(6, seed, VOCABS)
    features = Featurizer(templates, start_label)
    # The model has weights of the start label, even if the templates have none.
    trained = Featurizer(templates)(docs)
    decoder = Decoder(random_model(trained, n_labels, seed))
    observations = features(docs)
    if not observations.n_tokens:
        return
    assert decode(decoder, features, docs) == decoder.viterbi(observations).tolist()
    np.testing.assert_allclose(
        marginals(decoder, features, docs), decoder.marginals(observations), atol=1e-12
    )


@pytest.mark.parametrize("start_label", [True, False])
@pytest.mark.parametrize(
    "templates", [["b:", "u:lower[0]"], ["u:lower[-2]", "u:lower[1]", "b:"], ["b:lower[0]"]]
)
def test_pairs_of_all_tokens_are_scored_as_those_of_each(monkeypatch, templates, start_label):
    monkeypatch.setattr(lexemes, "MIN_ROWS", 2)
    docs = random_docs(12, 4)
    docs[3:3] = [Doc(VOCABS[0])]
    features = Featurizer(templates, start_label)
    trained = random_model(Featurizer(templates)(docs), 4, 1)
    decoder, growing = Decoder(trained), (Decoder(trained), Featurizer(templates, start_label))
    model = decoder.viterbi(features(docs)).tolist()
    assert decode(decoder, features, docs) == model and len(set(model)) > 1
    assert [y for doc in docs for y in decode(*growing, [doc])] == model
    found, expected = marginals(decoder, features, docs), decoder.marginals(features(docs))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("max_bytes", [0, 6 * 8 * 8 * 5, 2**20])
@pytest.mark.parametrize("max_rows", [3, 1000])
def test_results_do_not_depend_on_what_is_kept(monkeypatch, max_bytes, max_rows):
    monkeypatch.setattr(word_sums, "MIN_ROWS", 2)
    monkeypatch.setattr(lexemes, "MAX_ROWS", max_rows)
    words = [f"{word}{i}" for i in range(40) for word in WORDS]
    docs = random_docs(60, 5, words=words)
    docs = [doc for doc in docs if len(doc)]
    features = Featurizer()
    model = random_model(features(docs), 5, 5)
    rows = ModelRows(model.unigram, 8)
    (all_at_once,) = features.readings(docs)
    templates = all_at_once.templates
    expected = WordScores(rows, templates, 8).score(all_at_once)
    monkeypatch.setattr(word_sums, "MAX_BYTES", max_bytes)
    sums = WordScores(rows, templates, 8)
    order = np.random.default_rng(1).permutation(len(docs))
    for i in [*order, *order[::-1]]:
        (part,) = features.readings([docs[i]])
        first = sum(map(len, docs[:i]))
        # Bit-identical: the order of summation is fixed.
        np.testing.assert_array_equal(sums.score(part), expected[first : first + len(docs[i])])
    # One Doc must fit, with five distances, whatever the bound.
    assert len(sums) <= max(8 * 5, max_bytes // (8 * 8))


def test_interrupted_sums_are_not_used(monkeypatch):
    docs = random_docs(10, 9)
    features = Featurizer()
    decoder = Decoder(random_model(features(docs), 5, 9))
    expected = decode(decoder, features, docs)

    sum_groups, calls = model_lookup.sum_groups, []

    def interrupt_once(*arguments: object) -> object:
        calls.append(len(calls))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return sum_groups(*arguments)

    decoder = Decoder(random_model(features(docs), 5, 9))
    monkeypatch.setattr(model_lookup, "sum_groups", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        decode(decoder, features, docs)
    assert decode(decoder, features, docs) == expected
