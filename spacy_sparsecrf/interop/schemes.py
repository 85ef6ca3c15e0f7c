"""Labels of tokens <-> spans: IOB2, IOB1, BILUO and BIOES, and IO to spans only."""

import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

OUTSIDE = "O"
MISSING = ("_", "-", "?")
# Other ways to write B-PER: b-PER, B_PER and PER-B.
_BEGINS = re.compile("([BIELMSUbielmsu])[-_](.+)")
_ENDS = re.compile("(.+)[-_]([BIELSU])")
_TYPED = re.compile("[BIELMSU]-(.+)")
_JOINT = re.compile(r"[^\w-](?:O$|[BIELMSU]-)")  # several labels, as in B-ORG|B-LOC


class ColumnScheme(str, Enum):
    """Schemes that encode spans as labels of tokens."""

    iob2 = "iob2"
    iob1 = "iob1"
    biluo = "biluo"
    bioes = "bioes"
    io = "io"


Spans: TypeAlias = list[tuple[int, int, str]]  # first token, token after the last, label

# Letters for begin, inside, last of several tokens, and the only token.
_LETTERS = {
    ColumnScheme.iob2: "BI",
    ColumnScheme.iob1: "BI",
    ColumnScheme.biluo: "BILU",
    ColumnScheme.bioes: "BIES",
    ColumnScheme.io: "",  # A token has its span's label; adjacent spans have different labels.
}
_CLOSED = (ColumnScheme.biluo, ColumnScheme.bioes)  # These mark the last token of a span.


@lru_cache  # called for each token
def standard_label(text: str) -> str:
    """Return b-PER, B_PER or PER-B as B-PER, and other labels unchanged."""
    if match := _BEGINS.fullmatch(text):
        return f"{match[1].upper()}-{match[2]}"
    match = _ENDS.fullmatch(text)
    return f"{match[2]}-{match[1]}" if match else text


def label_type(text: str) -> str:
    """Return the type of a label in standard form, PER of B-PER; "" if it has none or several."""
    match = _TYPED.fullmatch(text)
    return match[1] if match and not _JOINT.search(text) else ""


def is_label(text: str) -> bool:
    """Return whether a text is a label of a token of a span, the outside label or a missing one."""
    return text == OUTSIDE or text in MISSING or label_type(standard_label(text)) != ""


class BadLabelError(ValueError):
    """A label that is invalid or not valid at its position. index: of the token."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


def read_spans(labels: Sequence[str], scheme: ColumnScheme) -> Spans:
    """Find the spans of a sentence.

    labels: of its tokens, see `standard_label`; tokens with a missing label are in no span.
    RAISES: BadLabelError.
    """
    spans: Spans = []
    begin, kind = 0, ""  # of the open span; "" for none
    for i, text in enumerate([*labels, OUTSIDE]):
        role, label = _parse(i, text, scheme)
        if role in "IL" and label != kind:
            if scheme not in (ColumnScheme.iob1, ColumnScheme.io):
                open_span = f"an open span of {kind}" if kind else "no open span"
                reason = f"it continues a span of {label}, but before it is {open_span}"
                raise BadLabelError(i, reason)
            role = "B"
        if role in "OBU":
            if kind and scheme in _CLOSED:
                reason = f"the span of {kind} lacks its last, {_LETTERS[scheme][2]}-{kind}"
                raise BadLabelError(min(i, len(labels) - 1), reason)
            if kind:
                spans.append((begin, i, kind))
            begin, kind = i, label
        if role in "LU":
            spans.append((begin, i + 1, kind))
            kind = ""
    return spans


def _parse(i: int, text: str, scheme: ColumnScheme) -> tuple[str, str]:
    """Return the role of a token, O or a letter of BILU, and the label of its span."""
    if text == OUTSIDE or text in MISSING:
        return "O", ""
    if scheme is ColumnScheme.io:
        if _TYPED.fullmatch(text):
            raise BadLabelError(i, "labels of io have no prefix")
        return "I", text
    letters, text = _LETTERS[scheme], standard_label(text)
    letter, _, label = text.partition("-")
    if _JOINT.search(text):
        raise BadLabelError(i, "it is several labels, and spans of a column cannot overlap")
    if letter == "M" and scheme is ColumnScheme.bioes:
        letter = "I"
    if len(letter) != 1 or letter not in letters or not label:
        expected = ", ".join(f"{letter}-LABEL" for letter in letters)
        raise BadLabelError(i, f"O or one of {expected} is expected")
    return "BILU"[letters.index(letter)], label


def write_spans(spans: Spans, n_tokens: int, scheme: ColumnScheme) -> list[str]:
    """Label the tokens of a sentence. spans: ascending and disjoint; scheme: not IO."""
    labels = [OUTSIDE] * n_tokens
    previous = (0, 0, "")
    for start, end, label in spans:
        begin, inside, *closing = list(_LETTERS[scheme])
        closes, only = closing or (inside, begin)
        if scheme is ColumnScheme.iob1 and (previous[1], previous[2]) != (start, label):
            begin = only = inside
        labels[start:end] = [f"{inside}-{label}"] * (end - start)
        labels[end - 1] = f"{closes}-{label}"
        labels[start] = f"{only if end - start == 1 else begin}-{label}"
        previous = start, end, label
    return labels
