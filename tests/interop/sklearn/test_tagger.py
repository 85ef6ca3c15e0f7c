"""Single sequences: the same distribution as of hashed observations, read once, without files."""

import builtins
import io
import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.interop.sequences import predictor as home
from spacy_sparsecrf.interop.sequences.item_encoding import bigrams_of, observe, read_attributes
from spacy_sparsecrf.interop.sequences.items import Vocabulary
from spacy_sparsecrf.pycrfsuite import Tagger
from spacy_sparsecrf.sklearn import CRF

from ...support.sequences import make_xy

VALUES = st.one_of(
    st.sampled_from(["a", "b", "unknown", "", True, False, 0, 1, 2, -0.5, 0.25, 1.0, 0.0]),
    st.lists(st.sampled_from(["p", "q", "unknown"]), max_size=2),
    st.builds(np.float32, st.sampled_from([0.0, 0.75])),
)
FLAT = st.dictionaries(st.sampled_from(["k", "l", "m"]), VALUES, max_size=3)
TOKENS = st.dictionaries(
    st.sampled_from(["k", "l", "next", "previous"]),
    VALUES | FLAT | st.fixed_dictionaries({"k": FLAT}),
)
SEQUENCES = st.lists(
    st.lists(TOKENS | st.lists(st.sampled_from(["k:a", "x"])), max_size=4), min_size=1, max_size=4
)


@pytest.fixture(scope="module", params=[(), True], ids=["transitions", "pairs"])
def tagger(request) -> Tagger:
    """A tagger that has seen drawn tokens, with features of pairs of labels or without."""
    draw = np.random.default_rng(0)
    values = ["a", "b", True, False, 1, 0, 0.5, -1.5, ["p", "q"]]

    def flat() -> dict[str, Any]:
        return {key: values[draw.integers(len(values))] for key in "klm" if draw.random() < 0.7}

    def token() -> dict[str, Any]:
        return flat() | {"next": flat(), "previous": {"k": flat(), **flat()}}

    X = [[token() for _ in range(draw.integers(1, 5))] for _ in range(60)]
    y = [["ABC"[draw.integers(3)] for _ in sequence] for sequence in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparseCRFWarning)  # real values have no pairs
        found = CRF(c1=0.02, c2=0.02, max_iterations=8, bigrams=request.param).fit(X, y).tagger_
    assert found is not None
    return found


def hashed(tagger: Tagger, X: list[Any]) -> tuple[Decoder, Any]:
    """Return a decoder, and the observations of sequences as in training."""
    trained = tagger.predictor.trained
    chosen = bigrams_of(trained.model, len(trained.attributes))
    read = read_attributes(X, Vocabulary(trained.numbers))
    return Decoder(trained.model), observe(read, chosen, start_label=True)


@given(X=SEQUENCES)
def test_scores_by_number_are_scores_by_hash(tagger, X):
    decoder, observations = hashed(tagger, X)
    expected = decoder.marginals(observations)
    found = [row for rows in tagger.predictor.marginals(X) for row in rows]
    names = tagger.labels()
    np.testing.assert_allclose(
        [[row[name] for name in names] for row in found] or np.empty((0, 3)), expected, atol=1e-12
    )
    for x, labels in zip(X, tagger.predictor.labels(X), strict=True):
        tagger.set(x)
        assert tagger.tag() == labels
        best = tagger.probability(labels)
        chain = tagger.predictor.chain(x)
        assert best == math.exp(tagger.predictor.log_probability(chain, labels))
        [other] = hashed(tagger, [x])[0].nbest(hashed(tagger, [x])[1], 1)
        assert best == pytest.approx(math.exp(other[1][0]), abs=1e-9)
        [rows] = tagger.predictor.marginals([x])
        for t, label in enumerate(labels):
            assert tagger.marginal(label, t) == pytest.approx(rows[t][label], abs=1e-12)


def test_features_are_read_once_and_no_file_is_opened(monkeypatch):
    X, y = make_xy()
    X = [[{**token, "real": 0.5 + t} for t, token in enumerate(tokens)] for tokens in X]
    tagger = CRF(c1=0.1, max_iterations=9).fit(X, y).tagger_
    assert tagger is not None
    tagger.tag(X[0])
    read, reads = home.read_numbers, []

    def counted(*arguments: Any) -> Any:
        reads.append(arguments)
        return read(*arguments)

    def refused(*arguments: Any, **named: Any) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(home, "read_numbers", counted)
    monkeypatch.setattr(builtins, "open", refused)
    monkeypatch.setattr(io, "open", refused)
    tagger.set(X[0])
    labels = tagger.tag()
    assert 0 < tagger.probability(labels) <= min(map(tagger.marginal, labels, range(len(labels))))
    assert len(reads) == 1
    assert tagger.probability(["absent", *labels[1:]]) == 0.0
    with pytest.raises(SparseCRFError, match="SC802"):
        tagger.probability(labels[1:])


def test_before_a_sequence_is_set_there_are_no_tokens():
    X, y = make_xy()
    tagger = CRF(c1=0.1, max_iterations=9).fit(X, y).tagger_
    assert tagger is not None and tagger.tag() == [] and tagger.probability([]) == 1.0
    with pytest.raises(SparseCRFError, match="SC819.*0 tokens"):
        tagger.marginal(tagger.labels()[0], 0)


def test_the_vocabulary_of_nested_dicts_keeps_a_bounded_number_of_entries(monkeypatch):
    monkeypatch.setattr("spacy_sparsecrf.interop.sequences.items._MOST_CACHED", 10)
    vocabulary = Vocabulary(Counter({"near:w:a": 1}))
    for i in range(100):
        found = read_attributes([[{"near": {"w": "a"}, f"k{i}": {"w": f"{i}"}}]], vocabulary)
        assert found.numbers.tolist() == [1]

    def size(of: Vocabulary) -> int:
        return len(of) + len(of._inner) + sum(map(size, of._inner.values()))

    assert size(vocabulary) <= 10
