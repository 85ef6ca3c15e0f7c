"""Texts with character spans -> Docs: spans become spans of tokens.

If spans do not fit the tokens, likely causes are tried on the texts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from typing import TypeAlias
from unicodedata import combining

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..cli.files import script_of
from ..errors import Errors, SparseCRFError
from ..pipeline.data_checks import LANG
from .columns import Source
from .records import DOCUMENT, Entry, Mark, Record, ends_of, joined, merged, tokenized

MOST_MISFITS = 0.2
"""Share of spans that do not fit the tokens, above which a file is refused."""

# Size of a character in the offsets' units, and what is added to the start and the end.
Change: TypeAlias = tuple[Callable[[str], int], int, int]
_NONE: Change = (len, 0, 0)
_CHANGES: dict[str, Change] = {
    "offsets count from 1": (len, -1, -1),
    "offsets count from 1 and an end is the last character": (len, -1, 0),
    "an end is the last character": (len, 0, 1),
    "offsets count UTF-16 units": (lambda x: 1 + (x > "\uffff"), 0, 0),
    "offsets count bytes of UTF-8": (lambda x: len(x.encode()), 0, 0),
    "offsets count a line end, CR and LF, as one character": (lambda x: x != "\r", 0, 0),
    "offsets count composed letters (NFC)": (lambda x: not combining(x), 0, 0),
}
# Languages of scripts, the rarest first, and languages with other tokens in Latin script.
_LANGUAGES = {"HIRAGANA": "ja", "HANGUL": "ko", "THAI": "th", "CJK": "zh"}
_OTHERS = {"xx": "", "en": "", "fr": "", "it": ""}
_N_RECORDS, _N_CHARACTERS = 2000, 20_000  # that are tried, and whose scripts are counted
_LEAST = 0.1  # share of the letters of a script
_SHOWN = 5  # errors in a message


class Misfit(str, Enum):
    """Treatments of spans that do not fit the tokens."""

    expand = "expand"
    contract = "contract"
    drop = "drop"


@dataclass
class RecordReader:
    """Creates the Docs of a file of records; `source.left_out` counts what is changed.

    nlp: its tokenizer splits texts without tokens; key: store all spans in `doc.spans` under this
    key; default: spans become entities, of which the longest of overlapping ones is kept; longest:
    with a key, keep the longest of a type; misfit: treatment of spans that do not fit the tokens;
    default: expand up to MOST_MISFITS of them; skips_invalid: whether to leave out records that
    cannot be read; merges: see `merged`; misfits: spans that do not fit, for messages; n_marks:
    number of spans.
    """

    source: Source[Entry]
    nlp: Language
    key: str = ""
    longest: bool = False
    misfit: Misfit | None = None
    skips_invalid: bool = False
    merges: bool = True
    misfits: list[str] = field(default_factory=list)
    n_marks: int = 0
    records: list[Record] = field(default_factory=list)

    def docs(self) -> Iterator[Doc]:
        """Yield a Doc for each record.

        RAISES: SparseCRFError at the end: for invalid records, or spans that do not fit the tokens,
            with the likely cause, and if there is no text.
        """
        is_empty = True
        for entry in merged(joined([*self._entries()], self.source), self.source, self.merges):
            with self.source.read(getattr(entry, "place", "")):
                doc = self._doc(entry) if isinstance(entry, Record) else entry
                is_empty = False
                yield doc
        self._check()
        if is_empty:
            raise SparseCRFError(Errors.SC612.format(path=self.source.path))

    def _entries(self) -> Iterator[Entry]:
        """Yield what the file has, without records that have invalid marks."""
        for entry in self.source.entries():
            n_invalid = len(self.source.invalid)
            if isinstance(entry, Doc):
                if self.key and not entry.spans.get(self.key):
                    entry.spans[self.key], entry.ents = list(entry.ents), ()
            else:
                self.records.append(entry)
                for mark in entry.marks:
                    with self.source.read(entry.place):
                        ends_of(mark, entry.text)
            if len(self.source.invalid) == n_invalid:
                yield entry

    def _doc(self, record: Record) -> Doc:
        """Create the Doc of a record."""
        doc = tokenized(record, self.nlp.make_doc)
        doc.user_data[LANG] = self.nlp.lang
        if record.document:
            doc.user_data[DOCUMENT] = record.document
        spans: dict[str, list[Span]] = {}
        for mark in record.marks:
            own = self._span(doc, mark, record.place)
            spans.setdefault(mark.label if self.key else "", []).extend(own)
        found = sorted({span for own in spans.values() for span in own})
        kept = sorted(span for own in spans.values() for span in filter_spans(own))
        how = "of their type (see --longest)" if self.key else "(--spans KEY keeps all)"
        self.source.left_out[f"spans that overlap longer ones {how}"] += len(found) - len(kept)
        if self.key:
            doc.spans[self.key] = kept if self.longest else found
        else:
            is_partial = record.is_partial and self.merges
            doc.set_ents(kept, default="missing" if is_partial else "outside")
        return doc

    def _span(self, doc: Doc, mark: Mark, place: str) -> list[Span]:
        """Return the span of a mark; none if it has only blanks, or no whole token."""
        start, end = ends_of(mark, doc.text)
        if start >= end:
            self.source.left_out["spans of blanks (left out)"] += 1
            return []
        self.n_marks += 1
        span = doc.char_span(start, end, label=mark.label)
        if span is None:
            shown = doc.char_span(start, end, alignment_mode="expand")
            self.misfits.append(f"{doc.text[start:end]!r} in {str(shown)!r} ({place})")
            mode = "strict" if self.misfit == "drop" else (self.misfit or Misfit.expand).value
            span = doc.char_span(start, end, label=mark.label, alignment_mode=mode)
        return [] if span is None else [span]

    def _check(self) -> None:
        """Check what was read. RAISES: SparseCRFError, see `docs`."""
        path, invalid, n = self.source.path, self.source.invalid, len(self.misfits)
        if invalid and not self.skips_invalid:
            place = invalid[0][0]
            found = "; ".join(": ".join(each) for each in invalid[:_SHOWN])
            reason = f"{found.removeprefix(f'{place}: ')}; errors in all: {len(invalid)}"
            other = "Likely cause: the offsets are of another text" * (", which begins at" in found)
            causes = likely_causes(self.records, self.nlp) or other
            more = "--skip-bad leaves out such records"
            reason = ". ".join(filter(None, [reason, causes, more]))
            raise SparseCRFError(Errors.SC624.format(path=path, place=place, reason=reason))
        self.source.left_out["records that cannot be read"] += len(dict(invalid))
        share = n / max(1, self.n_marks)
        what = f"of {self.n_marks} spans ({share:.2%}) do not fit the tokens"
        shown = "; ".join(self.misfits[:2])
        if share > MOST_MISFITS and self.misfit is None:
            causes = likely_causes(self.records, self.nlp) or "None makes them fit"
            values = {"path": path, "what": what, "shown": shown, "causes": causes}
            raise SparseCRFError(Errors.SC626.format(**values, n=n))
        how = (self.misfit or Misfit.expand).value
        how = "left out" if how == "drop" else f"{how}ed to whole tokens"
        self.source.left_out[f"{what} ({how}): {shown}"] = n


def likely_causes(records: Sequence[Record], nlp: Language) -> str:
    """Return the changes of language or offsets with which most spans fit the tokens.

    RETURNS: a sentence, "" if there is no such change.
    """
    records = records[:: 1 + len(records) // _N_RECORDS]
    letters = "".join(record.text for record in records)[:_N_CHARACTERS]
    scripts = Counter(script_of(x) for x in letters if x.isalpha())
    known = [(own, x) for x, own in _LANGUAGES.items() if scripts[x] > _LEAST * scripts.total()]
    n_fit: dict[str, int] = {}
    for lang, script in [*known[:1], *_OTHERS.items()]:
        try:
            fit = _n_fit(records, spacy.blank(lang).tokenizer, {lang: _NONE})[lang]
        except ImportError:  # its tokenizer is not installed
            fit = sum(len(own.marks) for own in records if script in map(script_of, own.text))
        n_fit |= {} if lang == nlp.lang else {f"the language is another one (--lang {lang})": fit}
    n_fit |= _n_fit(records, nlp.tokenizer, _CHANGES | {"": _NONE})
    n, best = sum(len(record.marks) for record in records), max(n_fit.values())
    if best < (1 - MOST_MISFITS) * n or best <= n_fit.pop(""):
        return ""
    found = " or ".join(what for what, own in n_fit.items() if own == best)
    return f"Likely cause, with which {best} of {n} spans fit: {found}"


def _n_fit(
    records: Sequence[Record], tokenizer: Callable[[str], Doc], changes: dict[str, Change]
) -> Counter[str]:
    """Return the numbers of spans that fit the tokens, by the change of their offsets."""
    found = Counter(dict.fromkeys(changes, 0))
    for record in records:
        with suppress(ValueError):
            tokens = [token for token in tokenized(record, tokenizer) if not token.is_space]
            for what, (size, more, longer) in changes.items():
                place = [*accumulate(map(size, record.text), initial=0)]
                starts = {place[x.idx]: x.idx for x in tokens}
                ends = {place[x.idx + len(x)]: x.idx + len(x) for x in tokens}
                for mark in record.marks:
                    start = starts.get(mark.start + more, -1)
                    end = ends.get(mark.end + longer, -1)
                    is_same = not mark.text or mark.text.split() == record.text[start:end].split()
                    found[what] += 0 <= start < end and is_same
    return found
