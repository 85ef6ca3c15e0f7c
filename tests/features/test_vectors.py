"""Vectors in bins: several features of one template at a token."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer

from ..toy import vocab_of
from .reference_features import hash_values

# Three bins of equal probability under a normal distribution.
THIRD = 0.4307272992954575
THREE = {"a": [1.0, 2.0, 3.0]}


def with_tensor(rows: list[list[float]]) -> Doc:
    doc = Doc(Vocab(), words=["x"] * len(rows))
    doc.tensor = np.array(rows, dtype="f")
    return doc


def bins_of(vector: np.ndarray, bins: int) -> list[int]:
    """Return bins by the reference, for two and three bins."""
    size = np.sqrt(np.mean(vector.astype(np.float64) ** 2))
    edges = {2: [0.0], 3: [-THIRD, THIRD]}[bins]
    values = []
    for d, x in enumerate(vector.astype(np.float64)):
        b = sum(x / size >= edge for edge in edges) if size else 0
        values.append(d * bins + b + 1 if size else 0)
    return values


@given(
    arrays("f4", (4, 5), elements=st.floats(-(2.0**99), 2.0**99, width=32) | st.just(0.0)),
    st.sampled_from([2, 3]),
)
def test_equals_the_reference(matrix: np.ndarray, bins: int) -> None:
    doc = with_tensor(matrix.tolist())
    found = Featurizer([f"u:vector({bins})[0]"])([doc]).hashes
    expected = [bins_of(vector, bins) for vector in matrix]
    key = f"vector({bins})[0]"
    assert found.tolist() == [[hash_values(key, value) for value in row] for row in expected]


def test_where_vectors_come_from() -> None:
    vocab = vocab_of("", {"a": [1.0, -1.0], "b": [-1.0, 1.0]})
    table = Doc(vocab, words=["b", "a", "b"])
    hooked = Doc(vocab, words=["x", "y"])
    hooked.user_token_hooks["vector"] = lambda token: np.array([-1.0, 3.0 - token.i])
    for docs in ([table], [hooked], [with_tensor([[1.0, 2.0], [3.0, -4.0]])], [table, hooked]):
        found = Featurizer(["u:vector(2)[0]"])(docs).hashes.tolist()
        expected = [bins_of(token.vector, 2) for doc in docs for token in doc]
        assert found == [[hash_values("vector(2)[0]", v) for v in row] for row in expected]


TEMPLATES = pytest.mark.parametrize("template", ["u:vector(2)[0]", "u:vector[0]"])


@TEMPLATES
def test_no_vectors_and_those_of_another_width(template: str) -> None:
    features = Featurizer([template])
    with pytest.raises(SparseCRFError, match=r"\[SC125\].*the pipeline has no vectors"):
        features([Doc(Vocab(), words=["a"])])
    features([with_tensor([[1.0, 2.0]])])
    three, table = with_tensor([[1.0, 2.0, 3.0]]), Doc(vocab_of("", THREE), words=["a"])
    for doc, width in ((three, 3), (table, 3), (Doc(Vocab(), words=["a"]), 0)):
        with pytest.raises(SparseCRFError, match=rf"\[SC126\].*2 dimensions.*now have {width}"):
            features([doc])
    features.initialize()
    found = features([three])
    assert found.hashes.shape[1] + found.values.shape[1] == 3


@pytest.mark.parametrize(
    ("template", "value"),
    [
        *(("u:vector(2)[0]", value) for value in (np.nan, np.inf, -np.inf)),
        *(("u:vector[0]", value) for value in (np.nan, np.inf, -np.inf, 1e300)),
    ],
)
def test_vectors_that_are_not_finite(template: str, value: float) -> None:
    doc = Doc(Vocab(), words=["good", "bad"])
    doc.user_token_hooks["vector"] = lambda token: np.array([1.0, value if token.i else 2.0])
    message = r"\[SC127\].*not finite at the token 'bad' of the Doc that begins 'good bad "
    with pytest.raises(SparseCRFError, match=message):
        Featurizer([template])([doc])


def test_too_many_dimensions() -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC139\].* read 16385 attributes"):
        Featurizer(["u:vector(2)[0]"])([with_tensor([[1.0] * 16385])])
