"""Vectors in bins, and real-valued features from templates to predictions: vectors and numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.naming import hash_names

from ..support.reference_features import hash_values
from ..support.toy import blank_with, train, vocab_of

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
def test_equals_the_reference(matrix, bins):
    doc = with_tensor(matrix.tolist())
    found = Featurizer([f"u:vector({bins})[0]"])([doc]).hashes
    expected = [bins_of(vector, bins) for vector in matrix]
    key = f"vector({bins})[0]"
    assert found.tolist() == [[hash_values(key, value) for value in row] for row in expected]


def test_where_vectors_come_from():
    vocab = vocab_of("", {"a": [1.0, -1.0], "b": [-1.0, 1.0]})
    table = Doc(vocab, words=["b", "a", "b"])
    hooked = Doc(vocab, words=["x", "y"])
    hooked.user_token_hooks["vector"] = lambda token: np.array([-1.0, 3.0 - token.i])
    for docs in ([table], [hooked], [with_tensor([[1.0, 2.0], [3.0, -4.0]])], [table, hooked]):
        found = Featurizer(["u:vector(2)[0]"])(docs).hashes.tolist()
        expected = [bins_of(token.vector, 2) for doc in docs for token in doc]
        assert found == [[hash_values("vector(2)[0]", v) for v in row] for row in expected]


of_both_kinds = pytest.mark.parametrize("template", ["u:vector(2)[0]", "u:vector[0]"])


@of_both_kinds
def test_no_vectors_and_those_of_another_width(template):
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
def test_vectors_that_are_not_finite_or_have_too_many_dimensions(template, value):
    doc = Doc(Vocab(), words=["good", "bad"])
    doc.user_token_hooks["vector"] = lambda token: np.array([1.0, value if token.i else 2.0])
    message = r"\[SC127\].*not finite at the token 'bad' of the Doc that begins 'good bad "
    with pytest.raises(SparseCRFError, match=message):
        Featurizer([template])([doc])
    with pytest.raises(SparseCRFError, match=r"\[SC139\].* read 16385 attributes"):
        Featurizer(["u:vector(2)[0]"])([with_tensor([[1.0] * 16385])])


TEMPLATES = ["b:", "u:vector[0]", "u:lower[0]", "u:vector[-1]", "u:value(_.number)[1]"]


@pytest.fixture(autouse=True)
def _extension(own_extensions) -> None:
    Token.set_extension("number", default=None)


def numbered(values: Sequence[Any], vocab: Vocab | None = None) -> Doc:
    doc = Doc(vocab or Vocab(), words=[f"w{i}" for i in range(len(values))])
    for token, value in zip(doc, values, strict=True):
        token._.number = value
    return doc


def test_vectors_are_read_as_they_are():
    vocab = vocab_of("", {"a": [1.0, -2.0, 30.0], "b": [-0.25, 0.0, 0.5]})
    observations = Featurizer(["u:vector[0]", "b:"])([Doc(vocab, words=["a", "b", "unknown"])])
    expected = [[1.0, -2.0, 30.0], [-0.25, 0.0, 0.5], [0.0, 0.0, 0.0]]
    assert observations.values.tolist() == expected
    assert observations.values.dtype == np.float32
    names = ["vector[0]=d0", "vector[0]=d1", "vector[0]=d2"]
    assert observations.value_keys.tolist() == hash_names(names).tolist()
    assert observations.hashes.shape == (3, 1)
    assert observations.unigram_columns.tolist() == []


def test_where_values_are_read():
    doc = with_tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
    for token, start in zip(doc, [True, False, False, True, False], strict=True):
        token.is_sent_start = start
    templates = [f"u:vector[{at}]" for at in ("0", "-1", "1", "-2", "@1", "@-1", "@3")]
    expected = [
        [1.0, 0.0, 2.0, 0.0, 1.0, 3.0, 3.0],
        [2.0, 1.0, 3.0, 0.0, 1.0, 3.0, 3.0],
        [3.0, 2.0, 0.0, 1.0, 1.0, 3.0, 3.0],
        [4.0, 0.0, 5.0, 0.0, 4.0, 5.0, 0.0],
        [5.0, 4.0, 0.0, 0.0, 4.0, 5.0, 0.0],
    ]
    assert Featurizer(templates)([doc]).values.tolist() == expected
    empty = Doc(doc.vocab, words=[])
    assert Featurizer(templates)([empty, doc, empty]).values.tolist() == expected


def test_numbers_of_tokens():
    values = [None, 2, -0.5, True, np.float32(0.25), np.int64(7), np.True_]
    found = Featurizer(["u:value(_.number)[0]"])([numbered(values)])
    assert found.values.ravel().tolist() == [0.0, 2.0, -0.5, 1.0, 0.25, 7.0, 1.0]
    assert found.value_keys.tolist() == hash_names(["value(_.number)[0]=d0"]).tolist()


def test_vocabs_and_parts():
    features = Featurizer(["u:vector[0]", "u:value(_.number)[0]"])
    docs = [numbered([1, 2]), numbered([3.5])]
    for i, doc in enumerate(docs):
        doc.tensor = np.full((len(doc), 2), i, dtype="f")
    assert features(docs).values.tolist() == [[0, 0, 1], [0, 0, 2], [1, 1, 3.5]]
    assert len(features.readings(docs)) == 2
    assert features([]).values.shape == (0, 3)


@pytest.mark.parametrize("name", ["vector{}", "value(_.number){}"])
@pytest.mark.parametrize("template", ["b:X[0]", "*:X[1]", "u:X[0]|lower[0]", "u:X[0]|X[1]"])
def test_numbers_are_conjoined_with_the_label_alone(name, template):
    text = template.replace("X", name.format(""))
    with pytest.raises(SparseCRFError, match=r"\[SC390\] Template 2 .* reads a number"):
        Featurizer(["u:lower[0]", text])


NOT_FINITE = r"\[SC392\].*token\._\.number is .* at the token 'w1' of the Doc that begins 'w0 w1"


@pytest.mark.parametrize(
    ("template", "value", "message"),
    [
        *(
            ("u:value(_.number)[0]", value, NOT_FINITE)
            for value in (float("nan"), float("inf"), 1e39, 10**400, np.float64(-1e300))
        ),
        ("u:value(_.number)[0]", "1", r"\[SC391\].*is a str at the token 'w1'"),
        ("u:value(_.number)[0]", [1.0], r"\[SC391\].*is a list at the token 'w1'"),
        ("u:value(_.number)[0]", 1j, r"\[SC391\].*is a complex at the token 'w1'"),
        ("u:value(_.absent)[0]", 1, r"\[SC120\].*token\._\.absent"),
    ],
)
def test_values_that_are_refused(template, value, message):
    with pytest.raises(SparseCRFError, match=message):
        Featurizer([template])([numbered([1, value])])


def made_pipeline(templates: Sequence[str] = TEMPLATES, **config: Any) -> Language:
    nlp = blank_with(
        templates, **{"l1": 0.05, "l2": 0.01, "learning": {"dtype": "float64"}, **config}
    )
    nlp.vocab.reset_vectors(width=4)
    rng = np.random.default_rng(1)
    for i in range(40):
        nlp.vocab.set_vector(f"w{i}", rng.normal(size=4).astype("f"))
    return nlp


def made_examples(nlp: Language, n: int = 40) -> list[Example]:
    """The tag shows which dimension is largest, and whether the next number is positive."""
    rng = np.random.default_rng(2)
    examples = []
    for _ in range(n):
        words = [f"w{i}" for i in rng.integers(0, 40, 6)]
        numbers = rng.normal(size=7)
        numbers[6] = 0.0
        tags = [
            f"{nlp.vocab.get_vector(word)[:2].argmax()}{'+' if number > 0 else '-'}"
            for word, number in zip(words, numbers[1:], strict=True)
        ]
        doc = Doc(nlp.vocab, words=words)
        for token, number in zip(doc, numbers.tolist(), strict=False):
            token._.number = number
        examples.append(Example(doc, Doc(nlp.vocab, words=words, tags=tags)))
    return examples


def predicted(nlp: Language, examples: Sequence[Example]) -> list[list[np.ndarray]]:
    pipe = nlp.get_pipe("sparse_crf")
    docs = [example.predicted for example in examples]
    return [pipe.predict(docs), pipe.marginals(docs)]


def test_component_learns_and_is_saved(tmp_path):
    nlp = made_pipeline()
    examples = made_examples(nlp)
    losses = train(nlp, examples, 8)
    assert losses[-1] < losses[0]
    pipe = nlp.get_pipe("sparse_crf")
    labels, marginals = predicted(nlp, examples)
    gold = [[pipe.label_data.index(t.tag_) for t in e.reference] for e in examples]
    assert np.mean(np.concatenate(labels) == np.concatenate(gold)) > 0.9
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    for got, expected in zip(predicted(loaded, examples), (labels, marginals), strict=True):
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    # Predictions use readings; observations must give the same.
    decoder, docs = pipe.predictor().decoder, [example.predicted for example in examples]
    observations = pipe.features(docs)
    np.testing.assert_allclose(decoder.marginals(observations), np.concatenate(marginals), 1e-12)
    loaded.vocab.reset_vectors(width=5)
    with pytest.raises(SparseCRFError, match=r"\[SC126\].*4 dimensions in training.*now have 5"):
        loaded("w1 w2")


def test_names_explanations_and_patches():
    nlp = made_pipeline()
    examples = made_examples(nlp)
    train(nlp, examples, 6)
    pipe = nlp.get_pipe("sparse_crf")
    lines = list(pipe.dump())
    assert any("\tvector[0]=d0\t" in line for line in lines)
    assert any("\tvalue(_.number)[1]=d0\t" in line for line in lines)
    assert not any("\t0x" in line for line in lines)
    doc = examples[0].predicted
    explained = pipe.explain_doc(doc)
    scores = {}
    for t, token in enumerate(explained.tokens):
        for c in token.contributions:
            if c.feature == "value(_.number)[1]=d0":
                scores[t] = c.weight
    weight = {
        (test, label): float(value)
        for kind, test, _, label, value in (line.split("\t") for line in lines)
        if kind == "u"
    }
    assert len(scores) > 2
    for t, score in scores.items():
        own = weight.get(("value(_.number)[1]=d0", explained.tokens[t].label), 0.0)
        assert score == pytest.approx(own * np.float32(doc[t + 1]._.number), rel=1e-6)
    # The contributions sum to the gap to the runner-up.
    decoder, observations = pipe.predictor().decoder, pipe.features([doc])
    labels = pipe.predict([doc])[0]
    for t, token in enumerate(explained.tokens):
        rivals = labels.copy()
        rivals[t] = pipe.label_data.index(token.runner_up)
        own, other = (decoder.log_probability(observations, each)[0] for each in (labels, rivals))
        assert sum(c.difference for c in token.contributions) == pytest.approx(own - other)
    changed = [line.rsplit("\t", 1)[0] + "\t7.5" for line in lines if "vector[0]=d0\t" in line]
    assert pipe.patch(changed) == len(changed)
    assert sum(line.endswith("\t7.5") for line in pipe.dump()) == len(changed)
