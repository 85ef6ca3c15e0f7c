"""Texts with character spans -> Docs: spans become spans of tokens."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..errors import Errors, SparseCRFError
from ..pipeline.data_checks import LANG
from .columns import Source
from .misfits import MOST_MISFITS, NO_CAUSE, likely_causes
from .records import DOCUMENT, REJECTED, Entry, Mark, Record, tokenized

_SHOWN = 5  # errors in a message
_NO_DIGIT = re.compile("[^0-9]")


class Misfit(str, Enum):
    """Treatments of spans that do not fit the tokens."""

    expand = "expand"
    contract = "contract"
    drop = "drop"


class RecordOptions(NamedTuple):
    """Options of `record_docs`.

    key: store all spans in `doc.spans` under this key; default: spans become entities, of which the
    longest of overlapping ones is kept; longest: with a key, keep the longest of a type; misfit:
    treatment of spans that do not fit the tokens; default: expand up to MOST_MISFITS of them;
    skips_invalid: whether to leave out records that cannot be read.
    """

    key: str = ""
    longest: bool = False
    misfit: Misfit | None = None
    skips_invalid: bool = False


def record_docs(source: Source[Entry], nlp: Language, options: RecordOptions) -> Iterator[Doc]:
    """Create a Doc for each record of a file; `source.left_out` counts what is changed.

    nlp: its tokenizer splits texts without tokens.
    RAISES: SparseCRFError at the end: for invalid records, or spans that do not fit the tokens,
        with the likely cause, and if there is no text.
    """
    builder, records, is_empty = _Builder(source, nlp, options), list[Record](), True
    for entry in source.entries:
        if isinstance(entry, Record):
            if entry.answer.is_rejected:
                source.left_out[REJECTED] += 1
                continue
            records.append(entry)
            n_invalid = len(source.invalid)
            with source.read(entry.place):
                entry = builder.doc(entry)
            if len(source.invalid) > n_invalid:
                continue
        elif options.key and not entry.spans.get(options.key):
            entry.spans[options.key], entry.ents = list(entry.ents), ()
        is_empty = False
        yield entry
    builder.check(records)
    if is_empty:
        raise SparseCRFError(Errors.SC612.format(path=source.path))


class _Builder:
    """Creates the Docs of records, and counts spans; see `record_docs`."""

    def __init__(self, source: Source[Entry], nlp: Language, options: RecordOptions) -> None:
        self._source, self._nlp, self._options = source, nlp, options
        self._n_marks = 0
        self._misfits: list[str] = []  # as examples
        self._mode = (options.misfit or Misfit.expand).value
        overlap = f"of their type ({'left out' if options.longest else 'kept, see --longest'})"
        overlap = overlap if options.key else "(--spans KEY keeps all)"
        self._overlap = f"spans that overlap longer ones {overlap}"

    def doc(self, record: Record) -> Doc:
        """Create the Doc of a record."""
        doc, key = tokenized(record, self._nlp.make_doc), self._options.key
        doc.user_data[LANG] = self._nlp.lang
        if record.document:
            doc.user_data[DOCUMENT] = record.document
        spans: dict[str, list[Span]] = {}
        for mark in record.marks:
            with self._source.read(record.place):
                own = self._span(doc, mark, record.place)
                spans.setdefault(mark.label if key else "", []).extend(own)
        found = sorted({span for own in spans.values() for span in own})
        kept = sorted(span for own in spans.values() for span in filter_spans(own))
        self._source.left_out[self._overlap] += len(found) - len(kept)
        if key:
            doc.spans[key] = kept if self._options.longest else found
        else:
            doc.set_ents(kept, default="missing" if record.is_partial else "outside")
        return doc

    def _span(self, doc: Doc, mark: Mark, place: str) -> list[Span]:
        """Return the span of a mark; none if it has only blanks, or no whole token."""
        start, end = _ends_of(mark, doc.text)
        if start >= end:
            self._source.left_out["spans of blanks (left out)"] += 1
            return []
        self._n_marks += 1
        span = doc.char_span(start, end, label=mark.label)
        if span is None:
            shown = doc.char_span(start, end, alignment_mode="expand")
            self._misfits.append(f"{doc.text[start:end]!r} in {str(shown)!r} ({place})")
            if self._mode != Misfit.drop:
                span = doc.char_span(start, end, label=mark.label, alignment_mode=self._mode)
        return [] if span is None else [span]

    def check(self, records: Sequence[Record]) -> None:
        """Check what was read. RAISES: SparseCRFError, see `record_docs`."""
        source, n = self._source, len(self._misfits)
        if source.invalid and not self._options.skips_invalid:
            raise self._invalid(likely_causes(records, self._nlp))
        source.left_out["records that cannot be read"] += len(dict(source.invalid))
        share = n / max(1, self._n_marks)
        what = f"of {self._n_marks} spans ({share:.2%}) do not fit the tokens"
        if share > MOST_MISFITS and self._options.misfit is None:
            values = {"path": source.path, "what": what, "shown": ", ".join(self._misfits[:2])}
            causes = likely_causes(records, self._nlp) or NO_CAUSE
            raise SparseCRFError(Errors.SC626.format(**values, n=n, causes=causes))
        done = "left out" if self._mode == Misfit.drop else f"{self._mode}ed to whole tokens"
        source.left_out[what := f"{what} ({done})"] = n
        source.examples[what] = self._misfits[:2]

    def _invalid(self, causes: str) -> SparseCRFError:
        """Return the error about records that cannot be read. causes: see `likely_causes`."""
        shown: dict[str, list[str]] = {}
        # Numbers of lines or records; spans are read after all lines.
        found = sorted(self._source.invalid, key=lambda each: int("0" + _NO_DIGIT.sub("", each[0])))
        for place, reason in found[:_SHOWN]:
            shown.setdefault(reason, []).append(place)
        where, *others = [", ".join(places) for places in shown.values()]
        first, *reasons = shown
        parts = [first, *map("{}: {}".format, others, reasons)]
        parts += [f"{len(found)} errors in all"] * (len(found) > 1)
        rest = [causes] * bool(causes) + ["--skip-bad leaves out such records"]
        reason = ". ".join(["; ".join(parts), *rest])
        return SparseCRFError(
            Errors.SC624.format(path=self._source.path, place=where, reason=reason)
        )


def _ends_of(mark: Mark, whole: str) -> tuple[int, int]:
    """Return the first character of a mark and the one after it, without white space at its ends.

    whole: the record's text. RAISES: ValueError if the mark is no part of it.
    """
    start, end, label, covered = mark
    if not 0 <= start < end <= len(whole):
        n = len(whole)
        raise ValueError(f"{label} {start}:{end} is not a part of the text of {n} characters")
    text = whole[start:end]
    if covered is not None and covered.split() != text.split():
        at = whole.find(covered)
        place = f", which begins at {at}" if at >= 0 else ""
        raise ValueError(f"{label} {start}:{end} is {text!r} in the text, not {covered!r}{place}")
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())
