"""Estimators of scikit-learn: sparse CRFs of sequences of features, without Docs."""

from collections.abc import Iterable
from typing import Any

from ..interop.sklearn.crfsuite import CRF
from ..interop.sklearn.estimator import SparseCRF

__all__ = ["CRF", "SparseCRF", "read_docs"]


def read_docs(pipe: Any, docs: Iterable[Any]) -> list[list[list[str]]]:
    """Read from Docs what a component does: its sequences, with the names of each token's tests.

    RAISES: SparseCRFError for features of a kind that has no names, or numbers.
    """
    from ..interop.sklearn.pipes import read_docs  # imports spaCy

    return read_docs(pipe, docs)
