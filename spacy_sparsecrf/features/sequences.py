"""Where sequences begin and end."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import SENT_START  # type: ignore[import-not-found]
from spacy.tokens import Doc

from ..errors import Errors, SparseCRFError

MODES = ("sents", "docs")


def sequence_offsets(docs: Sequence[Doc], mode: str) -> NDArray[np.int64]:
    """Cut the concatenated tokens of Docs into sequences.

    docs: in order; an empty Doc gives no sequence.
    mode: "sents", sentences where a Doc has them, else the Doc; or "docs", each Doc.
    RETURNS: [S + 1] int64, sequence s is the tokens offsets[s]:offsets[s + 1].
    RAISES: SparseCRFError for another mode.
    """
    if mode not in MODES:
        raise SparseCRFError(Errors.SC105.format(value=mode, known=", ".join(MODES)))
    lengths = np.array([len(doc) for doc in docs if len(doc)], dtype=np.int64)
    ends = np.cumsum(lengths)
    if mode == "docs" or not len(lengths):
        return np.concatenate([np.zeros(1, dtype=np.int64), ends])
    # As Doc.sents: a token begins a sentence where its value is 1, not 0 (unknown) or -1 (no).
    starts = np.concatenate([doc.to_array(SENT_START) for doc in docs if len(doc)]) == 1
    starts[ends - lengths] = True
    return np.append(np.flatnonzero(starts), ends[-1]).astype(np.int64)
