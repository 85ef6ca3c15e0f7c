"""The scikit-learn estimator: a sparse CRF for sequences of features, without Docs."""

from collections.abc import Iterable
from typing import Any

from ..interop.sklearn.estimator import CRF

__all__ = ["CRF", "read_docs"]


def read_docs(pipe: Any, docs: Iterable[Any]) -> list[list[list[str]]]:
    """Return the sequences that a component reads from Docs, with the names of token features.

    RAISES: SparseCRFError if features have no names or are real-valued.
    """
    from ..interop.sklearn.pipes import read_docs  # imports spaCy

    return read_docs(pipe, docs)
