"""Settings of a component: refusals, non-JSON numbers, and effects of those of learning."""

from itertools import groupby

import numpy as np
import pytest
import spacy
from confection import Config
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.crf.corpus.numbering import without_rare
from spacy_sparsecrf.crf.corpus.transform import weighted
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.factories import COMMON, DEFAULT_LEARNING, FACTORIES, make_sparse_crf
from spacy_sparsecrf.pipeline.features.tokens import joined
from spacy_sparsecrf.pipeline.settings import DecodingSettings, LearningSettings

from ..support.golden import read_golden
from ..support.learning_cases import loss_of, partial_problem
from ..support.saved_models import CONFIGS, MODELS
from ..support.span_cases import TRAINING, span_examples
from ..support.toy import blank_with, docs_of, examples_of, make_sentences, train

REFUSED = read_golden(__file__, "refused.jsonl")
KEYS = {"sparse_crf_ner": "ents", "sparse_crf_spans": "sc"}


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row['match'][:24]}-{row['config']}")
def test_what_is_refused_names_its_key(row, tmp_path, monkeypatch):
    """On creation, or before or after examples are read; paths are in the current directory."""
    monkeypatch.chdir(tmp_path)
    nlp = spacy.blank("xx")
    nlp.config["training"]["batcher"] = {"@batchers": "spacy.batch_by_words.v1", "size": 9}
    with pytest.raises(SparseCRFError, match=row["match"]):
        pipe = nlp.add_pipe(row["factory"], name="mine", config=row["config"])
        if key := KEYS.get(row["factory"]):
            examples = span_examples(nlp, TRAINING[:5], key)
        else:
            examples = examples_of(nlp, make_sentences(5, 1))
        pipe.initialize(lambda: examples, nlp=nlp, **row["initialize"])
    assert not any(tmp_path.rglob("*.*"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_numbers_that_are_not_finite_are_refused(nlp, value):
    for key in ("l1", "l2"):
        pipe = nlp.get_pipe("sparse_crf")
        own = {name: one for name, one in COMMON.items() if not isinstance(one, dict)}
        own |= {"features": pipe.features, "target": pipe.target, "solver": pipe.solver}
        own |= {"learning": {}, "decoding": COMMON["decoding"]}
        own |= {"engine": pipe.setup.engine, "scorer": None, key: value}
        with pytest.raises(SparseCRFError, match=rf"SC205\] \[components\.mine\] {key} = "):
            make_sparse_crf(nlp, "mine", **own)
    for own in (value, 1e7):
        with pytest.raises(SparseCRFError, match="SC205.*label_weights.*0 to 1e6"):
            LearningSettings.validated("tags", {"label_weights": {"NN": own}})
    with pytest.raises(SparseCRFError, match="SC205.*temperature = "):
        DecodingSettings.validated("names", {"temperature": value})


EXTREMES = [0.0, -1.0, np.nan, np.inf, 5e-324, 1e-300, 1e-3, 1e3, 1e6, -1e6, 1e300, -1e300]
NUMBERS = [key for key, each in DecodingSettings.model_fields.items() if each.annotation is float]


@pytest.mark.parametrize("kind", ["entities", "memm", "clusters"])
@pytest.mark.parametrize("key", [*NUMBERS, "thresholds"])
def test_extreme_numbers_of_decoding_are_refused_or_give_probabilities(key, kind):
    assert {"temperature", "outside_weight"} <= {*NUMBERS}
    pipe = blank_with(**CONFIGS[kind]).pipeline[0][1]
    pipe.from_disk(MODELS / kind, exclude=["vocab"])
    n_refused = 0
    for value in EXTREMES:
        given = {key: {"NN": value} if key == "thresholds" else value}
        try:
            decoding = DecodingSettings.validated("names", given)
        except SparseCRFError as error:
            assert f"SC205] [components.names] {key}" in str(error)
            n_refused += 1
            continue
        pipe.settings = pipe.settings.model_copy(update={"decoding": decoding})
        if key == "thresholds" and kind != "entities":
            continue
        docs = docs_of(pipe, make_sentences(3, seed=9))
        [*pipe.pipe(docs)]
        probabilities = np.concatenate(pipe.marginals(docs))
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)
    assert n_refused >= 4


WEIGHT = "spacy_sparsecrf_test_weight"
SENTENCES = [("the plan fails", "DT NN VB"), ("plan the trip", "VB DT NN"), ("a trip", "DT NN")]


@pytest.fixture
def weight(own_extensions):
    Doc.set_extension(WEIGHT, default=1.0)
    return WEIGHT


def pipeline(model: str = "chain", sequences: str = "docs", **learning) -> Language:
    return blank_with(l1=0.1, model=model, sequences=sequences, learning=learning)


def weighted_examples(nlp: Language, sentences=SENTENCES, weights=None) -> list[Example]:
    examples = examples_of(nlp, [(text.split(), tags.split()) for text, tags in sentences])
    for example, weight in zip(examples, weights or [], strict=False):
        example.reference._.set(WEIGHT, weight)
    return examples


def trained(nlp: Language, examples: list[Example], n: int = 8) -> tuple[float, bytes]:
    """Return the loss and the weights after some updates."""
    losses = train(nlp, examples, n)
    return losses[-1], nlp.get_pipe("sparse_crf").model.to_bytes()


def test_defaults_are_in_the_config_and_change_nothing():
    nlp = pipeline()
    assert all(each.default_config["learning"] == DEFAULT_LEARNING for each in FACTORIES.values())
    assert nlp.config["components"]["sparse_crf"]["learning"] == DEFAULT_LEARNING
    again = Config().from_str(nlp.config.to_str())
    assert again["components"]["sparse_crf"]["learning"] == DEFAULT_LEARNING
    assert trained(nlp, weighted_examples(nlp)) == trained(nlp, weighted_examples(nlp))


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
    one_each = np.ones(len(hashes), np.int64)
    assert without_rare(hashes, min_freq, one_each).ravel().tolist() == expected


@pytest.mark.parametrize(("key", "values"), [("min_freq", (1, 2, 3)), ("observed_only", (0, 1))])
def test_a_pipeline_without_rare_tests_or_unseen_pairs_has_fewer_weights(key, values):
    sizes = []
    for value in values:
        nlp = pipeline(**{key: type(DEFAULT_LEARNING[key])(value)})
        trained(nlp, weighted_examples(nlp))
        sizes.append(nlp.get_pipe("sparse_crf").training_run().size.n_potential)
        assert [token.tag_ for token in nlp("the plan fails")] == ["DT", "NN", "VB"]
    assert sizes == sorted(set(sizes), reverse=True)


def test_the_weight_of_a_doc_is_how_often_it_is_there(weight):
    nlp = pipeline(doc_weight=weight)
    by_weight, _ = trained(nlp, weighted_examples(nlp, weights=[2.0, 0.0, 1.0]), n=30)
    other = pipeline(sequences="sents")
    sentences = [SENTENCES[0], SENTENCES[0], SENTENCES[2]]
    by_number, _ = trained(other, weighted_examples(other, sentences), n=30)
    assert by_weight == pytest.approx(by_number, rel=1e-4)
    assert nlp.get_pipe("sparse_crf").labels == ("DT", "NN", "VB")


def test_sentences_have_the_weight_of_their_doc_and_labels_without_weight_are_left_out(weight):
    nlp = pipeline(doc_weight=weight, sequences="sents")
    sentences, weights = [("a b c d", "X Y X Y"), ("a b", "Y X"), ("x", "UNIQUE")], [3.0, 0.5, 0.0]
    examples = weighted_examples(nlp, sentences, weights)
    examples[0].predicted[2].is_sent_start = True
    nlp.initialize(lambda: examples)
    corpus = nlp.get_pipe("sparse_crf")._state.restart.args[0]
    assert corpus.weights.tolist() == [3.0, 3.0, 0.5]
    assert nlp.get_pipe("sparse_crf").labels == ("X", "Y")


def lengths_of_sequences(nlp: Language, examples: list[Example]) -> list[int]:
    nlp.initialize(lambda: examples)
    return np.diff(nlp.get_pipe("sparse_crf")._state.restart.args[0].offsets).tolist()


def test_short_docs_are_joined_in_training():
    """Up to ten, at most 250 tokens, and the same each time."""
    lengths = [*np.random.default_rng(1).integers(1, 90, 300).tolist(), 400, 300, 5]
    nlp = pipeline()
    examples = weighted_examples(nlp, [("a " * n, "DT " * n) for n in lengths])
    found, numbers, docs = lengths_of_sequences(nlp, examples), set(), iter(lengths)
    for length in found:
        own = [next(docs)]
        while sum(own) < length:
            own.append(next(docs))
        assert sum(own) == length and len(own) <= 10 and (length <= 250 or len(own) == 1)
        numbers.add(len(own))
    assert {1, 2, 3} < numbers and found == lengths_of_sequences(nlp, examples)


@pytest.mark.parametrize("n", [400, 4001])
def test_three_of_four_short_docs_stay_alone(n):
    ends = np.arange(1, n + 1) * 3
    sizes = np.diff(joined(np.append(0, ends), ends, [False] * n)) // 3
    assert sizes[0] > 1 and sizes.sum() == n and sizes.max() <= 10
    assert set(sizes[1 : 1 + 3 * sizes[0]].tolist()) == {1}
    assert (sizes == 1).sum() == pytest.approx(0.75 * n, abs=30)


ALONE = [{"sequences": "sents"}, {"label_weights": {"DT": 2.0}}, {"doc_weight": WEIGHT}]


@pytest.mark.parametrize("config", [*ALONE, {}], ids=str)
def test_docs_with_weights_or_missing_labels_stay_alone(weight, config):
    sentences = [("plan the trip", "NN DT NN"), ("the trip", "DT NN")] * 9
    nlp = pipeline(**config)
    examples = weighted_examples(nlp, sentences, [1.0] * 18)
    for example in () if config else examples[::2]:
        example.reference[1].tag_ = ""
    assert lengths_of_sequences(nlp, examples) == [3, 2] * 9
    assert len(nlp.get_pipe("sparse_crf")._state.record._batches) == 1  # read at once


@pytest.mark.parametrize("seed", range(5))
def test_docs_between_docs_that_stay_alone_are_joined_as_if_they_were_all(seed):
    """Docs without words end no sequence, but a Doc that stays alone has its own."""
    random = np.random.default_rng(seed)
    lengths, alone = random.integers(0, 40, 60), random.random(60) < 0.2
    ends = np.cumsum(lengths)
    apart, begin = [np.zeros(1, np.int64)], 0
    for is_alone, run in groupby(range(60), lambda i: alone[i] and i + 1):
        own = lengths[[*run]]
        offsets = np.append(0, np.cumsum(own[own > 0]))
        found = offsets if is_alone else joined(offsets, np.cumsum(own), [False] * len(own))
        apart.append(begin + found[1:])
        begin += int(own.sum())
    whole = np.append(0, np.cumsum(lengths[lengths > 0]))
    assert joined(whole, ends, alone.tolist()).tolist() == np.concatenate(apart).tolist()


def test_blanks_need_no_label_to_be_joined():
    nlp = pipeline()
    spaced = [(["plan", "the", "\n", "trip"], ["NN", "DT", "", "NN"])] * 9
    assert max(lengths_of_sequences(nlp, examples_of(nlp, spaced))) > 3


@pytest.mark.parametrize("value", [None, "2", -1.0, float("nan"), float("inf"), True])
def test_bad_weights_of_docs_are_refused(weight, value):
    nlp = pipeline(doc_weight=weight)
    examples = weighted_examples(nlp, weights=[1.0, value, 1.0])
    with pytest.raises(SparseCRFError, match=f"SC355.*{weight}.*begins: 'plan the trip"):
        nlp.initialize(lambda: examples)
    other = pipeline(label_weights={"DT": 0, "NN": 0, "VB": 0})
    for own, zero in ((nlp, [0.0, 0.0, 0.0]), (other, None)):
        with pytest.raises(SparseCRFError, match="SC356"):
            own.initialize(lambda own=own, zero=zero: weighted_examples(own, weights=zero))


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
    value, gradient = loss.restrict(loss.coordinates("all")).value_and_grad(problem.theta)
    expected, expected_gradient = problem.loss()
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-10)


@pytest.mark.parametrize("model", ["chain", "memm"])
def test_weights_of_labels_in_a_pipeline(model):
    # As pairs, because dict keys in a config cannot be arbitrary strings.
    nlp = pipeline(model=model, label_weights=[["NN", 3.0], [":", 0.5]])
    examples = weighted_examples(nlp, [*SENTENCES, ("a :", "DT :")])
    nlp.initialize(lambda: examples)
    loss = nlp.get_pipe("sparse_crf").training_run()._runs[0].loss
    weights = sorted(loss._lattice.weights.tolist())
    if model == "chain":
        assert weights == pytest.approx([0.75, 5 / 3, 5 / 3, 2.0])
    else:
        assert weights == pytest.approx([0.5, *[1.0] * 6, 3.0, 3.0, 3.0])
    again = Config().from_str(nlp.config.to_str())
    assert spacy.util.load_model_from_config(again)
