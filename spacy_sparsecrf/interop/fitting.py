"""Texts with character spans -> Docs: spans become spans of tokens.

If spans do not fit the tokens, likely causes are tried on the texts.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from typing import TypeAlias

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..errors import Errors, SparseCRFError, brief
from ..pipeline.data_checks import LANG
from ..pipeline.type_counts import DOCUMENT
from .columns import Source
from .label_map import LabelMap
from .records import Mark, Record, joined, merged, tokenized, trimmed
from .text_files import script_of

MOST_MISFITS = 0.2
"""Share of spans that do not fit the tokens, above which a file is refused."""

# Size of a character in the offsets' units, and what is added to the start and the end.
Change: TypeAlias = tuple[Callable[[str], int], int, int]
_NONE: Change = (len, 0, 0)
_LINE_ENDS: dict[str, Change] = {
    "offsets count a line end as two characters": (lambda x: 1 + (x == "\n"), 0, 0),
    "offsets count a line end of two characters as one": (lambda x: int(x != "\r"), 0, 0),
}
_CHANGES: dict[str, Change] = {
    "offsets count from 1": (len, -1, -1),
    "offsets count from 1 and an end is the last character": (len, -1, 0),
    "an end is the last character": (len, 0, 1),
    "offsets count UTF-16 units": (lambda x: 1 + (x > "\uffff"), 0, 0),
    "offsets count bytes of UTF-8": (lambda x: len(x.encode()), 0, 0),
}
# Languages of scripts, the rarest first, and languages with other tokens in Latin script.
_LANGUAGES = {"HIRAGANA": "ja", "HANGUL": "ko", "THAI": "th", "CJK": "zh"}
_OTHERS = ("xx", "en", "fr", "it")
_N_RECORDS = 2000  # that are tried
_SHOWN = 5  # errors in a message


class Unannotated(str, Enum):
    """Treatments of texts without annotation in a file that has annotation of others."""

    outside = "outside"
    missing = "missing"
    skip = "skip"


class Misfit(str, Enum):
    """Treatments of spans that do not fit the tokens."""

    expand = "expand"
    drop = "drop"


@dataclass
class RecordReader:
    """Creates the Docs of a file of records; `source.left_out` counts what is changed.

    nlp: its tokenizer splits texts without tokens; key: store all spans in `doc.spans` under this
    key, and of overlapping ones of a type the longest; default: spans become entities, of which the
    longest of overlapping ones is kept; misfit: treatment of spans that do not fit the tokens;
    default: expand up to MOST_MISFITS of them; skips_invalid: whether to leave out records that
    cannot be read; unannotated: treatment of records without annotation; default: refuse a file
    that has others; sure: tokens of spans with a smaller probability have missing labels; labels:
    new names of labels; misfits: spans that do not fit, for messages; n_marks: number of spans.
    """

    source: Source[Record]
    nlp: Language
    key: str = ""
    misfit: Misfit | None = None
    skips_invalid: bool = False
    unannotated: Unannotated | None = None
    sure: float = 0.0
    labels: LabelMap = field(default_factory=LabelMap)
    misfits: list[str] = field(default_factory=list)
    n_marks: int = 0
    records: Sequence[Record] = ()

    def docs(self) -> Iterator[Doc]:
        """Yield a Doc for each record.

        RAISES: SparseCRFError at the end: for invalid records, or spans that do not fit the tokens,
            with the likely cause, and if there is no text.
        """
        n_docs = 0
        for record in merged(map(self._renamed, self._annotated()), self.source):
            with self.source.read(record.place):
                yield self._doc(record)
                n_docs += 1
        self._check()
        if not n_docs:
            left_out = "; ".join(f"{n} {what}" for what, n in (+self.source.left_out).items())
            remedy = f"Left out: {left_out}. Give annotated texts" if left_out else "Check the path"
            raise SparseCRFError(Errors.SC612.format(path=self.source.path, remedy=remedy))

    def _annotated(self) -> Sequence[Record]:
        """Return the records to read. RAISES: SparseCRFError if only some have annotation."""
        self.records = self._recounted([*self.source.entries()])
        records = joined([*self._valid()], self.source)
        gaps = [record for record in records if record.gap]
        n = len(records) - len(gaps)
        if gaps and self.unannotated is None:
            message = Errors.SC671 if n or self.source.invalid else Errors.SC625
            values = {"path": self.source.path, "n": n, "gaps": len(gaps), "first": gaps[0].place}
            raise SparseCRFError(message.format(**values, keys=gaps[0].gap))
        if self.unannotated:
            how = f"records without annotation ({self.unannotated.value})"
            self.source.left_out[how] += len(gaps)
        is_left_out = self.unannotated is Unannotated.skip
        return [record for record in records if not (record.gap and is_left_out)]

    def _recounted(self, records: list[Record]) -> list[Record]:
        """Return records with offsets in the text if most that misfit count line ends otherwise."""

        def fits(record: Record, change: Change) -> bool:
            return _n_fit([record], self.nlp, change) == len(record.marks)

        wrong = [
            i
            for i, record in enumerate(records)
            if "\n" in record.text
            and any(_cuts(mark, record.text) for mark in record.marks)
            and not fits(record, _NONE)
        ]
        for what, change in _LINE_ENDS.items():
            mended = [i for i in wrong if fits(records[i], change)]
            if 2 * len(mended) > len(wrong):
                self.source.left_out[f"texts whose {what} (read so)"] += len(mended)
                for i in mended:
                    at = _indices(records[i].text, change[0])
                    marks = [x._replace(start=at[x.start], end=at[x.end]) for x in records[i].marks]
                    records[i] = records[i]._replace(marks=marks)
                break
        return records

    def _renamed(self, record: Record) -> Record:
        """Return a record with new names of labels."""
        marks = [mark._replace(label=self.labels(mark.label)) for mark in record.marks]
        return record._replace(marks=[mark for mark in marks if mark.label])

    def _valid(self) -> Iterator[Record]:
        """Yield the records whose marks are valid, without white space at their ends."""
        for record in self.records:
            marks = []
            for mark in record.marks:
                with self.source.read(record.place):
                    marks.append(trimmed(mark, record.text))
            if len(marks) == len(record.marks):
                filled = [mark for mark in marks if mark.start < mark.end]
                self.source.left_out["spans of blanks (left out)"] += len(marks) - len(filled)
                yield record._replace(marks=filled)

    def _doc(self, record: Record) -> Doc:
        """Create the Doc of a record."""
        if record.doc is not None:
            self.labels.rename(record.doc)
            if self.key and not record.doc.spans.get(self.key):
                record.doc.spans[self.key], record.doc.ents = list(record.doc.ents), ()
            return record.doc
        doc = tokenized(record, self.nlp.make_doc)
        doc.user_data[LANG] = self.nlp.lang
        if self.unannotated is Unannotated.missing and record.gap:
            return doc
        if record.document:
            doc.user_data[DOCUMENT] = record.document
        probability_of = {
            span: mark.probability
            for mark in record.marks
            for span in self._span(doc, mark, record.place)
        }
        distinct: Sequence[Span] = [*probability_of]
        if not self.key:
            distinct = self._without_twins(distinct)
        groups: dict[str, list[Span]] = defaultdict(list)
        for span in distinct:
            groups[span.label_ if self.key else ""].append(span)
        apart = sorted(span for group in groups.values() for span in filter_spans(group))
        how = "of their type" if self.key else "(--spans KEY keeps those of other types)"
        self.source.left_out[f"spans that overlap longer ones {how}"] += len(distinct) - len(apart)
        if self.key:
            doc.spans[self.key] = apart
        else:
            unsure = [span for span in apart if probability_of[span] < self.sure]
            sure = [span for span in apart if span not in unsure]
            default = "missing" if record.is_partial else "outside"
            doc.set_ents(sure, missing=unsure, default=default)
        return doc

    def _without_twins(self, spans: Iterable[Span]) -> list[Span]:
        """Return the first span of each part of a text; count those of other labels."""
        span_at: dict[tuple[int, int], Span] = {}
        for span in spans:
            other = span_at.setdefault((span.start, span.end), span)
            if other is not span:
                how = f"the first is read; --map {span.label_}= or --spans KEY"
                pair = f"{other.label_} and {span.label_}"
                self.source.left_out[f"spans have two labels, {pair} ({how})"] += 1
        return [*span_at.values()]

    def _span(self, doc: Doc, mark: Mark, place: str) -> list[Span]:
        """Return the span of a mark, or none."""
        self.n_marks += 1
        if span := doc.char_span(mark.start, mark.end, label=mark.label):
            return [span]
        span = doc.char_span(mark.start, mark.end, label=mark.label, alignment_mode="expand")
        text = doc.text[mark.start : mark.end]
        self.misfits.append(f"{brief(text)} in {brief(str(span))} ({place})")
        return [span] if span and self.misfit is not Misfit.drop else []

    def _check(self) -> None:
        """Check what was read. RAISES: SparseCRFError, see `docs`."""
        path, n = self.source.path, len(self.misfits)
        # Lines without JSON were found before the others.
        invalid = sorted(self.source.invalid, key=lambda entry: (len(entry[0]), entry[0]))
        if invalid and not self.skips_invalid:
            listed = "; ".join(map(": ".join, invalid[:_SHOWN]))
            other = "Likely cause: the offsets are of another text"
            other *= ", which begins at" in listed
            causes = likely_causes(self.records, self.nlp) or other
            more = f"errors in all: {len(invalid)} (--skip-bad leaves out such records). {causes}"
            reason = f"{listed}; {more}".rstrip(". ")
            raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))
        self.source.left_out["records that cannot be read"] += len(dict(invalid))
        share = n / max(1, self.n_marks)
        what = f"of {self.n_marks} spans ({share:.2%}) do not fit the tokens"
        shown = "; ".join(self.misfits[:2])
        if share > MOST_MISFITS and self.misfit is None:
            causes = likely_causes(self.records, self.nlp) or "None makes them fit"
            values = {"path": path, "what": what, "shown": shown, "causes": causes}
            raise SparseCRFError(Errors.SC626.format(**values, n=n))
        how = "left out" if self.misfit is Misfit.drop else "expanded to whole tokens"
        self.source.left_out[f"{what} ({how}): {shown}"] = n


def _cuts(mark: Mark, text: str) -> bool:
    """Return whether a mark begins or ends in a word, or is not the text that it should be."""
    ends = [i for i in (mark.start, mark.end) if i]
    cut = any(i > len(text) or text[i - 1 : i + 1].isalnum() for i in ends)
    return cut or (mark.text or text[mark.start : mark.end]) != text[mark.start : mark.end]


def likely_causes(records: Sequence[Record], nlp: Language) -> str:
    """Return the changes of language or offsets with which most spans fit the tokens.

    RETURNS: a sentence, "" if there is no such change.
    """
    records = records[:: 1 + len(records) // _N_RECORDS]
    scripts = Counter(script_of(x) for record in records for x in record.text if x.isalpha())
    of_scripts = [lang for x, lang in _LANGUAGES.items() if scripts[x] > scripts.total() / 10]
    # Their tokenizers may not be installed: any characters are words, as of Chinese.
    langs = dict.fromkeys(of_scripts[:1], "zh") | {lang: lang for lang in _OTHERS}
    n_fit = {
        f"the language is another one (--lang {lang})": _n_fit(records, spacy.blank(tokens), _NONE)
        for lang, tokens in langs.items()
        if lang != nlp.lang
    }
    n_fit |= {what: _n_fit(records, nlp, change) for what, change in _CHANGES.items()}
    n, best = sum(len(record.marks) for record in records), max(n_fit.values())
    if best < (1 - MOST_MISFITS) * n or best <= _n_fit(records, nlp, _NONE):
        return ""
    causes = " or ".join(what for what, count in n_fit.items() if count == best)
    return f"Likely cause, with which {best} of {n} spans fit: {causes}"


def _n_fit(records: Sequence[Record], nlp: Language, change: Change) -> int:
    """Return the number of spans that fit the tokens of a language after a change of offsets."""
    (size, more, longer), n = change, 0
    for record in records:
        with suppress(ValueError):
            doc = tokenized(record, nlp.tokenizer)
            index_of = _indices(record.text, size)
            for mark in record.marks:
                start = index_of.get(mark.start + more, -1)
                end = index_of.get(mark.end + longer, -1)
                span = doc.char_span(start, end) if 0 <= start < end else None
                n += span is not None and (mark.text or span.text).split() == span.text.split()
    return n


def _indices(text: str, size: Callable[[str], int]) -> dict[int, int]:
    """Return the index of the character at each offset. size: of a character, in its units."""
    offsets = [*accumulate(map(size, text), initial=0)]
    return dict(zip(reversed(offsets), reversed(range(len(offsets))), strict=True))
