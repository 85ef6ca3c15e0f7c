"""A made-up language with five tags, and Examples of it."""

import pickle
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import get_lang_class
from spacy.vocab import Vocab, create_vocab

from spacy_sparsecrf.pipeline.component import SparseCRFPipe
from spacy_sparsecrf.pipeline.targets.token_attribute import TokenAttribute

OF_TEMPLATES = {"phrases", "phrase_attr", "start_label", "boundaries"}
Sentence = tuple[list[str], list[str]]

STEMS = ["bli", "dro", "fen", "gul", "kam", "lup", "mir", "nok", "pra", "sti", "tov", "wex"]
ENDINGS = {"NN": ["tion", "ness"], "VB": ["izes", "ates"], "JJ": ["ous", "ful"]}
CLOSED = {"DT": ["the", "a"], "IN": ["of", "in"]}
AMBIGUOUS = {"NN": "plan", "VB": "plan"}
PATTERNS = ["DT NN VB DT NN", "DT JJ NN VB", "DT NN IN DT JJ NN VB DT NN", "NN VB IN NN"]


def make_sentences(n: int, seed: int) -> list[Sentence]:
    """Draw n sentences; other seeds give other words with the same endings."""
    rng = random.Random(seed)
    sentences = []
    for _ in range(n):
        tags = rng.choice(PATTERNS).split()
        sentences.append(([_word(rng, tag) for tag in tags], tags))
    return sentences


def _word(rng: random.Random, tag: str) -> str:
    if tag in CLOSED:
        return rng.choice(CLOSED[tag])
    if tag in AMBIGUOUS and rng.random() < 0.2:
        return AMBIGUOUS[tag]
    return "".join(rng.sample(STEMS, 2)) + rng.choice(ENDINGS[tag])


def examples_of(nlp: Language, sentences: Sequence[Sentence], attr: str = "tags") -> list[Example]:
    """Return one Example per sentence, with predicted Docs without annotation."""
    examples = []
    for words, tags in sentences:
        reference = Doc(nlp.vocab, words=words, **{attr: tags})
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


def docs_of(nlp: Language, sentences: Sequence[Sentence]) -> list[Doc]:
    """Return one Doc per sentence, without annotation."""
    return [Doc(nlp.vocab, words=words) for words, _ in sentences]


def write_corpus(path: str, nlp: Language, sentences: Sequence[Sentence]) -> None:
    """Write gold Docs as `spacy convert` does."""
    docs = [Doc(nlp.vocab, words=words, tags=tags) for words, tags in sentences]
    DocBin(docs=docs, attrs=["TAG"]).to_disk(path)


def tags_of(docs: Sequence[Doc]) -> list[list[str]]:
    """Return the tags of each Doc."""
    return [[token.tag_ for token in doc] for doc in docs]


def pickled(item: Any) -> Any:
    return pickle.loads(pickle.dumps(item))  # noqa: S301


def accuracy(nlp: Language, sentences: Sequence[Sentence]) -> float:
    """Return the tag accuracy of a pipeline."""
    return float(nlp.evaluate(examples_of(nlp, sentences))["tag_acc"])


def blank_with(
    templates: Sequence[str] | None = None,
    factory: str = "sparse_crf",
    lang: str = "xx",
    **config: Any,
) -> Language:
    """Create a pipeline of one component; config: its settings, and those of its templates."""
    if templates is not None:
        own = {key: config.pop(key) for key in OF_TEMPLATES & config.keys()}
        kind = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": [*templates]}
        config["features"] = kind | own
    nlp = spacy.blank(lang)
    nlp.add_pipe(factory, config={"n_threads": 1, **config})
    return nlp


def train(nlp: Language, examples: Sequence[Example], n: int) -> list[float]:
    """Initialize a pipeline and update it n times; return the losses of its last component."""
    nlp.initialize(lambda: examples)
    return run_steps(nlp, examples, n)


def run_steps(nlp: Language, examples: Sequence[Example], n: int) -> list[float]:
    """Update a pipeline n times; return the losses of its last component."""
    return [nlp.update(examples[:1], sgd=None)[nlp.pipe_names[-1]] for _ in range(n)]


def vocab_of(lang: str = "en", vectors: dict[str, list[float]] | None = None) -> Vocab:
    """Create the vocab of a language without its tokenizer; lang "" for no language."""
    vocab = create_vocab(lang, get_lang_class(lang).Defaults) if lang else Vocab()
    if vectors:
        vocab.reset_vectors(width=len(next(iter(vectors.values()))))
        for word, vector in vectors.items():
            vocab.set_vector(word, np.array(vector, dtype="f"))
    return vocab


ENGLISH = vocab_of()


def call_methods(pipe: SparseCRFPipe, doc: Doc) -> None:
    """Call the methods of a component that read a Doc; warnings are errors."""
    explained = pipe.explain_doc(doc)
    assert [token.text for token in explained.tokens] == [token.text for token in doc]
    assert pipe.explain_tokens(doc, {}) == ()
    assert pipe.explain_tokens(doc, {0: None}) == explained.tokens[:1]
    assert pipe.marginals(doc).shape == (len(doc), len(pipe.label_data))
    [(labels, p), *_] = pipe.nbest(doc, 2)
    assert np.exp(pipe.log_probability(doc, labels)) == pytest.approx(p)
    assert len(pipe.uncertainty([doc])) == 1
    assert len(pipe.span_probabilities(doc, [(0, labels[:1])])) == 1


def mistagged(sentences: list[Sentence]) -> list[Sentence]:
    """Return sentences; in every second one, one gold tag differs from the prediction."""
    found = []
    for n, (words, tags) in enumerate(sentences):
        wrong = n // 2 % len(tags)
        other = {"NN": "VB", "VB": "NN"}.get(tags[wrong], "NN")
        found.append((words, [*tags[:wrong], other, *tags[wrong + 1 :]] if n % 2 else tags))
    return found


class PresetTags(TokenAttribute):
    """Keeps preset tags, and allows only IN after a VB."""

    def valid_transitions(self, labels: Sequence[str]) -> np.ndarray:
        valid = np.ones((len(labels) + 1, len(labels) + 1), dtype=bool)
        valid[labels.index("VB"), : len(labels)] = False
        valid[labels.index("VB"), labels.index("IN")] = True
        return valid

    def permitted(self, docs, labels, *, overwrite) -> np.ndarray | None:
        tags = [token.tag_ for doc in docs for token in doc]
        if overwrite or not any(tags):
            return None
        return np.array([[tag in ("", label) for label in labels] for tag in tags])
