"""Numbers of tokens that are features as they are: dimensions of vectors, extension attributes."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Token

from ..errors import Errors, SparseCRFError
from .arguments import Read
from .attributes import VECTOR
from .places import BEHIND, FIRST, places_of
from .templates import TokenTest
from .vectors import vectors_of

Reals: TypeAlias = NDArray[np.float32]
Longs: TypeAlias = NDArray[np.int64]

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_LARGEST = float(np.finfo(np.float32).max)


def read_values(
    tests: Sequence[TokenTest], docs: Sequence[Doc], offsets: Longs, vector_width: int
) -> Reals:
    """Read the numbers of tokens: [N, V] float32.

    A number is 0 where a token is outside the sequence, or has none. Vectors are not scaled.
    tests: of templates whose reads are real; docs: of one vocab; offsets: [S + 1], their tokens'
    sequences; vector_width: number of dimensions of vectors.
    RAISES: SparseCRFError for numbers that are none, or not finite, and for vectors of another
        width.
    """
    read: dict[Read, Reals] = {}
    for test in tests:
        if test.read not in read:
            read[test.read] = _read(test.read, docs, vector_width)
    parts = [_placed(read[test.read], offsets, test) for test in tests]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _read(read: Read, docs: Sequence[Doc], vector_width: int) -> Reals:
    """What is read from the tokens of Docs: [N, W]."""
    if read.name != VECTOR:
        return _read_numbers(read, docs)
    return np.concatenate([vectors_of(doc, vector_width, np.float32) for doc in docs])


def _read_numbers(read: Read, docs: Sequence[Doc]) -> Reals:
    """Numbers of an extension attribute: [N, 1]."""
    name = read.argument
    if not Token.has_extension(name):
        raise SparseCRFError(Errors.SC120.format(name=name))
    numbers = [_number(read, token, doc) for doc in docs for token in doc]
    return np.array(numbers, dtype=np.float32)[:, None]


def _number(read: Read, token: Token, doc: Doc) -> float:
    value: Any = token._.get(read.argument)
    if value is None:
        return 0.0
    where = {"read": read, "name": read.argument, "text": token.text}
    if not isinstance(value, _NUMBERS):
        raise SparseCRFError(Errors.SC391.format(kind=type(value).__name__, **where))
    number: Any = value
    # Compared before it is converted: a whole number of any size does not overflow there.
    if not -_LARGEST <= number <= _LARGEST:
        raise SparseCRFError(Errors.SC392.format(value=value, doc=doc.text[:60], **where))
    return float(number)


def _placed(values: Reals, offsets: Longs, test: TokenTest) -> Reals:
    """The values [N, W] of the tokens where a test looks, 0 outside of the sequence."""
    (offset,), (anchor,) = places_of([test])
    if not test.absolute and offset == 0:
        return values
    lengths = np.diff(offsets)
    first, behind = np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths)
    origin = {FIRST: first, BEHIND: behind}.get(int(anchor), np.arange(len(values)))
    at = origin + offset
    inside = (at >= first) & (at < behind)
    return np.where(inside[:, None], values[np.where(inside, at, 0)], np.float32(0))
