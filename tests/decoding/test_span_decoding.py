"""Spans through the decoder: validity, preset spans, probabilities and thresholds."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.component import SparseCRFPipe
from spacy_sparsecrf.pipeline.targets.scheme import LETTERS, OUTSIDE, Scheme

from ..support.decoding_cases import table
from ..support.span_cases import add_spans, scores_of, span_lists, spans_of
from ..support.toy import blank_with

# Docs of these tests have no tags, which the default span templates read.
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")
drawn = given(data=st.data(), seed=st.integers(0, 1000))

TEMPLATES = ["b:", "u:", "u:lower[0]", "u:lower[-1]"]
FACTORIES = {"sparse_crf_ner": "ents", "sparse_crf_spans": "sc"}
WORDS = ["a", "b", "c"]


@lru_cache
def pipeline(name: str, scheme: str) -> Language:
    kind = "Entities" if name == "sparse_crf_ner" else "Spans"
    target = {"@crf_targets": f"spacy_sparsecrf.{kind}.v1", "scheme": scheme}
    return blank_with(TEMPLATES, name, target=target)


def with_random_weights(
    labels: Sequence[str], seed: int, name: str = "sparse_crf_ner", scheme: str = "BILUO"
) -> Language:
    """Return a pipeline whose component has these labels, and normally distributed weights."""
    nlp = pipeline(name, scheme)
    pipe = nlp.get_pipe(name)
    configure(pipe, threshold=0.0, scores=False)
    pipe.cfg["labels"] = list(labels)
    seen = pipe.features([Doc(nlp.vocab, words=[a, b]) for a in WORDS for b in WORDS])
    rng, n = np.random.default_rng(seed), len(labels)
    unigram = table(rng, seen.unigram_hashes, n, pairs=False)
    bigram = table(rng, seen.bigram_hashes, n, pairs=True)
    pipe.model = CRFModel(labels, "float64", unigram, bigram)
    return nlp


def configure(pipe: SparseCRFPipe, threshold: float, scores: bool) -> None:
    decoding = pipe.settings.decoding.model_copy(update={"scores": scores})
    pipe.settings = pipe.settings.model_copy(update={"threshold": threshold, "decoding": decoding})


@st.composite
def label_sets(draw: st.DrawFn, scheme: str) -> list[str]:
    """Draw some labels of two types, and "O"."""
    known = [label for name in ("X", "Y-Z") for label in Scheme(scheme).labels_of(name)]
    chosen = draw(st.lists(st.sampled_from(known), unique=True, min_size=1))
    return draw(st.permutations([*chosen, OUTSIDE]))


def words_of(draw: st.DrawFn) -> list[str]:
    return draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))


@pytest.mark.parametrize("scheme", LETTERS)
@drawn
def test_no_illegal_sequence_is_predicted(scheme, data, seed):
    labels = data.draw(label_sets(scheme))
    nlp = with_random_weights(labels, seed, scheme=scheme)
    pipe = nlp.get_pipe("sparse_crf_ner")
    doc = Doc(nlp.vocab, words=words_of(data.draw))
    row = [labels[i] for i in pipe.predict([doc])[0]]
    pipe(doc)
    encoded = [OUTSIDE] * len(doc)
    for start, end, name in spans_of(doc, "ents"):
        encoded[start:end] = Scheme(scheme).labels_for(end - start, name)
    assert row == encoded


@pytest.mark.parametrize("scheme", LETTERS)
@pytest.mark.parametrize("name", FACTORIES)
@drawn
def test_what_is_set_is_predicted(name, scheme, data, seed):
    """The labels of other tokens are the most probable ones given the preset spans."""
    labels = [*Scheme(scheme).labels_of("X"), *Scheme(scheme).labels_of("Y-Z"), OUTSIDE]
    nlp = with_random_weights(labels, seed, name, scheme)
    words, key = words_of(data.draw), FACTORIES[name]
    preset = data.draw(span_lists(len(words)))
    pipe = nlp.get_pipe(name)
    doc = add_spans(Doc(nlp.vocab, words=words), preset, key)
    ids = pipe.predict([doc])
    told = pipe.target.spans(ids, pipe.label_data)
    nlp.get_pipe(name)(doc)
    found = spans_of(doc, key)
    assert set(preset) <= set(found)
    assert [(start, end) for start, end, _ in found] == list(
        zip(told.starts.tolist(), told.ends.tolist(), strict=True)
    )


@pytest.mark.parametrize("scheme", LETTERS)
@pytest.mark.parametrize("name", FACTORIES)
@settings(max_examples=25)
@drawn
def test_scores_are_the_probabilities_of_spans(name, scheme, data, seed):
    """Scores are sums over label sequences with the span; spans below the threshold are removed."""
    labels = [*Scheme(scheme).labels_of("X"), OUTSIDE]
    nlp = with_random_weights(labels, seed, name, scheme)
    pipe, key = nlp.get_pipe(name), FACTORIES[name]
    configure(pipe, threshold=0.0, scores=True)
    words = data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5))
    rows = pipe.nbest(Doc(nlp.vocab, words=words), 10_000)
    assert sum(p for _, p in rows) == pytest.approx(1.0)
    expected: dict[tuple[int, int, str], float] = {}
    ends = np.array([len(words)])
    for row, probability in rows:
        ids = np.array([labels.index(label) for label in row])
        spans = pipe.target.scheme.decode(ids, ends, labels)
        for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
            expected[start, end, "X"] = expected.get((start, end, "X"), 0.0) + probability
    plain = pipe(Doc(nlp.vocab, words=words))
    asked = [(0, 1, "X"), *expected]
    probabilities = pipe.entity_probabilities(Doc(nlp.vocab, words=words), asked)
    np.testing.assert_allclose(probabilities, [expected.get(s, 0.0) for s in asked], atol=1e-9)
    scores = scores_of(plain, key)
    assert scores == pytest.approx([expected[span] for span in spans_of(plain, key)], abs=1e-9)
    configure(pipe, threshold=0.4, scores=True)
    left = pipe(Doc(nlp.vocab, words=words))
    likely = [s for s, p in zip(spans_of(plain, key), scores, strict=True) if p >= 0.4]
    assert spans_of(left, key) == likely
    assert scores_of(left, key) == [p for p in scores if p >= 0.4]


def test_probabilities_of_entities_that_cannot_be_are_refused():
    nlp = with_random_weights(["B-X", "L-X", "O"], 0)
    pipe, doc = nlp.get_pipe("sparse_crf_ner"), Doc(nlp.vocab, words=["a", "b"])
    assert pipe.entity_probabilities(doc, [(0, 1, "X")]).tolist() == [0.0]
    assert 0.0 < pipe.entity_probabilities(doc, [(0, 2, "X")])[0] < 1.0
    with pytest.raises(SparseCRFError, match=r"SC409.*'Y'.*X"):
        pipe.entity_probabilities(doc, [(0, 1, "Y")])
    for start, end in ((1, 1), (-1, 1), (1, 3)):
        with pytest.raises(SparseCRFError, match="SC408"):
            pipe.entity_probabilities(doc, [(start, end, "X")])
    tagger = blank_with().get_pipe("sparse_crf")
    tagger.add_label("N")
    with pytest.raises(SparseCRFError, match=r"SC509.*'sparse_crf'"):
        tagger.entity_probabilities(doc, [(0, 1, "X")])
