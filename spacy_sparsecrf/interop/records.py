"""Texts with character spans, common to all files of annotation tools."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.util import get_words_and_spaces

from ..errors import brief, refused_option
from ..pipeline.type_counts import DOCUMENT
from .columns import Source
from .schemes import OUTSIDE


class Mark(NamedTuple):
    """A span of characters start:end with a label.

    text: its text as in the file, or None; probability: 1 if whoever labelled it has none;
    is_accepted: False if an annotator rejected it.
    """

    start: int
    end: int
    label: str
    text: str | None = None
    probability: float = 1.0
    is_accepted: bool = True


class Record(NamedTuple):
    """A text with marks.

    place: its position in the file, for messages; tokens: character offsets (start, end) of the
    file's own tokens, or None; document: name of the document that it is part of, or ""; task: the
    same for all answers about a text, or None; is_partial: whether other tokens may be in a span,
    too; gap: keys of a record that has no annotation, for messages; doc: with all annotation, if
    the file has it.
    """

    place: str
    text: str
    marks: Sequence[Mark]
    tokens: Sequence[tuple[int, int]] | None = None
    document: str = ""
    task: object = None
    is_partial: bool = False
    gap: str = ""
    doc: Doc | None = None


def tokenized(record: Record, tokenizer: Callable[[str], Doc]) -> Doc:
    """Create the Doc of a text. RAISES: ValueError if the record's tokens are not its text."""
    doc = tokenizer(record.text)
    if record.tokens is None:
        return doc
    tokens = [record.text[start:end] for start, end in record.tokens]
    words, spaces = get_words_and_spaces(tokens, record.text)
    return Doc(doc.vocab, words=words, spaces=spaces)


def trimmed(mark: Mark, source: str) -> Mark:
    """Return a mark without white space at its ends.

    source: the record's text. RAISES: ValueError if the mark is no part of it.
    """
    start, end, label, covered, *_ = mark
    if not 0 <= start < end <= len(source):
        n = len(source)
        raise ValueError(f"{label} {start}:{end} is not a part of the text of {n} characters")
    text = source[start:end]
    if covered is not None and covered.split() != text.split():
        at = source.find(covered)
        where = f", which begins at {at}" if at >= 0 else ""
        raise ValueError(
            f"{label} {start}:{end} is {brief(text)} in the text, not {brief(covered)}{where}"
        )
    start += len(text) - len(text.lstrip())
    return mark._replace(start=start, end=start + len(text.strip()), text=None)


def joined(records: Sequence[Record], source: Source[Record]) -> Sequence[Record]:
    """Join the marks of tokens to marks of spans, if all are labelled B-X, I-X and O."""
    marks = [mark for record in records for mark in record.marks]
    kinds = {mark.label[:2] for mark in marks}
    # B-, or O, may begin the name of a type, too.
    if not kinds <= {"B-", "I-", OUTSIDE} or len(kinds) + ("I-" in kinds) < 2:
        return records
    source.left_out["spans with labels of tokens, such as B-X and I-X (joined)"] += len(marks)
    return [record._replace(marks=_spans(record)) for record in records]


def _spans(record: Record) -> list[Mark]:
    """Return the marks of spans: I-X continues a mark of X that ends before it."""
    spans: list[Mark] = []
    for mark in sorted(record.marks, key=lambda mark: mark.start):
        kind, _, label = mark.label.partition("-")
        span = spans[-1] if spans else mark
        if kind == "I" and span.label == label and not record.text[span.end : mark.start].strip():
            spans[-1] = Mark(span.start, mark.end, label)
        elif mark.label != OUTSIDE:
            spans.append(mark._replace(label=label))
    return spans


def merged(records: Iterable[Record], source: Source[Record]) -> Iterator[Record]:
    """Yield records without rejected marks; merge those of a task that are partial, or differ.

    Tokens without an accepted mark may be in another span. Of records that contradict each other,
    the later one is right.
    """
    answers: dict[object, list[Record]] = defaultdict(list)
    for i, record in enumerate(records):
        answers[i if record.task is None else record.task].append(record)
    lost: list[str] = []
    for of_text in answers.values():
        n_answers = len({frozenset(answer.marks) for answer in of_text})
        if n_answers < 2 and not any(answer.is_partial for answer in of_text):
            yield from of_text
            continue
        is_accepted = _accepted(of_text, lost)
        marks = [mark for mark in is_accepted if is_accepted[mark]]
        n_rejected = len(is_accepted) - len(marks)
        what = "answers about texts are merged, other tokens are missing"
        source.left_out[what] += len(of_text)
        source.left_out["rejected spans (another span may be there)"] += n_rejected
        if marks:
            yield of_text[0]._replace(marks=marks, is_partial=True)
    shown = "; ".join(lost[:3])
    source.left_out[f"contradictory spans (the later answer is right): {shown}"] += len(lost)


def _accepted(records: Sequence[Record], lost: list[str]) -> dict[Mark, bool]:
    """Return the marks of answers about a text, and whether they were accepted.

    lost: marks that a later record contradicts are appended.
    """
    accepted: dict[Mark, bool] = {}
    for record in records:
        marks = {mark._replace(is_accepted=True): mark.is_accepted for mark in record.marks}
        right = [mark for mark in marks if marks[mark]]
        for mark, is_accepted in [*accepted.items()]:
            crosses = any(x.start < mark.end and mark.start < x.end for x in right)
            if is_accepted != marks[mark] if mark in marks else is_accepted and crosses:
                lost.append(
                    f"{mark.label} {brief(record.text[mark.start : mark.end])} ({record.place})"
                )
                del accepted[mark]
        accepted |= marks
    return accepted


def split(docs: Sequence[Doc], shares: Sequence[float]) -> list[list[Doc]]:
    """Split Docs randomly without splitting a document, unless there is but one.

    Documents of the same text are in the same part.

    shares: approximate shares of Docs in the second and further parts; the first part has the rest.
    RAISES: SparseCRFError if a part is empty.
    """
    documents: dict[object, list[int]] = {}
    for i, doc in enumerate(docs):
        documents.setdefault(doc.user_data.get(DOCUMENT, i), []).append(i)
    units = list(documents.values()) if len(documents) > 1 else [[i] for i in range(len(docs))]
    random.Random(0).shuffle(units)
    groups: dict[tuple[str, ...], list[int]] = {}
    for unit in reversed(units):
        groups.setdefault(tuple(docs[i].text for i in unit), []).extend(unit)
    order = [*reversed(groups.values())]
    parts: list[list[int]] = [[] for _ in shares]
    for part, share in zip(parts, shares, strict=True):
        most = max(1.0, share * len(docs))
        fitting = [group for group in order if len(group) <= most] or order[:]
        while fitting and len(part) < most:
            part += fitting.pop()
        taken = {*part}
        order = [group for group in order if group[0] not in taken]
    if not order:
        what = f"of {len(docs)} Docs in {len(units)} documents, no part may be empty"
        raise refused_option("dev or --test", " and ".join(map(str, shares)), what)
    return [[docs[i] for i in sorted(part)] for part in (chain.from_iterable(order), *parts)]
