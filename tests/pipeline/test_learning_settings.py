"""The block [components.NAME.learning]: effect of each setting, and refusals."""

import numpy as np
import pytest
import spacy
from confection import Config
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.corpus.numbering import without_rare
from spacy_sparsecrf.corpus.transform import weighted
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.factories import DEFAULT_LEARNING, FACTORIES

from ..toy import blank_with
from ..training.learning_cases import loss_of, partial_problem

WEIGHT = "spacy_sparsecrf_test_weight"
SENTENCES = [("the plan fails", "DT NN VB"), ("plan the trip", "VB DT NN"), ("a trip", "DT NN")]


@pytest.fixture
def weight():
    Doc.set_extension(WEIGHT, default=1.0)
    yield WEIGHT
    Doc.remove_extension(WEIGHT)


def pipeline(target: dict[str, object] | None = None, model="chain", **learning) -> Language:
    config = {"l1": 0.1, "model": model, "learning": learning}
    if target is not None:
        config["target"] = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", **target}
    return blank_with(lang="en", **config)


def examples_of(nlp: Language, sentences=SENTENCES, weights=None) -> list[Example]:
    examples = []
    for i, (text, tags) in enumerate(sentences):
        words = text.split()
        reference = Doc(nlp.vocab, words=words, tags=tags.split())
        if weights is not None:
            reference._.set(WEIGHT, weights[i])
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


def trained(nlp: Language, examples: list[Example], n: int = 8) -> tuple[float, bytes]:
    """Return the loss and the weights after some updates."""
    nlp.initialize(lambda: examples)
    for _ in range(n):
        loss = nlp.update(examples)["sparse_crf"]
    pipe = nlp.get_pipe("sparse_crf")
    pipe.to_bytes()
    return loss, pipe.model.to_bytes()


def test_defaults_are_in_the_config_and_change_nothing():
    nlp = pipeline()
    assert all(each.default_config["learning"] == DEFAULT_LEARNING for each in FACTORIES.values())
    assert nlp.config["components"]["sparse_crf"]["learning"] == DEFAULT_LEARNING
    again = Config().from_str(nlp.config.to_str())
    assert again["components"]["sparse_crf"]["learning"] == DEFAULT_LEARNING
    assert trained(nlp, examples_of(nlp)) == trained(nlp, examples_of(nlp))


LOST_AS_KEYS = [":", "a:b", "A=B", "#", ";", "[X]", " a", "a ", "a\nb", ""]
KEPT_AS_KEYS = ["NN", "B-PER", "''", "``", "$", ",", ".", "%", "a b", "-", "é", "x"]


@pytest.mark.parametrize(
    "weights",
    [{label: i / 2 for i, label in enumerate(KEPT_AS_KEYS)}, [[x, 2.0] for x in LOST_AS_KEYS]],
    ids=["keys", "pairs"],
)
def test_a_config_keeps_labels_that_are_keys_and_any_in_pairs(weights):
    nlp = pipeline(label_weights=weights)
    again = spacy.util.load_model_from_config(Config().from_str(nlp.config.to_str()))
    assert again.get_pipe("sparse_crf").settings.learning.label_weights == dict(weights)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_rare_tests_are_those_that_are_counted_below_the_limit(seed, min_freq):
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 8, (12, 3)).astype(np.uint64)
    flat = hashes.ravel().tolist()
    expected = [value if flat.count(value) >= min_freq else 0 for value in flat]
    assert without_rare(hashes, min_freq).ravel().tolist() == expected


@pytest.mark.parametrize(("key", "values"), [("min_freq", (1, 2, 3)), ("observed_only", (0, 1))])
def test_a_pipeline_without_rare_tests_or_unseen_pairs_has_fewer_weights(key, values):
    sizes = []
    for value in values:
        nlp = pipeline(**{key: type(DEFAULT_LEARNING[key])(value)})
        trained(nlp, examples_of(nlp))
        sizes.append(nlp.get_pipe("sparse_crf").training_run().n_potential)
        assert [token.tag_ for token in nlp("the plan fails")] == ["DT", "NN", "VB"]
    assert sizes == sorted(set(sizes), reverse=True)


def test_the_weight_of_a_doc_is_how_often_it_is_there(weight):
    nlp = pipeline(doc_weight=weight)
    by_weight, _ = trained(nlp, examples_of(nlp, weights=[2.0, 0.0, 1.0]), n=30)
    other = pipeline()
    sentences = [SENTENCES[0], SENTENCES[0], SENTENCES[2]]
    by_number, _ = trained(other, examples_of(other, sentences), n=30)
    assert by_weight == pytest.approx(by_number, rel=1e-4)
    assert nlp.get_pipe("sparse_crf").labels == ("DT", "NN", "VB")


def test_the_labels_of_docs_without_weight_are_left_out(weight):
    nlp = pipeline(doc_weight=weight)
    sentences = [*SENTENCES, ("x", "UNIQUE")]
    nlp.initialize(lambda: examples_of(nlp, sentences, weights=[1.0, 0.5, 2.0, 0.0]))
    assert "UNIQUE" not in nlp.get_pipe("sparse_crf").labels


def test_sentences_have_the_weight_of_their_doc(weight):
    nlp = pipeline(doc_weight=weight)
    examples = examples_of(nlp, [("a b c d", "X Y X Y"), ("a b", "Y X")], [3.0, 0.5])
    examples[0].predicted[2].is_sent_start = True
    nlp.initialize(lambda: examples)
    corpus = nlp.get_pipe("sparse_crf").training_run()._corpus
    assert corpus.weights.tolist() == [3.0, 3.0, 0.5]


@pytest.mark.parametrize("value", [None, "2", -1.0, float("nan"), float("inf"), True])
def test_bad_weights_of_docs_are_refused(weight, value):
    nlp = pipeline(doc_weight=weight)
    examples = examples_of(nlp, weights=[1.0, value, 1.0])
    with pytest.raises(SparseCRFError, match=f"SC355.*{weight}.*begins: 'plan the trip"):
        nlp.initialize(lambda: examples)


def test_weights_that_are_all_zero_are_refused(weight):
    nlp = pipeline(doc_weight=weight)
    with pytest.raises(SparseCRFError, match="SC356"):
        nlp.initialize(lambda: examples_of(nlp, weights=[0.0, 0.0, 0.0]))
    nlp = pipeline(label_weights={"DT": 0, "NN": 0, "VB": 0})
    with pytest.raises(SparseCRFError, match="SC356"):
        nlp.initialize(lambda: examples_of(nlp))


def test_a_sequence_counts_as_its_gold_labels_do_on_average():
    problem = partial_problem(231, 3, [4, 3, 0, 5, 2], weighted=True)
    problem.corpus.labels[-2:] = -1
    weights = np.array([0.5, 2.0, 0.0])
    corpus = weighted(problem.corpus, weights)
    for s, tokens in enumerate(problem.sequences()):
        means = [weights[problem.gold(t)].mean() for t in tokens if problem.corpus.labels[t] != -1]
        expected = problem.corpus.weights[s] * (np.mean(means) if means else 0.0)
        assert corpus.weights[s] == pytest.approx(expected, rel=1e-12)
    problem.corpus = corpus
    loss = loss_of(problem)
    value, gradient = loss.restrict(loss.all_coordinates()).value_and_grad(problem.theta)
    expected, expected_gradient = problem.loss()
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-10)


@pytest.mark.parametrize("model", ["chain", "memm"])
def test_weights_of_labels_in_a_pipeline(model):
    # As pairs, because dict keys in a config cannot be arbitrary strings.
    nlp = pipeline(model=model, label_weights=[["NN", 3.0], [":", 0.5]])
    examples = examples_of(nlp, [*SENTENCES, ("a :", "DT :")])
    nlp.initialize(lambda: examples)
    loss = nlp.get_pipe("sparse_crf").training_run()._runs[0].loss
    weights = sorted(loss._lattice.weights.tolist())
    if model == "chain":
        assert weights == pytest.approx([0.75, 5 / 3, 5 / 3, 2.0])
    else:
        assert weights == pytest.approx([0.5, *[1.0] * 6, 3.0, 3.0, 3.0])
    again = Config().from_str(nlp.config.to_str())
    assert spacy.util.load_model_from_config(again)
