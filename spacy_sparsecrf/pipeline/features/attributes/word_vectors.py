"""Vectors of tokens: each dimension as a real-valued feature, or hashed by its bin."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from spacy.tokens import Doc
from thinc.util import to_numpy

from ....crf.corpus.numbering import Array, Singles
from ....errors import Errors, SparseCRFError
from ..cursor import Cursor
from .attribute import Attribute, PythonAttribute, RealAttribute, Sources, TokenReader, Values

MOST_BINS = 100


@dataclass(frozen=True)
class BinnedVector(PythonAttribute):
    """The dimensions of `token.vector`, by their bins: `vector(4)`. bins: their number, from 2."""

    NAMES = ("vector",)
    has_one_text = False
    is_number = True

    bins: int

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> Attribute:
        """Parse `[ "(" bins ")" ]`; without bins, the dimensions are real-valued features."""
        if not cursor.take_char("("):
            return RealVector(name)
        bins = cursor.take_integer(2, "a number of bins", MOST_BINS)
        cursor.expect(")")
        return cls(name, bins)

    def width(self, vector_width: int = 0) -> int:
        """See `Attribute.width`."""
        return vector_width

    def reader(self, sources: Sources) -> TokenReader:
        """See `PythonAttribute.reader`."""
        return VectorBins(self.bins, sources.vector_width)


@dataclass(frozen=True)
class RealVector(RealAttribute):
    """The dimensions of `token.vector`, which are not scaled: `vector`."""

    def width(self, vector_width: int = 0) -> int:
        """See `Attribute.width`."""
        return vector_width

    def numbers(self, docs: Sequence[Doc], vector_width: int) -> Singles:
        """See `RealAttribute.numbers`. RAISES: also for vectors of another width."""
        return np.concatenate([vectors_of(doc, vector_width, np.float32) for doc in docs])


class VectorBins(TokenReader):
    """Bins of the dimensions of `token.vector`, W values per token.

    A vector is divided by its root mean square, so that its norm does not matter. Bins are equally
    likely under a normal distribution; two bins give the sign. The value of dimension d in bin b
    is d * bins + b + 1; a vector of zeros has no values.

    bins: 2 or more; width: W, number of dimensions.
    """

    def __init__(self, bins: int, width: int) -> None:
        self._bins = bins
        self._width = width
        self._edges = np.array([NormalDist().inv_cdf(b / bins) for b in range(1, bins)])

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """Read the tokens of Docs: [N, W].

        RAISES: SparseCRFError for vectors of another width, or that are not finite.
        """
        vectors = np.concatenate([vectors_of(doc, self._width) for doc in docs])
        size = np.sqrt(np.mean(np.square(vectors), axis=1, keepdims=True))
        with np.errstate(invalid="ignore"):
            bins = np.searchsorted(self._edges, vectors / size, side="right")
        values = bins + np.arange(1, self._width * self._bins, self._bins)
        return np.where(size > 0, values, 0).astype(np.uint64)


def width_of_vectors(docs: Sequence[Doc]) -> int:
    """Return the width of the vectors of Docs, at least one of which is not empty.

    RAISES: SparseCRFError if tokens have no vectors.
    """
    doc = next(doc for doc in docs if len(doc))
    width = len(doc[0].vector)
    if not width:
        raise SparseCRFError(Errors.SC125)
    return width


def vectors_of(doc: Doc, width: int, dtype: DTypeLike = np.float64) -> Array:
    """Return the vectors of the tokens of a Doc, the same as `token.vector`: [n, W].

    RAISES: SparseCRFError for vectors of another width, or that are not finite in this dtype.
    """
    if not len(doc):
        return np.empty((0, width), dtype)
    table = doc.vocab.vectors
    which = np.arange(len(doc))  # index in `distinct` of each token's vector
    distinct: Any
    if "vector" in doc.user_token_hooks:
        distinct = [token.vector for token in doc]
    elif table.size == 0 and doc.tensor.size != 0:
        distinct = doc.tensor
    else:
        keys, which = np.unique(doc.to_array(table.attr), return_inverse=True)
        distinct = [doc.vocab.get_vector(key) for key in keys.tolist()]
    widths = {len(vector) for vector in distinct}
    if widths != {width}:
        raise SparseCRFError(Errors.SC126.format(found=max(widths - {width}), trained=width))
    arrays = [to_numpy(vector) for vector in distinct]  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        vectors: Array = np.array(arrays).astype(dtype)[which]
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        bad = doc[int(finite.argmin())].text
        raise SparseCRFError(Errors.SC127.format(text=bad, doc=doc.text[:60]))
    return vectors
