"""Attributes of the text of a word, and of its first and last characters."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter

from spacy.lang import lex_attrs

from ....crf.corpus.blanks import UNSEEN
from ..cursor import Cursor
from .attribute import Sources, Value, WordAttribute, WordReader

HYPHENS = frozenset("-\N{HYPHEN}\N{NON-BREAKING HYPHEN}")


def seen(text: str) -> str:
    """Return a word as readers see it: without characters that have no width, composed (NFC)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(UNSEEN))


def prefix(n: int, text: str) -> str:
    """Return the first n characters (code points), or "" if there are fewer."""
    return text[:n] if len(text) >= n else ""


def suffix(n: int, text: str) -> str:
    """Return the last n characters (code points), or "" if there are fewer."""
    return text[-n:] if len(text) >= n else ""


def has_hyphen(text: str) -> bool:
    """Return whether the text contains a hyphen."""
    return not HYPHENS.isdisjoint(text)


def has_digit(text: str) -> bool:
    """Return whether the text contains a digit."""
    return any(map(str.isdigit, text))


def has_upper(text: str) -> bool:
    """Return whether the text contains an upper-case letter."""
    return any(map(str.isupper, text))


def fold(text: str) -> str:
    """Return the text without accents and case: "ete" for "Été" and for "ETE"."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char)).casefold()


def short_shape(text: str) -> str:
    """Return the shape with repeated characters collapsed: "Xx." for "Ms." and for "Messrs."."""
    return "".join(map(itemgetter(0), groupby(lex_attrs.word_shape(text))))


FUNCTIONS: dict[str, Callable[[str], Value]] = {
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
    "like_num": lex_attrs.like_num,
    "like_url": lex_attrs.like_url,
    "like_email": lex_attrs.like_email,
    "has_digit": has_digit,
    "has_hyphen": has_hyphen,
    "has_upper": has_upper,
}
"""Functions of the token's string. `like_num` is replaced by the function of the language."""


@dataclass(frozen=True)
class Word(WordAttribute):
    """A function of the word, in `FUNCTIONS`."""

    NAMES = tuple(FUNCTIONS)

    def reader(self, sources: Sources) -> WordReader:
        """See `WordAttribute.reader`."""
        return sources.functions[self.name]


@dataclass(frozen=True)
class Affix(WordAttribute):
    """The first or last characters of a word: `prefix(3)`. length: in characters."""

    NAMES = ("prefix", "suffix")

    length: int

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "Affix":
        """Parse `"(" length ")"`."""
        cursor.expect("(", f" and a length, as in {name}(3)")
        length = cursor.take_integer(1, "a length")
        cursor.expect(")")
        return cls(name, length)

    def reader(self, sources: Sources) -> WordReader:
        """See `WordAttribute.reader`."""
        return partial(prefix if self.name == "prefix" else suffix, self.length)
