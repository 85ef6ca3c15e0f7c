"""The fields of what attributes read in portable models: phrases, classes, words of numbers."""

import sys
from collections.abc import Iterable
from typing import Any

from spacy.attrs import LIKE_NUM  # type: ignore[import-not-found]
from spacy.lang.lex_attrs import like_url
from spacy.lang.tokenizer_exceptions import URL_PATTERN
from spacy.language import Language
from spacy.symbols import IDS  # type: ignore[import-not-found]

from .. import portable
from ..pipeline.component import SparseCRFPipe
from ..pipeline.features.attributes.attribute import Attribute
from ..pipeline.features.attributes.clusters import OF_WORDS, Cluster, LabelsOfWord
from ..pipeline.features.attributes.expressions import Expression
from ..pipeline.features.attributes.ngrams import Ngrams
from ..pipeline.features.attributes.phrases import ATTRS, Phrase
from ..pipeline.features.classes import WordClasses
from .portable_expressions import portable_expression
from .portable_tokenizer import refused


def _listed(function: Any) -> set[str]:
    """Return the texts in lists of a function of words, and of its module."""
    code = getattr(function, "__code__", None)
    lists = [*vars(sys.modules[function.__module__]).values(), *(code.co_consts if code else ())]
    return {
        text
        for listed in lists
        if isinstance(listed, set | frozenset | list | tuple)
        for text in listed
        if isinstance(text, str) and text
    }


# A hyphen is no host, so that only the list of domains decides.
_DOMAINS = sorted(x for x in _listed(like_url) if x.isalpha() and like_url(f"-.{x}"))
EXPRESSIONS = {
    "has_hyphen": "[-\u2010\u2011]",
    "like_email": r"^[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+",
    "like_url": r"^(?:https?://|www\..|(?!\.|[^@]*@|.*\.$)(?=.*\.)(?:"
    rf".*\.(?:[^.:]*/|{'|'.join(_DOMAINS)})(?::[^.]*)?$|{URL_PATTERN}))",
}
"""Attributes that are expressions in the reader."""


class ReaderSources:
    """Collects the sources of attributes. words: that the model knows."""

    def __init__(self, nlp: Language, pipe: SparseCRFPipe, words: Iterable[str]) -> None:
        features: Any = pipe.features
        self.pipe, self.features, self.words = pipe, features, words
        self._nlp = nlp
        fold = ATTRS[features.phrase_attr]
        classes, phrases = features.learnt.get("clusters", {}), features.learnt.get("phrases", {})
        self.lists = {key: _hashes(x) for key, x in classes.items()}
        for key, lists in phrases.items():
            self.lists[f"phrase {key}"] = {
                kind: "\n".join("\t".join(map(fold, x.split("\t"))) for x in text.split("\n"))
                for kind, text in reversed(lists.items())
            }

    def call(self, read: Attribute) -> list[Any]:
        """Return the name of an attribute in the reader, and arguments. RAISES: SparseCRFError."""
        if read.name in EXPRESSIONS:
            return ["regex", portable_expression(EXPRESSIONS[read.name])]
        return [read.name, *self._arguments(read)]

    def _arguments(self, read: Attribute) -> list[Any]:
        if isinstance(read, Ngrams):
            return [*read.arguments]
        if isinstance(read, Cluster):
            return [read.key, read.bits or None]
        if isinstance(read, LabelsOfWord):
            return [OF_WORDS]
        if isinstance(read, Phrase):
            key = f"phrase {read.key}"
            phrases = "\n".join(self.lists[key].values()).split("\n")
            longest = max(x.count("\t") + 1 for x in phrases)
            return [key, self.features.phrase_attr.lower(), longest]
        if read.name == "like_num":
            return _like_num(self._nlp, self.pipe, self.words)
        if isinstance(read, Expression):
            return [portable_expression(read.pattern)]
        return [x for x in read.arguments if x]


def _like_num(nlp: Language, pipe: SparseCRFPipe, words: Iterable[str]) -> list[Any]:
    """Return the words and endings of numbers in a language.

    RAISES: SparseCRFError if the reader answers otherwise for words that the model knows.
    """
    function: Any = nlp.vocab.lex_attr_getters[LIKE_NUM]  # type: ignore[attr-defined]
    texts = _listed(function)
    plain: dict[str, Any] = {"words": (), "endings": (), "sign": ""}
    fields: dict[str, Any] = {
        "words": sorted(x for x in texts if function(x) and not portable.like_num(x, **plain)),
        "endings": sorted(x for x in texts if x.isalpha() and function(f"21{x}")),
        "sign": "%" if function("5%") else "",
    }
    others = [x for x in words if bool(function(x)) != bool(portable.like_num(x, **fields))]
    if others:
        reason = f"like_num of language '{nlp.lang}' answers otherwise for {others[:3]}"
        raise refused(pipe, reason, "Train without templates of like_num")
    return [*fields.values()]


def _hashes(classes: WordClasses) -> dict[str, str]:
    """Return the hashes of the words of each class, hexadecimal."""
    # spaCy numbers some words, such as `det`, instead of hashing them.
    symbols = {number: portable.string_hash(text) for text, number in IDS.items()}
    words: dict[str, list[str]] = {name: [] for name in classes.classes}
    for number, code in zip(classes.hashes.tolist(), classes.codes.tolist(), strict=True):
        words[classes.classes[code]].append(f"{symbols.get(number, number):x}")
    return {name: "\n".join(hashes) for name, hashes in words.items()}
