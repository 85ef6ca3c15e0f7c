"""Numbers of tokens: vectors, and extension attributes.

They are features as they are (`read_values`), or tests: each dimension of a vector in a bin.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from spacy.tokens import Doc, Token
from thinc.util import to_numpy

from ..errors import Errors, SparseCRFError
from .arguments import Read
from .attributes import VECTOR
from .plan import FROM_END, FROM_FIRST, places_of
from .templates import TokenTest

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
    columns = [_placed(read[test.read], offsets, test) for test in tests]
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


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
    origin = {FROM_FIRST: first, FROM_END: behind}.get(int(anchor), np.arange(len(values)))
    at = origin + offset
    inside = (at >= first) & (at < behind)
    return np.where(inside[:, None], values[np.where(inside, at, 0)], np.float32(0))


class VectorBins:
    """Bins of the dimensions of `token.vector`, W values a token.

    A vector is divided by the root of the mean of its squares, so that its length does not
    matter, and bins are as likely as each other for a normal distribution: two bins are the sign.
    The value of dimension d in bin b is d * bins + b + 1; a vector of zeros has no values.

    bins: 2 or more; width: W, number of dimensions.
    """

    def __init__(self, bins: int, width: int) -> None:
        self._bins = bins
        self._width = width
        self._edges = np.array([NormalDist().inv_cdf(b / bins) for b in range(1, bins)])

    def __call__(self, docs: Sequence[Doc]) -> NDArray[np.uint64]:
        """Read the tokens of Docs: [N, W].

        RAISES: SparseCRFError for vectors of another width, or that are not finite.
        """
        vectors = np.concatenate([vectors_of(doc, self._width) for doc in docs])
        size = np.sqrt(np.mean(np.square(vectors), axis=1, keepdims=True))
        with np.errstate(invalid="ignore"):
            bins = np.searchsorted(self._edges, vectors / size, side="right")
        values = bins + np.arange(1, self._width * self._bins, self._bins)
        return np.where(size > 0, values, 0).astype(np.uint64)


def vector_width(docs: Sequence[Doc]) -> int:
    """Number of dimensions of the vectors of Docs, at least one of which is not empty.

    RAISES: SparseCRFError if they have none.
    """
    doc = next(doc for doc in docs if len(doc))
    width = len(doc[0].vector)
    if not width:
        raise SparseCRFError(Errors.SC125)
    return width


def vectors_of(doc: Doc, width: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """The vectors of the tokens of a Doc, as `token.vector` gives them: [n, W].

    RAISES: SparseCRFError for vectors of another width, or that are not finite in this dtype.
    """
    if not len(doc):
        return np.empty((0, width), dtype)
    table = doc.vocab.vectors
    which = np.arange(len(doc))  # of those found is a token's
    found: Any
    if "vector" in doc.user_token_hooks:
        found = [token.vector for token in doc]
    elif table.size == 0 and doc.tensor.size != 0:
        found = doc.tensor
    else:
        keys, which = np.unique(doc.to_array(table.attr), return_inverse=True)
        found = [doc.vocab.get_vector(key) for key in keys.tolist()]
    widths = {len(vector) for vector in found}
    if widths != {width}:
        raise SparseCRFError(Errors.SC126.format(found=max(widths - {width}), trained=width))
    arrays = [to_numpy(vector) for vector in found]  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        vectors: NDArray[Any] = np.array(arrays).astype(dtype)[which]
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        bad = doc[int(finite.argmin())].text
        raise SparseCRFError(Errors.SC127.format(text=bad, doc=doc.text[:60]))
    return vectors
