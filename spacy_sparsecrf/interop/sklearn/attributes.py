"""Attributes of tokens: conversion of dicts and lists of features to numbers.

An attribute is a text as in python-crfsuite: {"w": "the"} is w:the, {"title": True} is title,
{"near": ["a", "b"]} is near:a and near:b, {"d": {"k": 0.5}} is d:k with the value 0.5, and a string
in a list is itself. The value of an attribute is 1, unless it is given as a number or False, which
is 0. An attribute with value 0 adds nothing to a score, but counts as observed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...errors import Errors, SparseCRFError

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]

_UNKNOWN = 0  # the number of an unknown attribute
SEPARATOR = ":"
_BLOCK = 512  # sequences per batch
_MOST_KEPT = 1 << 22  # largest number of entries cached in a vocabulary that does not grow
_NONE_YET = np.empty(0, np.int64)
_NOTHING = _NONE_YET, _NONE_YET, _NONE_YET, np.empty(0)
_LISTS = (list, tuple)
_SETS = (set, frozenset)
_LARGEST = float(np.finfo(np.float32).max)


class Attributes(NamedTuple):
    """Attributes of the tokens of sequences.

    offsets: [S + 1] int64, tokens of a sequence; indptr: [N + 1] int64, attributes of a token;
    numbers: [M] int64, > 0; values: [M] float64, finite and not 0, or None if all are 1;
    zero_tokens, zero_numbers: [Z] int64, tokens of attributes with value 0, and their numbers.
    """

    offsets: Longs
    indptr: Longs
    numbers: Longs
    values: Reals | None
    zero_tokens: Longs
    zero_numbers: Longs

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return len(self.indptr) - 1


class _NotPlainError(TypeError):
    """A feature that must be read separately: it is nested, or a number other than 0 and 1."""


class Vocabulary(dict[Any, int]):
    """Numbers of attributes, from 1, by text and by (key, value) pair of a dict.

    A looked-up pair is converted to text once and then cached. A pair with the value 0 has the
    negative number of its attribute; an unknown attribute has 0.

    texts: known attributes with their numbers; None: empty, new attributes get the next numbers.
    """

    def __init__(self, texts: Mapping[str, int] | None = None) -> None:
        super().__init__(texts or {})
        self._grows = texts is None
        self.texts: list[str] = []

    def __missing__(self, item: object) -> int:
        text, sign = _plain(item)
        number = self.get(text, _UNKNOWN)
        if self._grows and not number:
            self.texts.append(text)
            number = self[text] = len(self.texts)
        number *= sign
        if self._grows or len(self) < _MOST_KEPT:
            self[item] = number
        return number


def read_attributes(sequences: Iterable[Any], vocabulary: Vocabulary, first: int = 0) -> Attributes:
    """Read the features of sequences of tokens.

    first: index of the first sequence, for messages.
    RAISES: SparseCRFError with the first token whose features are invalid.
    """
    todo, parts = iter(sequences), [_NOTHING]
    while block := [*islice(todo, _BLOCK)]:
        for number, sequence in enumerate(block, start=first):
            if isinstance(sequence, str | bytes | Mapping) or not hasattr(sequence, "__iter__"):
                _refuse(f"X[{number}]", f"it is a {type(sequence).__name__}, not a list of tokens")
        block = [each if hasattr(each, "__len__") else [*each] for each in block]
        tokens = [*chain.from_iterable(block)]
        read = _read_plain(tokens, vocabulary) or _read_all(tokens, vocabulary, block, first)
        parts.append((np.fromiter(map(len, block), np.int64, len(block)), *read))
        first += len(block)
    lengths, sizes, numbers, values = map(np.concatenate, zip(*parts, strict=True))
    known, zero = (numbers > 0) & (values != 0.0), (numbers < 0) | ((numbers > 0) & (values == 0.0))
    indptr = np.append(0, np.cumsum(sizes))
    kept = np.append(0, np.cumsum(known))
    values = values[known]
    return Attributes(
        np.append(0, np.cumsum(lengths)),
        kept[indptr],
        numbers[known],
        None if (values == 1.0).all() else values,
        np.searchsorted(indptr, np.flatnonzero(zero), side="right") - 1,
        np.abs(numbers[zero]),
    )


def _read_plain(tokens: list[Any], vocabulary: Vocabulary) -> tuple[Longs, Longs, Reals] | None:
    """Read tokens of one type without nested features or numbers, without a Python loop.

    RETURNS: [N] numbers of features of a token, [M] their numbers in the vocabulary, and [M] their
    values, all 1; None for other tokens.
    """
    kinds = set(map(type, tokens))
    if kinds <= {dict}:
        items: Iterable[object] = chain.from_iterable(map(dict.items, tokens))
    elif kinds <= {list, tuple}:
        items = [*chain.from_iterable(tokens)]
        if not set(map(type, items)) <= {str}:
            return None
    else:
        return None
    sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
    try:
        numbers = np.fromiter(map(vocabulary.__getitem__, items), np.int64, int(sizes.sum()))
    except TypeError:  # also raised for unhashable values
        return None
    return sizes, numbers, np.ones(len(numbers))


def _read_all(
    tokens: list[Any], vocabulary: Vocabulary, block: Sequence[Any], first: int
) -> tuple[Longs, Longs, Reals]:
    """Read tokens of any type; see `_read_plain`.

    block: their sequences; first: index of the first sequence, both for messages.
    """
    numbers: list[int] = []
    values: list[float] = []
    sizes = np.zeros(len(tokens), np.int64)
    for t, token in enumerate(tokens):
        before = len(numbers)
        try:
            for text, value in _features(token):
                numbers.append(vocabulary[text])
                values.append(value)
        except (TypeError, ValueError) as error:
            _refuse(_place(t, block, first), str(error))
        sizes[t] = len(numbers) - before
    return sizes, np.array(numbers, np.int64), np.array(values, np.float64)


def _features(token: Any) -> Iterator[tuple[str, float]]:
    """Yield each attribute of a token and its value.

    RAISES: TypeError or ValueError for an invalid feature.
    """
    if isinstance(token, str):
        yield token, 1.0
    elif isinstance(token, Mapping):
        for key, value in token.items():
            yield from _valued(_text(key), value)
    elif isinstance(token, _LISTS + _SETS):
        # Sorted because the order of sets differs between processes.
        for item in sorted(token, key=_text) if isinstance(token, _SETS) else token:
            yield _text(item), 1.0
    else:
        raise TypeError(f"it is a {type(token).__name__}")


def _valued(key: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield each attribute of a dict's key and value, and its value."""
    if isinstance(value, str | bytes):
        yield f"{key}{SEPARATOR}{_text(value)}", 1.0
    elif isinstance(value, Real | np.bool_):
        # Compared before conversion, which may overflow for large integers.
        number: Any = value
        if not -_LARGEST <= number <= _LARGEST:
            raise ValueError(f"{key!r} is {value!r}, which is not a finite number of 32 bits")
        yield key, float(number)
    elif isinstance(value, (Mapping, *_LISTS, *_SETS)):
        for inner, own in _features(value):
            yield f"{key}{SEPARATOR}{inner}", own
    else:
        raise TypeError(f"{key!r} is a {type(value).__name__}")


def _text(item: object) -> str:
    """Return a string, or bytes decoded as UTF-8. RAISES: TypeError, ValueError."""
    if isinstance(item, bytes):
        return item.decode("utf8")
    if not isinstance(item, str):
        raise TypeError(f"{item!r} is a {type(item).__name__}, not a string")
    return item


def _plain(item: object) -> tuple[str, int]:
    """Return the attribute of a text or a pair, and 1, or -1 if its value is 0.

    RAISES: TypeError for other features.
    """
    if isinstance(item, str):
        return item, 1
    if isinstance(item, tuple):
        key, value = item  # of a dict
        if isinstance(value, str | bytes):
            return f"{_text(key)}{SEPARATOR}{_text(value)}", 1
        if isinstance(value, Real | np.bool_) and value in (0, 1):
            return _text(key), 1 if value else -1
    raise _NotPlainError


def _place(t: int, block: Sequence[Any], first: int) -> str:
    """Return the name of token t in a block of sequences, for messages."""
    for number, sequence in enumerate(block, start=first):
        if t < len(sequence):
            return f"X[{number}][{t}]"
        t -= len(sequence)
    raise IndexError(t)


def _refuse(place: str, reason: str) -> NoReturn:
    raise SparseCRFError(Errors.SC801.format(place=place, reason=reason)) from None
