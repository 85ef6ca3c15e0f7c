"""The annotations of tokens, and where sequences begin and end.

Imports numba.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import SPACY  # type: ignore[import-not-found]
from spacy.tokens import Doc

from ..errors import Errors, SparseCRFError
from ..kernels.reading import cut, glue

MODES = ("sents", "docs")


def check_mode(mode: str) -> None:
    """Raise `SparseCRFError` for anything but "sents" and "docs"."""
    if mode not in MODES:
        raise SparseCRFError(Errors.SC105.format(value=mode, known=", ".join(MODES)))


def read_tokens(
    docs: Sequence[Doc], attributes: tuple[int, ...], mode: str
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Read the tokens of Docs.

    docs: at least one.
    attributes: spaCy ids, the second of them SENT_START.
    mode: "sents", sentences where a Doc has them, else the Doc; or "docs", each Doc.
    RETURNS: [S + 1] int64, sequence s is the tokens offsets[s]:offsets[s + 1]; and the values of
        the attributes, [N, A] uint64, of which SPACY is inverted.
    """
    ends = np.array([*accumulate(map(len, docs))], dtype=np.int64)
    # to_array takes any iterable, and gives what spaCy's stub does not know.
    arrays: Any = [doc.to_array(attributes) for doc in docs]  # type: ignore[arg-type]
    values: NDArray[np.uint64] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    offsets = np.empty(len(values) + 1, dtype=np.int64)
    n_sequences = cut(ends, values, mode == "sents", offsets)
    if SPACY in attributes:
        glue(ends, values, attributes.index(SPACY))
    return offsets[: n_sequences + 1], values
