"""Docs with spans, and hypothesis strategies for them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from .toy import Sentence, make_sentences

TRAINING, HELD_OUT = make_sentences(80, seed=1), make_sentences(25, seed=2)
SpanTriple = tuple[int, int, str]


@st.composite
def span_lists(draw: Any, n_tokens: int, names: Sequence[str] = ("X", "Y-Z")) -> list[SpanTriple]:
    """Draw ascending, non-overlapping spans of n tokens."""
    spans, start = [], 0
    while start < n_tokens:
        length = draw(st.integers(0, n_tokens - start))
        if length:
            spans.append((start, start + length, draw(st.sampled_from(list(names)))))
        start += max(length, 1)
    return spans


def chunks_of(tags: Sequence[str]) -> list[SpanTriple]:
    """Return chunks of a toy sentence: from article to noun, and single verbs."""
    spans: list[SpanTriple] = []
    start = None
    for i, tag in enumerate(tags):
        if tag == "DT":
            start = i
        elif tag == "NN":
            spans.append((i if start is None else start, i + 1, "NP"))
            start = None
        elif tag == "VB":
            spans.append((i, i + 1, "VP"))
    return spans


def add_spans(doc: Doc, spans: Sequence[SpanTriple], key: str) -> Doc:
    """Set spans; key: "ents" for entities, or a span group."""
    made = [Span(doc, start, end, label=name) for start, end, name in spans]
    if key == "ents":
        doc.set_ents(made)
    else:
        doc.spans[key] = made
    return doc


def spans_of(doc: Doc, key: str) -> list[SpanTriple]:
    """Return the spans of a Doc, in the format of `add_spans`."""
    group = doc.ents if key == "ents" else doc.spans.get(key, [])
    return [(span.start, span.end, span.label_) for span in group]


def scores_of(doc: Doc, key: str) -> list[float]:
    """Return the stored probabilities of the spans of a Doc."""
    if key == "ents":
        return [entity._.ents_score for entity in doc.ents]
    return [float(score) for score in doc.spans[key].attrs["scores"]]


def span_examples(nlp: Language, sentences: Sequence[Sentence], key: str) -> list[Example]:
    """Return Examples of toy sentences with their chunks."""
    examples = []
    for words, tags in sentences:
        gold = add_spans(Doc(nlp.vocab, words=words), chunks_of(tags), key)
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    return examples
