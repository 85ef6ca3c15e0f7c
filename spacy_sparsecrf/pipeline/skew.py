"""How Docs are cut into sequences, and whether prediction cuts them as training did."""

import warnings
from collections.abc import Iterable, Sequence

from spacy.tokens import Doc
from spacy.training import Example

from ..errors import SparseCRFWarning, Warnings

SENTENCES = "sents"
WHOLE = "docs"


def observed_cut(example: Example) -> str | None:
    """Tell how the predicted Doc is cut into sequences, as far as it shows.

    RETURNS: "sents" if it has sentence boundaries; "docs" if it has none although the gold
        Doc has several sentences; None if cutting makes no difference or nobody knows: a Doc
        without boundaries may well be one sentence.
    """
    if _has_boundaries(example.predicted):
        return SENTENCES
    return WHOLE if _n_starts(example.reference) > 1 else None


def skew_of(docs: Iterable[Doc], trained: str | None) -> tuple[str, str] | None:
    """Find a Doc that will be cut otherwise than training Docs were.

    trained: as `observed_cut` returns.
    RETURNS: what was trained on and what is given, in words; or None.
    """
    if trained == SENTENCES and any(len(doc) > 1 and not _has_boundaries(doc) for doc in docs):
        return "sentences", "Docs without sentence boundaries"
    if trained == WHOLE and any(_has_boundaries(doc) and _n_starts(doc) > 1 for doc in docs):
        return "whole Docs of several sentences", "Docs that are cut into sentences"
    return None


def warn_of_skew(name: str, docs: Sequence[Doc], trained: str | None) -> bool:
    """Warn if component `name` gets Docs that are cut otherwise. RETURNS: whether it does."""
    skew = skew_of(docs, trained)
    if skew is None:
        return False
    message = Warnings.SCW202.format(name=name, trained=skew[0], given=skew[1])
    warnings.warn(message, SparseCRFWarning, stacklevel=3)
    return True


def _has_boundaries(doc: Doc) -> bool:
    return len(doc) > 1 and doc.has_annotation("SENT_START")


def _n_starts(doc: Doc) -> int:
    """Count the tokens that are marked as the start of a sentence; the first always is."""
    return int((doc.to_array("SENT_START") == 1).sum())
