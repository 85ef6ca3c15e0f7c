"""Results of a component for Docs: probabilities, n-best labels, stored scores, settings."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.crf.corpus.readings import Division
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.prediction import Batch
from spacy_sparsecrf.pipeline.settings import DecodingSettings
from spacy_sparsecrf.pipeline.targets.entities import Entities
from spacy_sparsecrf.pipeline.targets.target import ends_of
from spacy_sparsecrf.pipeline.targets.token_attribute import TokenAttribute
from spacy_sparsecrf.pipeline.uncertainty import measure

from ..support.decoding_cases import make_case
from ..support.span_cases import TRAINING, span_examples
from ..support.toy import PresetTags, blank_with, docs_of, tags_of, train

WORDS = ["the", "plan", "of", "a", "plan"]
DEFAULTS = {"method": "viterbi", "forbidden": [], "allowed": [], "scores": False}
DEFAULTS |= {"temperature": 1.0, "outside_weight": 0.0, "thresholds": {}}


def with_decoding(trained: Language, path: Path, **decoding: Any) -> Language:
    """Load the trained pipeline with other decoding settings."""
    trained.to_disk(path)
    return spacy.load(path, config={"components": {"sparse_crf": {"decoding": decoding}}})


def two_sentences(nlp: Language) -> Doc:
    return Doc(nlp.vocab, words=WORDS, sent_starts=[True, False, False, True, False])


def test_probabilities_of_a_doc_agree(fitted):
    pipe = fitted.get_pipe("sparse_crf")
    doc = two_sentences(fitted)
    [marginals] = pipe.marginals([doc])
    assert marginals.shape == (5, 5)
    ranked = pipe.nbest(doc, 10**5)
    assert len(ranked) == 5**5
    assert sum(p for _, p in ranked) == pytest.approx(1.0)
    assert [p for _, p in ranked] == sorted((p for _, p in ranked), reverse=True)
    table = {tuple(labels): p for labels, p in ranked}
    assert len(table) == 5**5
    for labels, p in ranked[:20]:
        assert math.exp(pipe.log_probability(doc, labels)) == pytest.approx(p, abs=1e-10)
    for t, y in itertools.product(range(5), range(5)):
        expected = sum(p for labels, p in table.items() if labels[t] == pipe.labels[y])
        assert marginals[t, y] == pytest.approx(expected, abs=1e-10)
    spans = [(0, ["DT", "NN"]), (1, ["NN"], ["IN"]), (3, ["DT", "NN"], ["VB"]), (4, ["NN"], None)]
    conditions = [
        lambda y: y[:2] == ("DT", "NN"),
        lambda y: y[1:3] == ("NN", "IN"),
        lambda y: y[3:] == ("DT", "NN"),
        lambda y: y[4] == "NN",
    ]
    expected = [sum(p for y, p in table.items() if condition(y)) for condition in conditions]
    np.testing.assert_allclose(pipe.span_probabilities(doc, spans), expected, atol=1e-10)
    assert pipe(doc) and [token.tag_ for token in doc] == ranked[0][0]


def test_bad_arguments(fitted):
    pipe, doc = fitted.get_pipe("sparse_crf"), two_sentences(fitted)
    spans = [[(4, ["DT", "NN"])], [(-1, ["DT"])], [(0, [])], [(0, ["DT"], ["XX"])]]
    for call, argument, message in (
        (pipe.log_probability, ["DT", "NN"], r"SC406.*2 labels.*5 tokens"),
        (pipe.log_probability, ["XX"] * 5, r"SC409.*'XX'.*'sparse_crf'.*DT, IN"),
        (pipe.nbest, 0, "SC407"),
        *((pipe.span_probabilities, span, "SC408") for span in spans[:3]),
        (pipe.span_probabilities, spans[3], "SC409"),
    ):
        with pytest.raises(SparseCRFError, match=message):
            call(doc, argument)


def test_the_defaults_are_in_the_config_and_solvers_have_short_names(nlp):
    assert nlp.config["components"]["sparse_crf"]["decoding"] == DEFAULTS
    assert DecodingSettings.validated("x", DEFAULTS) == DecodingSettings()
    for name in ("SGD", "sgd", "spacy_sparsecrf.SGD.v1"):
        pipe: Any = blank_with(l1=0.0, solver={"@crf_solvers": name}).get_pipe("sparse_crf")
        assert type(pipe.solver).__name__ == "SGD"


def test_forbidden_labels_are_not_predicted(fitted, tmp_path, corpus):
    docs = docs_of(fitted, corpus.dev)
    tags = tags_of(list(fitted.pipe(docs)))
    assert any(pair == ("DT", "NN") for row in tags for pair in itertools.pairwise(row))
    nlp = with_decoding(fitted, tmp_path / "a", forbidden=[["DT", "NN"], ["", "NN"]])
    tags = tags_of(list(nlp.pipe(docs_of(nlp, corpus.dev))))
    assert not any(pair == ("DT", "NN") for row in tags for pair in itertools.pairwise(row))
    assert not any(row[0] == "NN" for row in tags)
    pipe = nlp.get_pipe("sparse_crf")
    doc = Doc(nlp.vocab, words=["the", "plan"])
    assert pipe.log_probability(doc, ["DT", "NN"]) == -math.inf
    assert len(pipe.nbest(doc, 100)) == 25 - 1 - 5
    nlp.to_disk(tmp_path / "b")
    again = spacy.load(tmp_path / "b")
    assert tags_of(list(again.pipe(docs_of(again, corpus.dev)))) == tags


def test_posterior_decoding(fitted, tmp_path, corpus):
    nlp = with_decoding(fitted, tmp_path, method="posterior")
    docs = list(nlp.pipe(docs_of(nlp, corpus.dev)))
    for doc, marginals in zip(docs, nlp.get_pipe("sparse_crf").marginals(docs), strict=True):
        labels = nlp.get_pipe("sparse_crf").labels
        assert [labels[y] for y in marginals.argmax(axis=1)] == [token.tag_ for token in doc]


def test_lists_and_templates_of_loaded_components_are_checked(fitted, tmp_path):
    with pytest.raises(SparseCRFError, match="SC403"):
        with_decoding(fitted, tmp_path, forbidden=[["DT", "XX"]])
    with pytest.raises(SparseCRFError, match="SC404.*no label can begin"):
        with_decoding(fitted, tmp_path, allowed=[["DT", "NN"]])
    block = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": ["u:lower[0]", "b:"]}
    with pytest.raises(SparseCRFError, match=r"SC225.*'sparse_crf'.*templates that differ"):
        spacy.load(tmp_path, config={"components": {"sparse_crf": {"features": block}}})


def test_labels_that_are_set_are_kept_and_others_follow(trained):
    pipe: Any = trained.get_pipe("sparse_crf")
    pipe.target, words = PresetTags(), ["the", "plan", "the", "plan"]
    free = Doc(trained.vocab, words=words)
    assert pipe.nbest(free, 1)[0][0] == pipe.nbest(free, 1, forced=True)[0][0]
    doc = Doc(trained.vocab, words=words, tags=["", "VB", "", ""])
    assert pipe.marginals([doc])[0][1].max() < 1.0
    [given_tags] = pipe.marginals([doc], forced=True)
    vb, noun = pipe.labels.index("VB"), pipe.labels.index("IN")
    np.testing.assert_allclose(given_tags[[1, 2], [vb, noun]], 1.0)
    assert pipe.log_probability(doc, ["DT", "NN", "IN", "NN"], forced=True) == -math.inf
    assert [token.tag_ for token in pipe(doc)][1:3] == ["VB", "IN"]
    pipe.settings = pipe.settings.model_copy(update={"overwrite": True})
    doc = Doc(trained.vocab, words=["the", "plan"], tags=["JJ", "JJ"])
    assert [token.tag_ for token in pipe(doc)] != ["JJ", "JJ"]


def scores_of(doc: Doc) -> list[float]:
    return [token._.sparse_crf_score for token in doc]


def test_scores_are_those_of_the_labels_and_are_stored(fitted, tmp_path, corpus):
    nlp = with_decoding(fitted, tmp_path, scores=True)
    pipe = nlp.get_pipe("sparse_crf")
    texts = [" ".join(words) for words, _ in corpus.dev]
    of_processes = list(nlp.pipe(texts, n_process=2, batch_size=8))
    for docs in (list(nlp.pipe(texts)), [nlp(text) for text in texts], of_processes):
        for doc, marginals in zip(docs, pipe.marginals(docs), strict=True):
            stored = scores_of(doc)
            ids = [pipe.labels.index(token.tag_) for token in doc]
            np.testing.assert_allclose(stored, marginals[np.arange(len(doc)), ids], rtol=1e-6)
            again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
            assert scores_of(again) == stored
        assert tags_of(docs) == tags_of(of_processes)
        merged = Doc.from_docs(docs)
        assert scores_of(merged) == [score for doc in docs for score in scores_of(doc)]
    assert not nlp("").user_data and not fitted(texts[0]).user_data


def test_slices_of_predictions_keep_their_probabilities():
    templates = ["b:", "u:lower[0]", "u:lower[-1]", "u:lower[1]"]
    config = {"decoding": {"scores": True}, "threshold": 0.2}
    nlp = blank_with(templates, "sparse_crf_spans", **config)
    pipe: Any = nlp.get_pipe("sparse_crf_spans")
    examples = span_examples(nlp, TRAINING, "sc")
    train(nlp, examples, 1)
    once, again = ([example.x.copy() for example in examples] for _ in range(2))
    predictions = pipe.predict(once)
    pipe.set_annotations(once, predictions)
    for cut in (slice(0, 3), slice(3, 4), slice(4, None)):
        pipe.set_annotations(again[cut], predictions[cut])
    assert any(len(doc.spans["sc"]) for doc in once[3:])
    for pair in zip(once, again, strict=True):
        tokens = [[token._.sparse_crf_spans_score for token in doc] for doc in pair]
        assert tokens[0] == tokens[1]
        np.testing.assert_array_equal(*(doc.spans["sc"].attrs["scores"] for doc in pair))


def test_docs_without_tokens_and_single_docs(fitted):
    pipe = fitted.get_pipe("sparse_crf")
    empty = Doc(fitted.vocab)
    assert pipe.nbest(empty, 3) == [([], 1.0)]
    assert pipe.log_probability(empty, []) == 0.0
    assert pipe.span_probabilities(empty, []).shape == (0,)
    mixed = pipe.marginals([empty, two_sentences(fitted), empty])
    assert [array.shape for array in mixed] == [(0, 5), (5, 5), (0, 5)]
    for doc in (two_sentences(fitted), empty):
        [expected] = pipe.marginals([doc])
        found = pipe.marginals(doc)
        assert found.shape == (len(doc), len(pipe.label_data))
        np.testing.assert_array_equal(found, expected)


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda pipe, given: pipe.marginals(given),
    lambda pipe, given: pipe.nbest(given, 2),
    lambda pipe, given: pipe.log_probability(given, ["A"]),
    lambda pipe, given: pipe.span_probabilities(given, [(0, ["X"])]),
    lambda pipe, given: pipe.explain_doc(given),
]


@pytest.mark.parametrize("call", CALLS)
def test_what_is_not_a_doc_and_components_without_labels_are_refused(fitted, nlp, call):
    pipe = fitted.get_pipe("sparse_crf")
    with pytest.raises(SparseCRFError, match=r"SC430\].* but got '\w"):
        call(pipe, "the plan")
    with pytest.raises(SparseCRFError, match=r"SC430\].* but got \[the plan\]"):
        pipe.nbest([fitted.make_doc("the plan")], 2)
    with pytest.raises(SparseCRFError, match="SC201"):
        call(nlp.get_pipe("sparse_crf"), Doc(nlp.vocab, words=["a"]))


def test_spans_of_spacy_have_probabilities():
    nlp = blank_with(factory="sparse_crf_ner")
    pipe: Any = nlp.get_pipe("sparse_crf_ner")
    examples = span_examples(nlp, TRAINING, "ents")
    train(nlp, examples, 1)
    doc = next(example.reference for example in examples if example.reference.ents)
    tuples = [(span.start, span.end, span.label_) for span in doc.ents]
    found = (pipe.entity_probabilities(doc, spans) for spans in (doc.ents, tuples))
    np.testing.assert_array_equal(*found)


# `uncertainty` of Docs

LENGTHS = [3, 1, 0, 2, 2]  # of sequences
DOCS = [range(4), range(0), range(4)]
OF_DOCS = [[0, 1], [], [3, 4]]
LABELS = ("B-X", "I-X", "O")


def entropy(p: np.ndarray) -> float:
    return -sum(x * math.log(x) for x in p.ravel().tolist() if x > 0)


def expected(table: dict[tuple[int, ...], float], target: Any, n: int) -> list[Any]:
    """Return the uncertainty of a Doc of n tokens, from its label sequence probabilities."""
    ranked = sorted(table, key=table.__getitem__, reverse=True)
    marginals = np.zeros((n, len(LABELS)))
    for path, p in table.items():
        marginals[np.arange(n), list(path)] += p

    def spans(path: tuple[int, ...]) -> list[Any]:
        return target.spans([np.array(path, np.int32)], LABELS).named()

    if isinstance(target, Entities):
        chosen = [sum(p for y, p in table.items() if e in spans(y)) for e in spans(ranked[0])]
        shares = {"X": marginals[:, :2].sum(axis=1)}
    else:
        chosen = marginals[np.arange(n), list(ranked[0])].tolist()
        shares = dict(zip(LABELS, marginals.T, strict=True))
    of_tokens = [entropy(row) for row in marginals]
    best, second = table[ranked[0]], table[ranked[1]] if len(ranked) > 1 else 0.0
    parts = {key: np.array([q, 1.0 - q]) for key, q in shares.items()}
    by_label = {key: entropy(part) / max(n, 1) for key, part in parts.items()}
    numbers = sum(of_tokens) / max(n, 1), max(of_tokens, default=0.0), 1.0 - best, best - second
    return [*numbers, 1.0 - min(chosen, default=1.0), by_label]


@pytest.mark.parametrize("target", [TokenAttribute(), Entities("IOB2")], ids=["tags", "entities"])
@pytest.mark.parametrize("kind", ["chain", "memm", "maxent"])
def test_uncertainty_equals_enumeration(kind, target):
    for seed in range(3):
        case = make_case(seed, kind, LENGTHS)
        valid = target.valid_transitions(LABELS)
        parts = {"labels": LABELS, "decoder": Decoder(case.model, valid)}
        reader: Any = SimpleNamespace(setup=SimpleNamespace(target=target), **parts)
        found = measure(
            reader, Batch([(case.observations, None)], Division(ends_of(DOCS), ends_of(DOCS), None))
        )
        sequences = case.problem.sequences()
        for own, each, doc in zip(found, OF_DOCS, DOCS, strict=True):
            tables = [case.table(sequences[s], valid) for s in each]
            table = {
                tuple(itertools.chain(*paths)): math.exp(sum(map(dict.__getitem__, tables, paths)))
                for paths in itertools.product(*tables)
            }
            for value, right in zip(own, expected(table, target, len(doc)), strict=True):
                assert value == pytest.approx(right, abs=1e-10)


def test_uncertainty_of_docs(fitted):
    pipe: Any = fitted.get_pipe("sparse_crf")
    docs = [Doc(fitted.vocab, words=words) for words in (["the", "plan"], [], ["plan", "of"])]
    found = pipe.uncertainty(docs)
    ranked = pipe.nbest(docs[2], 2)
    assert found[2].margin == pytest.approx(ranked[0][1] - ranked[1][1])
    assert found[1][:5] == (0.0, 0.0, 0.0, 1.0, 0.0)
    assert set(found[0].by_label) == set(pipe.labels)
    docs[2][0].tag_ = "VB"
    assert pipe.uncertainty([docs[2]]) == found[2:]  # annotation is ignored by default
    [given] = pipe.uncertainty([docs[2]], forced=True)
    assert given.entropy < found[2].entropy
    assert pipe.uncertainty([]) == []
    with pytest.raises(SparseCRFError, match="SC430"):
        pipe.uncertainty(docs[0])
