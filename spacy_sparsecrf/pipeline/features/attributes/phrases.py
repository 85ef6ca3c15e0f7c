"""Lists of phrases (gazetteers), and their matches in Docs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.util import filter_spans

from ....crf.corpus.blanks import words_of
from ....errors import Errors, SparseCRFError
from .attribute import (
    KeyedAttribute,
    PhraseList,
    PythonAttribute,
    Sources,
    TokenReader,
    Value,
    Values,
)
from .words import fold

ATTRS: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "ORTH": str, "FOLD": fold}
"""Attributes by which tokens can be compared, as functions of the text."""
_MOST_DIMENSIONS = 1 << 16  # of vectors


@dataclass(frozen=True)
class Phrase(KeyedAttribute, PythonAttribute):
    """The place of the token in a phrase of a list: `phrase("places")`, see `Phrases`."""

    NAMES = ("phrase",)
    SETTING = "phrases"
    has_one_text = False

    def reader(self, sources: Sources) -> TokenReader:
        """See `PythonAttribute.reader`."""
        return Phrases(sources.phrases[self.key], sources.phrase_attr)


class _Match(NamedTuple):
    """The attributes of a Span that `filter_spans` reads, and the type of the phrase."""

    start: int
    end: int
    type: str


class Phrases(TokenReader):
    """Marks of tokens that begin ("B"), continue ("I") or end ("L") a phrase, or are one ("U").

    If matches overlap, the longest is used, of equally long matches the first. The marks of a
    phrase with a type end in a hyphen and the type: "B-city".

    phrases: by type; attr: attribute by which tokens are compared, one of ATTRS.
    """

    def __init__(self, phrases: PhraseList, attr: str) -> None:
        self._attr = attr
        self._types: dict[tuple[int, ...], str] = {}
        self._lengths: dict[int, set[int]] = {}
        for type_, listed in phrases.items():
            for tokens in listed:
                ids = tuple(get_string_id(ATTRS[attr](token)) for token in tokens)
                self._types.setdefault(ids, type_)
                self._lengths.setdefault(ids[0], set()).add(len(ids))
        self._signs = {
            type_: dict(zip("BILU", map(get_string_id, marks_of(type_)), strict=True))
            for type_ in phrases
        }

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """Read the tokens of Docs: [N, 1]."""
        values = np.zeros(sum(map(len, docs)), dtype=np.uint64)
        behind = 0
        for doc in docs:
            words = words_of(doc)
            matches: Any = self._matches(self._compared(doc)[words].tolist())
            longest: Any = filter_spans(matches)
            for match in longest:
                tokens = behind + words[match.start : match.end]
                signs = self._signs[match.type]
                values[tokens] = signs["I"]
                values[tokens[0]] = signs["B"]
                values[tokens[-1]] = signs["L"]
                if len(tokens) == 1:
                    values[tokens] = signs["U"]
            behind += len(doc)
        return values[:, None]

    def texts(self, docs: Sequence[Doc], tokens: Mapping[int, int]) -> Mapping[int, Value]:
        """See `TokenReader`."""
        marks = (mark for type_ in self._signs for mark in marks_of(type_))
        return {int(get_string_id(mark)): mark for mark in marks}

    def _matches(self, ids: Sequence[int]) -> Iterator[_Match]:
        """Yield all matches. ids: of the compared attribute of each token."""
        for start, begin in enumerate(ids):
            for length in self._lengths.get(begin, ()):
                tokens = tuple(ids[start : start + length])  # fewer at the end of the Doc
                if len(tokens) == length and tokens in self._types:
                    yield _Match(start, start + length, self._types[tokens])

    def _compared(self, doc: Doc) -> NDArray[np.uint64]:
        """Return the ids of the compared attribute of each token: [tokens] uint64."""
        if self._attr == "FOLD":
            return np.array([_folded_id(token.text) for token in doc], dtype=np.uint64)
        ids: Any = doc.to_array(self._attr)  # an array of integers, unknown to spaCy's stub
        return np.asarray(ids, dtype=np.uint64)


@lru_cache(maxsize=1 << 18)
def _folded_id(word: str) -> int:
    return get_string_id(fold(word))


def marks_of(type_: str) -> list[str]:
    """Return the marks of tokens in phrases of a type; type_: "" for phrases without a type."""
    return [f"{sign}-{type_}" if type_ else sign for sign in "BILU"]


def saved(lists: Mapping[str, PhraseList]) -> dict[str, dict[str, str]]:
    """Return lists for JSON: a text per type, with a phrase per line and tabs between tokens."""
    return {
        name: {type_: "\n".join(map("\t".join, listed)) for type_, listed in phrases.items()}
        for name, phrases in lists.items()
    }


def restored(learnt: Mapping[str, Any], names: Sequence[str]) -> dict[str, PhraseList] | None:
    """Check data of `Featurizer.learnt` that comes from a file, and restore its lists of phrases.

    names: of the lists that templates read.
    RETURNS: the lists, if there are any.
    RAISES: SparseCRFError if the data is invalid.
    """
    width = learnt.get("vector_width", 0)
    if type(width) is not int or not 0 <= width <= _MOST_DIMENSIONS:
        raise SparseCRFError(Errors.SC137.format(reason=f"vectors cannot be {width!r} wide"))
    if "phrases" not in learnt:
        return None
    lists: dict[str, PhraseList] = {}
    for name in names:
        try:
            texts = learnt["phrases"][name].items()
            phrases = {type_: [x.split("\t") for x in text.split("\n")] for type_, text in texts}
        except (KeyError, TypeError, AttributeError):
            phrases = {}
        if not phrases or not all(all(tokens) for listed in phrases.values() for tokens in listed):
            reason = f"the list of phrases {name!r} is missing or damaged"
            raise SparseCRFError(Errors.SC137.format(reason=reason))
        lists[name] = phrases
    return lists
