"""Texts with character spans -> Docs, common to all files of annotation tools."""

import random
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans, get_words_and_spaces

from ..errors import Errors, SparseCRFError, refused_option
from ..pipeline.data_checks import LANG
from ..schema import reported_as
from .columns import Source

DOCUMENT = "document"
"""The key in `doc.user_data` of the document that a Doc is part of."""


class Alignment(str, Enum):
    """Ways to align spans with tokens."""

    strict = "strict"
    contract = "contract"
    expand = "expand"


class Mark(NamedTuple):
    """A span of characters start:end with a label. text: its text as in the file, or None."""

    start: int
    end: int
    label: str
    text: str | None = None


class Record(NamedTuple):
    """A text with marks.

    place: its position in the file, for messages; tokens: character offsets (start, end) of the
    file's own tokens, or None; document: name of the document that it is part of, or "".
    """

    place: str
    text: str
    marks: Sequence[Mark]
    tokens: Sequence[tuple[int, int]] | None = None
    document: str = ""


Entry: TypeAlias = Record | Doc  # a Doc if the file has tokens with annotation


def record_docs(
    source: Source[Entry], nlp: Language, alignment: Alignment, key: str = ""
) -> Iterator[Doc]:
    """Create a Doc for each record of a file.

    nlp: its tokenizer splits texts without tokens; alignment: of spans that do not fit the tokens,
    which are counted in `source.left_out`; key: store all marks in `doc.spans` under this key;
    default: marks become entities, and of overlapping entities the longest is kept.
    RAISES: SparseCRFError with the position of an invalid mark, and if there is no text.
    """
    is_empty = True
    for entry in source.entries:
        is_empty = False
        if not isinstance(entry, Doc):
            with reported_as(Errors.SC624, path=source.path, place=entry.place):
                entry = _doc_of(entry, source, nlp, alignment, key)
        elif key and not entry.spans.get(key):
            entry.spans[key], entry.ents = list(entry.ents), ()
        yield entry
    if is_empty:
        raise SparseCRFError(Errors.SC612.format(path=source.path))


def _doc_of(
    record: Record, source: Source[Entry], nlp: Language, alignment: Alignment, key: str
) -> Doc:
    """Create the Doc of a record; see `record_docs`."""
    doc = _tokenized(record, nlp)
    doc.user_data[LANG] = nlp.lang
    if record.document:
        doc.user_data[DOCUMENT] = record.document
    spans: list[Span] = []
    for mark in record.marks:
        start, end = _ends_of(mark, record.text)
        span = doc.char_span(start, end, label=mark.label, alignment_mode="strict")
        if span is None:
            span = doc.char_span(start, end, label=mark.label, alignment_mode=alignment.value)
            what = "left out" if span is None else f"{alignment.value}ed to whole tokens"
            source.left_out[f"spans that do not fit the tokens ({what})"] += 1
        spans += [] if span is None else [span]
    if key:
        doc.spans[key] = sorted(set(spans), key=lambda span: (span.start, span.end))
        return doc
    kept = filter_spans(spans)
    n_lost = len({(s.start, s.end, s.label) for s in spans}) - len(kept)
    if n_lost:
        source.left_out["spans that overlap longer ones (--spans KEY keeps all)"] += n_lost
    doc.set_ents(kept)
    return doc


def _tokenized(record: Record, nlp: Language) -> Doc:
    if record.tokens is None:
        return nlp.make_doc(record.text)
    words = [record.text[first:last] for first, last in record.tokens]
    try:
        words, spaces = get_words_and_spaces(words, record.text)
    except ValueError:
        raise ValueError("the tokens are not all of the text, in its order") from None
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _ends_of(mark: Mark, whole: str) -> tuple[int, int]:
    """Return the first character of a mark and the one after it, without white space at its ends.

    whole: the record's text. RAISES: ValueError if the mark is no part of it.
    """
    start, end, label, _ = mark
    text = whole[start:end] if 0 <= start <= end else ""
    if end > len(whole) or not text.strip():
        n = len(whole)
        raise ValueError(f"{label} {start}:{end} is not a part of the text of {n} characters")
    if mark.text is not None and mark.text.split() != text.split():
        raise ValueError(
            f"{label} {start}:{end} is {text!r} in the text, not {mark.text!r}: offsets must "
            "count Unicode characters, not bytes or UTF-16 units"
        )
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def split(docs: Sequence[Doc], share: float, seed: int) -> tuple[list[Doc], list[Doc]]:
    """Split Docs randomly into two parts without splitting a document, unless there is but one.

    share: approximate share of Docs in the second part. RAISES: SparseCRFError if a part is empty.
    """
    groups: dict[object, list[int]] = {}
    for i, doc in enumerate(docs):
        groups.setdefault(doc.user_data.get(DOCUMENT, i), []).append(i)
    order = list(groups.values()) if len(groups) > 1 else [[i] for i in range(len(docs))]
    random.Random(seed).shuffle(order)
    chosen: set[int] = set()
    while order and len(chosen) < max(1.0, share * len(docs)):
        chosen.update(order.pop())
    if not order:
        what = f"of {len(docs)} Docs in {len(groups)} documents, no part may be empty"
        raise refused_option("dev", share, what)
    parts: tuple[list[Doc], list[Doc]] = [], []
    for i, doc in enumerate(docs):
        parts[i in chosen].append(doc)
    return parts
