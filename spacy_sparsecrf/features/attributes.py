"""What templates can read from a token.

A word attribute is a function of the token's string, a line below and its name in `WORD` (or in
`AFFIX` if it takes a length), a regular expression (see `expressions`), or n-grams (see `ngrams`);
an annotation is an attribute that spaCy stores with the token. Others are read in Python (see
`annotations`), which is slower. A value "" or 0 or False is no value: nothing is tested there.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from spacy.attrs import (  # type: ignore[import-not-found]
    DEP,
    ENT_IOB,
    ENT_TYPE,
    LEMMA,
    MORPH,
    NORM,
    POS,
    SPACY,
    TAG,
)
from spacy.lang import lex_attrs

Value: TypeAlias = str | int

HYPHENS = frozenset("-\N{HYPHEN}\N{NON-BREAKING HYPHEN}")


def prefix(n: int, text: str) -> str:
    """The first n characters (code points); nothing where there are fewer."""
    return text[:n] if len(text) >= n else ""


def suffix(n: int, text: str) -> str:
    """The last n characters (code points); nothing where there are fewer."""
    return text[-n:] if len(text) >= n else ""


def has_hyphen(text: str) -> bool:
    """Whether a hyphen is in the text."""
    return not HYPHENS.isdisjoint(text)


def has_digit(text: str) -> bool:
    """Whether a digit is in the text."""
    return any(map(str.isdigit, text))


def has_upper(text: str) -> bool:
    """Whether an upper-case letter is in the text."""
    return any(map(str.isupper, text))


def fold(text: str) -> str:
    """The text without accents and without case: "Été" and "ETE" are both "ete"."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char)).casefold()


def short_shape(text: str) -> str:
    """The shape with each run of one sign collapsed: "Xx." for both "Ms." and "Messrs."."""
    return re.sub(r"(.)\1+", r"\1", lex_attrs.word_shape(text), flags=re.DOTALL)


WORD: dict[str, Callable[[str], Value]] = {
    "orth": str,
    "lower": str.lower,
    "casefold": str.casefold,
    "fold": fold,
    "shape": lex_attrs.word_shape,
    "short_shape": short_shape,
    "length": len,
    "is_alpha": str.isalpha,
    "is_ascii": str.isascii,
    "is_digit": str.isdigit,
    "is_lower": str.islower,
    "is_upper": str.isupper,
    "is_title": str.istitle,
    "is_punct": lex_attrs.is_punct,
    "is_space": str.isspace,
    "like_num": lex_attrs.like_num,
    "like_url": lex_attrs.like_url,
    "like_email": lex_attrs.like_email,
    "has_digit": has_digit,
    "has_hyphen": has_hyphen,
    "has_upper": has_upper,
}
"""Functions of the token's string. `like_num` is replaced by the language's own."""

AFFIX: dict[str, Callable[[int, str], str]] = {"prefix": prefix, "suffix": suffix}
"""Functions of a length and the token's string, written `prefix(3)`."""

EXPRESSION: tuple[str, ...] = ("regex", "match")
"""Word attributes of a regular expression: whether it is found, and the first text that matches."""

NGRAMS = "ngrams"
"""Word attribute with several values: character n-grams, see `ngrams`."""

ANNOTATION: dict[str, int] = {
    "norm": NORM,
    "tag": TAG,
    "pos": POS,
    "morph": MORPH,
    "lemma": LEMMA,
    "dep": DEP,
    "ent_type": ENT_TYPE,
    "ent_iob": ENT_IOB,
    "glued": SPACY,
}
"""Attributes that `Doc.to_array` reads, and their spaCy ids.

`glued` is true where no white space stands between a token and the next one of its Doc.
"""

EXTENSION, SPAN, PHRASE, VECTOR = "_", "span", "phrase", "vector"
TOKEN: tuple[str, ...] = (EXTENSION, SPAN, PHRASE, VECTOR)
"""What is read in Python, see `annotations`: `_.name span("key") phrase("name") vector(bins)`."""

VALUE = "value"
"""A number as such, `value(_.name)`; so is each dimension of `vector` without bins."""

NUMBERS = frozenset([SPACY, ENT_IOB])
"""Annotations whose values are numbers; those of the others are ids of strings."""

NAMES: tuple[str, ...] = (*WORD, *AFFIX, *EXPRESSION, NGRAMS, *ANNOTATION, *TOKEN, VALUE)
"""Every attribute, in the order in which messages list them."""
