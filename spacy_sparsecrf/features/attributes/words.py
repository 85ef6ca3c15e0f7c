"""Attributes of tokens that templates can read.

A word attribute depends only on the token's string: a function in `WORD` (or in `AFFIX` if it has a
length), a regular expression (see `expressions`), character n-grams, or a word class. An annotation
is an attribute that spaCy stores with the token. Others are read in Python (see `tokens`), which is
slower. The values "", 0 and False are missing: templates that read them give no feature.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from spacy.attrs import ENT_IOB, IDS, IS_SPACE, SPACY  # type: ignore[import-not-found]
from spacy.lang import lex_attrs

from ...corpus.words import UNSEEN

Value: TypeAlias = str | int

HYPHENS = frozenset("-\N{HYPHEN}\N{NON-BREAKING HYPHEN}")
LONGEST_NGRAM = 10  # in characters
LONG_WORD = 2 * LONGEST_NGRAM  # in characters; n-grams skip the middle of longer words


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


@dataclass(frozen=True)
class Ngrams:
    """The distinct character n-grams of a word, ordered by n, then by position.

    Words of more than LONG_WORD characters have only the n-grams of their first and of their last
    LONG_WORD / 2 characters, which bounds the number of values.

    shortest, longest: n, in characters (code points), 1..LONGEST_NGRAM.
    marks: "", or two characters that are put before and after the word.
    """

    shortest: int
    longest: int
    marks: str = ""

    @property
    def width(self) -> int:
        """Maximum number of n-grams of a word."""
        size = LONG_WORD + len(self.marks)
        return sum(size - n + 1 for n in range(self.shortest, self.longest + 1))

    def __call__(self, text: str) -> list[str]:
        """Return the n-grams of a word."""
        pieces = [text] if len(text) <= LONG_WORD else [text[:LONGEST_NGRAM], text[-LONGEST_NGRAM:]]
        pieces[0] = self.marks[:1] + pieces[0]
        pieces[-1] += self.marks[1:]
        found = [
            piece[i : i + n]
            for n in range(self.shortest, self.longest + 1)
            for piece in pieces
            for i in range(len(piece) - n + 1)
        ]
        return list(dict.fromkeys(found))


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
    "like_num": lex_attrs.like_num,
    "like_url": lex_attrs.like_url,
    "like_email": lex_attrs.like_email,
    "has_digit": has_digit,
    "has_hyphen": has_hyphen,
    "has_upper": has_upper,
}
"""Functions of the token's string. `like_num` is replaced by the function of the language."""

AFFIX: dict[str, Callable[[int, str], str]] = {"prefix": prefix, "suffix": suffix}
"""Functions of a length and the token's string, written `prefix(3)`."""

EXPRESSION: tuple[str, ...] = ("regex", "match")
"""Word attributes with a regular expression: whether it matches, and the first matching text."""

NGRAMS = "ngrams"
"""Word attribute with several values: see `Ngrams`."""

CLUSTER = "cluster"
"""Word attribute with a list of word classes, `cluster("name", bits)`: see `classes`."""

WORD_LABELS = "word_labels"
"""Word attribute: the labels of the word in the training data, see `word_labels`."""
OF_WORDS = f"{WORD_LABELS}[0]"
"""Name of these labels among saved word classes; no other list can have it."""

_STORED = ("norm", "tag", "pos", "morph", "lemma", "dep", "ent_type", "ent_iob")
ANNOTATION: dict[str, int] = {
    **{name: IDS[name.upper()] for name in _STORED},
    **{"glued": SPACY, "break": IS_SPACE},
}
"""Attributes that `Doc.to_array` reads, and their spaCy ids.

`glued` is true if no white space separates a word from the next word of its Doc. `break` is the
number of line breaks between a word and the word before, at most 2.
"""

EXTENSION, SPAN, PHRASE, VECTOR = "_", "span", "phrase", "vector"
FIRST, DOC_MAJORITY, DOC_ENTITY = STACKED = ("first", "doc_majority", "doc_entity")
"""Predictions of a first-stage model, see `stacking`."""

DOCUMENT = ("doc_lower", "doc_title", "doc_left", "doc_right", "doc_run")
"""Attributes of a word's other occurrences in the Doc, see `document`."""
DOC_LOWER, DOC_TITLE, DOC_LEFT, DOC_RIGHT, DOC_RUN = DOCUMENT

COMPARING: tuple[str, ...] = (DOC_MAJORITY, DOC_ENTITY, *DOCUMENT)
"""Attributes that compare a token with the same words elsewhere in the Doc, ignoring case."""

TOKEN: tuple[str, ...] = (EXTENSION, SPAN, PHRASE, VECTOR, *STACKED, *DOCUMENT)
"""Attributes read in Python, see `tokens`: `_.name span("key") phrase("name") vector(bins)`,
predictions of a first-stage model, and a word's other occurrences in the Doc."""

VALUE = "value"
"""A real-valued feature, `value(_.name)`; so is each dimension of `vector` without bins."""

SEVERAL = frozenset([CLUSTER, NGRAMS, PHRASE, VALUE, VECTOR, WORD_LABELS, *STACKED, *DOCUMENT])
"""Attributes that do not have one text per token."""

NUMBERS = frozenset([SPACY, IS_SPACE, ENT_IOB])
"""Annotations with numeric values; the values of other annotations are ids of strings."""

NAMES: tuple[str, ...] = (
    *(*WORD, *AFFIX, *EXPRESSION, NGRAMS, CLUSTER, WORD_LABELS),
    *(*ANNOTATION, *TOKEN, VALUE),
)
"""Every attribute, in the order in which messages list them."""
