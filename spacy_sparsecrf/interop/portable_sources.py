"""The fields of what attributes read in portable models: phrases, classes, words of numbers."""

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import groupby
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
from .portable_expressions import EVERY, portable_expression
from .portable_tokenizer import refused

_ALL = 10_000  # more than the length of any class


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
    "is_ascii": r"^[\0-\x7f]*$",
    "like_email": r"^[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+",
    "like_url": r"^(?:https?://|www\..|(?!\.|[^@]*@|.*\.$)(?=.*\.)(?:"
    rf".*\.(?:[^.:]*/|{'|'.join(_DOMAINS)})(?::[^.]*)?$|{URL_PATTERN}))",
}
"""Attributes that are expressions in the reader."""
SIGNS = {
    "is_alpha": "^[Xxta]+$",
    "is_digit": "^d+$",
    "is_lower": "^[^XUt]*[xl][^XUt]*$",
    "is_upper": "^[^xlt]*[XU][^xlt]*$",
    "is_title": "^[^XUtxl]*([XUt][xl]*([^XUtxl]+|$))+$",
    "is_punct": "^p+$",
    "has_digit": "d",
    "has_upper": "[XU]",
}
"""Attributes that are expressions about the classes of characters, see `_class_of`."""
NAMES = {*portable.ATTRIBUTES, *portable.CONTEXTUAL, *EXPRESSIONS, *SIGNS}
NAMES |= {"prefix", "suffix", "short_shape", "like_num"}
"""Attributes that the reader has."""


class ReaderSources:
    """Collects the sources of attributes. words: that the model knows."""

    def __init__(self, nlp: Language, pipe: SparseCRFPipe, words: Iterable[str]) -> None:
        features: Any = pipe.features
        self.pipe, self.features, self.words = pipe, features, words
        self._nlp = nlp
        fold = ATTRS[features.phrase_attr]
        classes, phrases = features.learnt.get("clusters", {}), features.learnt.get("phrases", {})
        self.lists = {"characters": _character_classes(), "folded": _folded_characters()}
        self.lists |= {f"class {key}": _hashes(x) for key, x in classes.items()}
        for key, lists in phrases.items():
            self.lists[f"phrase {key}"] = {
                "\t".join(map(fold, phrase.split("\t"))): kind
                for kind, text in reversed(lists.items())
                for phrase in text.split("\n")
            }

    def call(self, read: Attribute) -> list[Any]:
        """Return the name of an attribute in the reader, and arguments. RAISES: SparseCRFError.

        An argument in brackets is the key of a list.
        """
        name, arguments = read.name, [x for x in read.arguments if x]
        if name in EXPRESSIONS:
            return ["regex", portable_expression(EXPRESSIONS[name])]
        if name == "like_num":
            return ["regex", _like_num(self._nlp, self.pipe, self.words)]
        if name in ("prefix", "suffix"):
            n = f".{{{arguments[0]}}}"
            return ["match", portable_expression(f"^{n}" if name == "prefix" else rf"{n}\Z")]
        if name in SIGNS:
            return ["signs", ["characters"], SIGNS[name]]
        if name in ("shape", "short_shape"):
            return ["shape", ["characters"], 4 if name == "shape" else 1]
        if isinstance(read, Cluster):
            return [name, [f"class {read.key}"], read.bits or _ALL]
        if isinstance(read, LabelsOfWord):
            return [name, portable_expression(r"\d"), [f"class {OF_WORDS}"], _ALL]
        if isinstance(read, Phrase):
            longest = max(x.count("\t") + 1 for x in self.lists[f"phrase {read.key}"])
            return [
                name,
                [f"phrase {read.key}"],
                longest,
                *_cased(self.features.phrase_attr.lower()),
            ]
        if isinstance(read, Expression):
            arguments = [portable_expression(read.pattern)]
        if isinstance(read, Ngrams):
            arguments = [read.shortest, read.longest, read.marks[:1], read.marks[1:]]
        return [*_cased(name), *arguments]


def _cased(name: str) -> list[Any]:
    """Return an attribute and the lists that it reads of the case of characters."""
    if name not in ("casefold", "fold"):
        return [name]
    accents = "".join(x for x in EVERY if unicodedata.combining(x))
    return [name, ["folded"], *([portable_expression(f"[{accents}]")] if name == "fold" else ())]


@cache
def _character_classes() -> dict[str, Any]:
    """Return the first characters of ranges of characters of one class, and their classes."""
    runs = [(next(codes), sign) for sign, codes in groupby(range(len(EVERY)), _class_of)]
    return {"starts": [code for code, _ in runs], "signs": "".join(sign for _, sign in runs)}


def _class_of(code: int) -> str:
    """Return the class of a character.

    X, x, t, a: letters in upper, lower and title case, and without case; d: digits; U, l: other
    characters in upper and lower case; p: punctuation; o: others.
    """
    char = chr(code)
    category = unicodedata.category(char)
    if char.isdigit():
        return "d"
    if char.isupper():
        return "X" if char.isalpha() else "U"
    if char.islower():
        return "x" if char.isalpha() else "l"
    return "t" if category == "Lt" else {"L": "a", "P": "p"}.get(category[0], "o")


@cache
def _folded_characters() -> dict[str, str]:
    """Return characters without case, if this is not their lower case."""
    return {x: x.casefold() for x in EVERY if x.casefold() != x.lower()}


def _like_num(nlp: Language, pipe: SparseCRFPipe, words: Iterable[str]) -> str:
    """Return the expression of numbers in a language: digits, a fraction, an ordinal, a word.

    RAISES: SparseCRFError if it answers otherwise for words that the model knows.
    """
    function: Any = nlp.vocab.lex_attr_getters[LIKE_NUM]  # type: ignore[attr-defined]
    texts = sorted(_listed(function))
    digit = "".join(x for x in EVERY if x.isdigit())
    number = f"[,.]*[{digit}][{digit},.]*"
    endings = [_written(x) for x in texts if x.isalpha() and function(f"21{x}")]
    ends = "".join(f"|{x}" for x in [f"/{number}", *endings])
    others = "".join(f"|{_written(x)}" for x in texts if function(x) and not x[0].isdigit())
    sign = "%?" if function("5%") else ""
    text = portable_expression(rf"^[-+±~]?(?:{number}(?:{ends}){others}){sign}\Z")
    differing = [x for x in words if bool(function(x)) != bool(re.search(text, x))]
    if differing:
        reason = f"like_num of language '{nlp.lang}' answers otherwise for {differing[:3]}"
        raise refused(pipe, reason, "Train without templates of like_num")
    return text


def _written(word: str) -> str:
    """Return the expression of a word in either case, with points and commas anywhere."""
    cases = ((x, x.upper()) if x.upper().lower() == x else x for x in word)
    return "".join(f"[{''.join(map(re.escape, case))}][,.]*" for case in cases)


def _hashes(classes: WordClasses) -> dict[str, str]:
    """Return the classes of words by their hashes, hexadecimal."""
    # spaCy numbers some words, such as `det`, instead of hashing them.
    symbols = {number: portable.string_hash(text) for text, number in IDS.items()}
    return {
        f"{symbols.get(number, number):x}": classes.classes[code]
        for number, code in zip(classes.hashes.tolist(), classes.codes.tolist(), strict=True)
    }
