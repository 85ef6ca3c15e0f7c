"""Attributes of tokens: conversion of dicts and lists of features to numbers.

An attribute is a text as in python-crfsuite: {"w": "the"} is w:the, {"title": True} is title,
{"near": ["a", "b"]} is near:a and near:b, {"d": {"k": 0.5}} is d:k with the value 0.5, and a string
in a list is itself. The value of an attribute is 1, unless it is given as a number or False, which
is 0. An attribute with value 0 adds nothing to a score, but counts as observed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, repeat
from numbers import Real
from typing import Any, NamedTuple

from ...errors import Errors, SparseCRFError, brief
from ..crfsuite_file import LARGEST

SEPARATOR = ":"
_MOST_CACHED = 1 << 22  # largest number of entries cached in a vocabulary that does not grow
_SIMPLE = (str, bytes, Real)
_NUMBERS = (float, int)
_BOOLS = ("bool", "bool_")  # names of numpy's type, which is no number to Python


class Numbered(NamedTuple):
    """Attributes of the N tokens of sequences, as they are read.

    ends: the end of each sequence, in tokens, after a 0; sizes: number of attributes of each token;
    numbers: of attributes, 0 for unknown ones; values: finite, by position in `numbers`. Without a
    value, it is 1, and 0 if the number is negative.
    """

    ends: list[int]
    sizes: list[int]
    numbers: list[int]
    values: dict[int, float]


class _Growing(dict[str, int]):
    """Numbers of texts in their order, from 1."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self) + 1
        return number


class Vocabulary(dict[Any, int]):
    """Numbers of attributes, from 1, by (key, value) pair of a dict, and by text.

    A looked-up pair is converted to text once and then cached. A pair with the value 0 has the
    negative number of its attribute; an unknown attribute has 0. Pairs with other numbers or
    nested features raise TypeError. Nested dicts have vocabularies of their own, see `inner`.
    is_flat: whether all dicts so far had only pairs that can be looked up.

    numbers: of texts, 0 of unknown ones; by default, all attributes are new and get the next
        numbers; room, prefix: of a nested vocabulary: an item for each entry of the caches.
    """

    def __init__(
        self,
        numbers: dict[str, int] | None = None,
        *,
        room: Iterator[bool] | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__()
        self.is_flat, self._prefix = True, prefix
        self._numbers = _Growing() if numbers is None else numbers
        self._room = room or (repeat(True) if numbers is None else repeat(True, _MOST_CACHED))
        self._inner = dict[str, Vocabulary]()

    @property
    def texts(self) -> list[str]:
        """The attributes, if they are new, in the order of their numbers."""
        return [*self._numbers]

    def inner(self, key: Any) -> "Vocabulary":
        """Return the vocabulary of the dicts that are values of a key, cached like a pair."""
        nested = self._inner.get(key)
        if nested is None:
            prefix = f"{self._prefix}{_text(key)}{SEPARATOR}"
            nested = Vocabulary(self._numbers, room=self._room, prefix=prefix)
            if next(self._room, False):
                self._inner[key] = nested
        return nested

    def __missing__(self, item: Any) -> int:
        pair: tuple[Any, Any] = (item, True) if isinstance(item, str) else item
        key, value = pair
        kind = type(value)
        if kind is str and type(key) is str:
            number = self._numbers[f"{self._prefix}{key}{SEPARATOR}{value}"]
        elif kind is bool and type(key) is str:
            number = self._numbers[self._prefix + key]
            if not value:
                number = -number
        elif isinstance(value, _SIMPLE) or kind.__name__ in _BOOLS:
            [(text, sign)] = _valued(_text(key), value)
            if sign not in (0.0, 1.0):
                raise TypeError
            number = self._numbers[self._prefix + text] * (1 if sign else -1)
        else:
            raise TypeError
        if next(self._room, False):
            self[item] = number
        return number


def items_of(sequence: Any) -> list[dict[str, float]]:
    """Return the values of the attributes of tokens. RAISES: as `read_numbers`."""
    tokens = []
    for t, token in enumerate(as_tokens(sequence, "xseq")):
        values: dict[str, float] = {}
        try:
            for text, value in _features(token):
                values[text] = values.get(text, 0.0) + value
        except (TypeError, ValueError, RecursionError) as error:
            raise invalid(f"xseq[{t}]", error) from None
        tokens.append(values)
    return tokens


def read_numbers(sequences: Iterable[Any], vocabulary: Vocabulary, first: int = 0) -> Numbered:
    """Read the features of sequences of tokens.

    first: index of the first sequence, for messages.
    RAISES: SparseCRFError with the first token whose features are invalid.
    """
    read = ends, sizes, numbers, values = Numbered([0], [], [], {})
    for s, sequence in enumerate(sequences, start=first):
        tokens = sequence if type(sequence) is list else as_tokens(sequence, f"X[{s}]")
        if vocabulary.is_flat and {*map(type, tokens)} == {dict}:
            begin = len(numbers)
            try:
                pairs = chain.from_iterable(map(dict.items, tokens))
                numbers.extend(map(vocabulary.__getitem__, pairs))
                sizes.extend(map(len, tokens))
                ends.append(len(sizes))
                continue
            except (TypeError, ValueError):  # is read token by token, which says where it is
                del numbers[begin:]
        for token in tokens:
            begin = len(numbers)
            try:
                if type(token) is dict:
                    _read_dict(token, vocabulary, numbers, values)
                elif type(token) is list and {*map(type, token)} == {str}:
                    numbers.extend(map(vocabulary.__getitem__, token))
                else:
                    _read_features(token, vocabulary, numbers, values)
            except SparseCRFError:  # of the model's file, in which features are looked up
                raise
            except (TypeError, ValueError, RecursionError) as error:
                raise invalid(f"X[{s}][{len(sizes) - ends[-1]}]", error) from None
            sizes.append(len(numbers) - begin)
        ends.append(len(sizes))
    return read


def as_tokens(sequence: Any, place: str) -> Collection[Any]:
    """Return the tokens of a sequence, also of an iterator. RAISES: SparseCRFError."""
    unordered = isinstance(sequence, str | bytes | Mapping | Set)
    if unordered or not isinstance(sequence, Iterable):
        raise invalid(place, f"it is a {type(sequence).__name__}, not a list of tokens")
    return sequence if isinstance(sequence, Collection) else [*sequence]


def invalid(place: str, reason: object) -> SparseCRFError:
    """Return an error about features at a place."""
    return SparseCRFError(Errors.SC801.format(place=place, reason=reason))


def check_lengths(lengths: Sequence[int], y: Sequence[Any], suffix: str = "") -> None:
    """Check that there is one label for each token.

    lengths: of the sequences; suffix: of the names X and y in messages. RAISES: SparseCRFError.
    """
    check_length(f"X{suffix}", len(lengths), f"y{suffix}", len(y))
    for number, (n, gold) in enumerate(zip(lengths, y, strict=True)):
        check_length(f"X{suffix}[{number}]", n, f"y{suffix}[{number}]", len(gold))


def check_length(x: str, n: int, y: str, found: int) -> None:
    """Refuse another number than n. x, y: names, for the message. RAISES: SparseCRFError."""
    if found != n:
        raise SparseCRFError(Errors.SC802.format(x=x, n=n, y=y, found=found))


def _read_dict(
    features: dict[Any, Any], vocabulary: Vocabulary, numbers: list[int], values: dict[int, float]
) -> None:
    """Append the numbers of a dict's attributes; see `Numbered`.

    RAISES: TypeError, ValueError or RecursionError for an invalid feature.
    """
    if vocabulary.is_flat:
        begin = len(numbers)
        try:
            numbers.extend(map(vocabulary.__getitem__, features.items()))
            return
        except TypeError:  # other features than strings and 0 and 1, and unhashable ones
            del numbers[begin:]
            vocabulary.is_flat = False
    for item in features.items():
        key, value = item
        kind = type(value)
        # Abstract types are slow to test, and rare.
        if kind is str or kind is bool:
            numbers.append(vocabulary[item])
        elif kind is dict:
            _read_dict(value, vocabulary.inner(key), numbers, values)
        elif kind in _NUMBERS and type(key) is str and -LARGEST <= value <= LARGEST:
            if value != 1:
                values[len(numbers)] = float(value)
            numbers.append(vocabulary[key])
        else:
            _read_features({key: value}, vocabulary, numbers, values)


def _read_features(
    token: Any, vocabulary: Vocabulary, numbers: list[int], values: dict[int, float]
) -> None:
    """Do `_read_dict` for features of any type."""
    for text, value in _features(token):
        if value != 1.0:
            values[len(numbers)] = value
        numbers.append(vocabulary[text])


def _features(token: Any) -> Iterator[tuple[str, float]]:
    """Yield each attribute of a token and its value.

    RAISES: TypeError or ValueError for an invalid feature.
    """
    if isinstance(token, str):
        yield token, 1.0
    elif isinstance(token, Mapping):
        for key, value in token.items():
            yield from _valued(_text(key), value)
    elif isinstance(token, Iterable) and not isinstance(token, bytes):
        # Sorted because the order of sets differs between processes.
        for item in sorted(token, key=_text) if isinstance(token, Set) else token:
            yield _text(item), 1.0
    else:
        raise TypeError(f"it is a {type(token).__name__}")


def _valued(key: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield each attribute of a dict's key and value, and its value."""
    if isinstance(value, str | bytes):
        yield f"{key}{SEPARATOR}{_text(value)}", 1.0
    elif isinstance(value, Real) or type(value).__name__ in _BOOLS:
        # Compared before conversion, which may overflow for large integers.
        number: Any = value
        if not -LARGEST <= number <= LARGEST:
            raise ValueError(
                f"{brief(key)} is {brief(value)}, which is not a finite number of 32 bits"
            )
        yield key, float(number)
    elif isinstance(value, Iterable):
        for inner, number in _features(value):
            yield f"{key}{SEPARATOR}{inner}", number
    else:
        raise TypeError(f"{brief(key)} is a {type(value).__name__}")


def _text(item: object) -> str:
    """Return a string, or bytes decoded as UTF-8 (PEP 383). RAISES: TypeError."""
    if isinstance(item, bytes):
        return item.decode("utf8", "surrogateescape")
    if not isinstance(item, str):
        raise TypeError(f"{brief(item)} is a {type(item).__name__}, not a string")
    return item
