"""Dense vectors as tests: each dimension in a bin."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from spacy.tokens import Doc
from thinc.util import to_numpy

from ..errors import Errors, SparseCRFError


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
    places = np.arange(len(doc))
    rows: Any
    if "vector" in doc.user_token_hooks:
        rows = [token.vector for token in doc]
    elif table.size == 0 and doc.tensor.size != 0:
        rows = doc.tensor
    else:
        keys, places = np.unique(doc.to_array(table.attr), return_inverse=True)
        rows = [doc.vocab.get_vector(key) for key in keys.tolist()]
    widths = {len(row) for row in rows}
    if widths != {width}:
        raise SparseCRFError(Errors.SC126.format(found=max(widths - {width}), trained=width))
    found = [to_numpy(row) for row in rows]  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        vectors: NDArray[Any] = np.array(found).astype(dtype)[places]
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        bad = doc[int(finite.argmin())].text
        raise SparseCRFError(Errors.SC127.format(text=bad, doc=doc.text[:60]))
    return vectors
