"""Texts with character spans, common to all files of annotation tools."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from spacy.tokens import Doc
from spacy.util import get_words_and_spaces

from ..errors import refused_option
from .columns import Source

DOCUMENT = "document"
"""The key in `doc.user_data` of the document that a Doc is part of."""
REJECTED = "records whose answer is reject or ignore"


class Mark(NamedTuple):
    """A span of characters start:end with a label. text: its text as in the file, or None."""

    start: int
    end: int
    label: str
    text: str | None = None


class Answer(NamedTuple):
    """The answer of an annotator.

    input: identifies the text, or ""; is_binary: whether the spans were accepted or rejected, and
    others may be missing; is_rejected: whether they were rejected.
    """

    input: str = ""
    is_binary: bool = False
    is_rejected: bool = False


class Record(NamedTuple):
    """A text with marks.

    place: its position in the file, for messages; tokens: character offsets (start, end) of the
    file's own tokens, or None; document: name of the document that it is part of, or ""; answer: of
    an annotator; is_partial: whether other tokens may be in a span, too.
    """

    place: str
    text: str
    marks: Sequence[Mark]
    tokens: Sequence[tuple[int, int]] | None = None
    document: str = ""
    answer: Answer = Answer()
    is_partial: bool = False


Entry: TypeAlias = Record | Doc  # a Doc if the file has tokens with annotation


def tokenized(record: Record, tokenizer: Callable[[str], Doc]) -> Doc:
    """Create the Doc of a text. RAISES: ValueError if the record's tokens are not its text."""
    doc = tokenizer(record.text)
    if record.tokens is None:
        return doc
    words = [record.text[first:last] for first, last in record.tokens]
    try:
        words, spaces = get_words_and_spaces(words, record.text)
    except ValueError:
        raise ValueError("the tokens are not all of the text, in its order") from None
    return Doc(doc.vocab, words=words, spaces=spaces)


def merged(entries: Iterable[Entry], source: Source[Entry]) -> Iterator[Entry]:
    """Merge records of a text that were accepted or rejected one by one, or that differ.

    Of two records that contradict each other, the later one is right. Tokens without an accepted
    span may be in another span. Records of the same input with equal spans are not merged, unless
    they are binary.
    """
    groups: dict[object, list[Any]] = {}
    for i, entry in enumerate(entries):
        answer = entry.answer if isinstance(entry, Record) else Answer()
        is_part = answer.is_binary or answer.input
        groups.setdefault((answer.input, entry.text) if is_part else i, []).append(entry)
    for own in groups.values():
        records = [entry for entry in own if isinstance(entry, Record)]
        found = {frozenset(mark[:3] for mark in record.marks) for record in records}
        if len(found) > 1 or any(record.answer.is_binary for record in records):
            yield from _merged(records, source)
        else:
            yield from own


def _merged(records: Sequence[Record], source: Source[Entry]) -> Iterator[Record]:
    """Yield the record of all accepted spans of a text, if there are any; see `merged`."""
    accepted: dict[Any, Mark] = {}
    rejected: set[Any] = set()
    for record in records:
        own = {mark[:3]: mark for mark in record.marks}
        if record.answer.is_rejected:
            lost = accepted.keys() & own.keys()
            rejected |= own.keys()
        else:
            lost = {
                x for x in accepted.keys() - own.keys() for y in own if x[0] < y[1] and y[0] < x[1]
            }
            lost |= rejected & own.keys()
            rejected -= own.keys()
        accepted = {
            key: mark
            for key, mark in (accepted | own).items()
            if key not in rejected | lost - own.keys()
        }
        for start, end, label in sorted(lost):
            what = "contradictory spans (the later record is right)"
            source.left_out[what] += 1
            source.examples[what].append(f"{label} {record.text[start:end]!r} ({record.place})")
    source.left_out["rejected spans (their tokens may be outside, or in another span)"] += len(
        rejected
    )
    source.left_out[
        "answers about parts of texts are merged; the other tokens are missing (--no-merge)"
    ] += len(records)
    if accepted:
        yield records[0]._replace(marks=[*accepted.values()], answer=Answer(), is_partial=True)


def split(docs: Sequence[Doc], shares: Sequence[float], seed: int) -> list[list[Doc]]:
    """Split Docs randomly without splitting a document, unless there is but one.

    shares: approximate shares of Docs in the second and further parts; the first part has the rest.
    RAISES: SparseCRFError if a part is empty.
    """
    groups: dict[object, list[int]] = {}
    for i, doc in enumerate(docs):
        groups.setdefault(doc.user_data.get(DOCUMENT, i), []).append(i)
    order = list(groups.values()) if len(groups) > 1 else [[i] for i in range(len(docs))]
    random.Random(seed).shuffle(order)
    of_docs = [0] * len(docs)
    for part, share in enumerate(shares, start=1):
        n = 0
        while order and n < max(1.0, share * len(docs)):
            n += len(own := order.pop())
            for i in own:
                of_docs[i] = part
    if not order:
        what = f"of {len(docs)} Docs in {len(groups)} documents, no part may be empty"
        raise refused_option("dev or --test", " and ".join(map(str, shares)), what)
    parts: list[list[Doc]] = [[] for _ in range(len(shares) + 1)]
    for doc, part in zip(docs, of_docs, strict=True):
        parts[part].append(doc)
    return parts
