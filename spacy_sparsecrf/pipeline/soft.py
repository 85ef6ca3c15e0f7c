"""Soft labels: several labellings of one text, each a Doc with a weight.

The loss of a text is then sum_k w_k (-log p(y_k | x)): log Z less the scores of labels and pairs
of labels, weighted by their expected counts. It is convex, with the minimum where the model expects
what the labellings do.
"""

from typing import TYPE_CHECKING

import numpy as np
from spacy.tokens import Doc

if TYPE_CHECKING:
    from .component import SparseCRFPipe

WEIGHT = "soft_weight"
"""The extension of Docs that has the weight; the value of `doc_weight` that learns from it."""

# Labellings less probable than this share of the best are left out.
_LEAST = 0.02


def register() -> None:
    """Register the extension."""
    if not Doc.has_extension(WEIGHT):
        Doc.set_extension(WEIGHT, default=1.0)


def soft_docs(pipe: "SparseCRFPipe", doc: Doc, n: int) -> list[Doc]:
    """Return copies of a Doc with the most probable annotations, at most n, and their weights.

    pipe: predicts them; the weights are their probabilities, scaled to a sum of 1.
    RAISES: SparseCRFError for several chains, and for n below 1.
    """
    register()
    found = pipe.nbest(doc, n)
    found = [(labels, p) for labels, p in found if p >= _LEAST * found[0][1]]
    total, copies = sum(p for _, p in found), []
    for labels, p in found:
        copy, number = doc.copy(), pipe.label_data.index
        ids = [np.array([number(label) for label in labels], np.int32)]
        pipe.target.write([copy], ids, pipe.label_data, overwrite=True)
        copy._.set(WEIGHT, p / total)
        copies.append(copy)
    return copies
