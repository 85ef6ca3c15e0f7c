"""The fields of what attributes read in portable models: phrases, classes, words of numbers."""

import base64
import sys
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from spacy.attrs import LIKE_NUM  # type: ignore[import-not-found]
from spacy.lang import lex_attrs
from spacy.lang.tokenizer_exceptions import URL_MATCH
from spacy.language import Language
from spacy.symbols import IDS  # type: ignore[import-not-found]

from .. import portable
from ..pipeline.component import SparseCRFPipe
from ..pipeline.features.attributes.phrases import ATTRS
from ..pipeline.features.classes import WordClasses
from .portable_tokenizer import refused

_DOMAINS = "_tlds"  # private to spaCy


def source_fields(
    nlp: Language, pipe: SparseCRFPipe, names: Collection[str], words: Collection[str]
) -> dict[str, Any]:
    """Return what attributes read. names: of attributes; words: that the model knows."""
    features: Any = pipe.features
    learnt, fold = features.learnt, ATTRS[features.phrase_attr]
    sources: dict[str, Any] = {"phrase_attribute": features.phrase_attr.lower()}
    sources["phrases"] = {
        name: {
            "\t".join(map(fold, phrase.split("\t"))): kind
            for kind, text in reversed(lists.items())
            for phrase in text.split("\n")
        }
        for name, lists in learnt.get("phrases", {}).items()
    }
    sources["classes"] = {key: _classes(x) for key, x in learnt.get("clusters", {}).items()}
    if "like_url" in names:
        pattern: Any = getattr(URL_MATCH, "__self__", None)
        domains = sorted(getattr(lex_attrs, _DOMAINS))
        sources["like_url"] = {"domains": domains, "pattern": pattern.pattern}
    if "like_num" in names:
        sources["like_num"] = _like_num(nlp, pipe, words)
    return sources


def _like_num(nlp: Language, pipe: SparseCRFPipe, words: Iterable[str]) -> dict[str, Any]:
    """Return the words and endings of numbers in a language.

    RAISES: SparseCRFError if the reader answers otherwise for words that the model knows.
    """
    function: Any = nlp.vocab.lex_attr_getters[LIKE_NUM]  # type: ignore[attr-defined]
    code = getattr(function, "__code__", None)
    lists = [*vars(sys.modules[function.__module__]).values(), *(code.co_consts if code else ())]
    texts = {
        text
        for listed in lists
        if isinstance(listed, set | frozenset | list | tuple)
        for text in listed
        if isinstance(text, str) and text
    }
    plain: dict[str, Any] = {"words": (), "endings": (), "signs": ""}
    fields: dict[str, Any] = {
        "words": sorted(x for x in texts if function(x) and not portable.like_num(x, **plain)),
        "endings": sorted(x for x in texts if x.isalpha() and function(f"21{x}")),
        "signs": "%" if function("5%") else "",
    }
    others = [x for x in words if bool(function(x)) != bool(portable.like_num(x, **fields))]
    if others:
        reason = f"like_num of language '{nlp.lang}' has rules of its own for {others[:3]}"
        raise refused(pipe, reason, "Train without templates of like_num")
    return fields


def _classes(classes: WordClasses) -> dict[str, Any]:
    """Return word classes: hashes ascending, and numbers of classes, in base64."""
    # spaCy numbers some words, such as `det`, instead of hashing them.
    symbols = {number: portable.string_hash(text) for text, number in IDS.items()}
    code = {1: "B", 2: "H", 4: "I"}[classes.codes.dtype.itemsize]
    fields: dict[str, Any] = {"names": classes.classes, "type": code}
    n = classes.n_lower
    for name, part in (("lower", slice(n)), ("others", slice(n, None))):
        hashes = np.array([symbols.get(x, x) for x in classes.hashes[part].tolist()], "<u8")
        rows = np.argsort(hashes, kind="stable")
        codes = classes.codes[part][rows].astype(f"<u{classes.codes.dtype.itemsize}")
        arrays = hashes[rows], codes
        fields[name] = [base64.b64encode(array.tobytes()).decode() for array in arrays]
    return fields
