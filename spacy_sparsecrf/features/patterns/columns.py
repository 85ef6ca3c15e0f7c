"""Columns of other programs' data: attributes of tokens, one text a token, and their tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from spacy.attrs import ENT_IOB, SPACY  # type: ignore[import-not-found]
from spacy.strings import StringStore, get_string_id
from spacy.tokens import Doc

from ...corpus.readings import Readings
from ...errors import Errors, SparseCRFError
from ..arguments import Read
from ..attributes import EXTENSION, NGRAMS, PHRASE, VALUE, VECTOR, Value
from ..featurizer import Featurizer, by_vocab
from ..templates import parse_template
from ..tokens import number_of
from .plan import PatternPlan, See
from .views import text_of, value_of

if TYPE_CHECKING:
    from ..lexemes import LexemeTable, Reader

_SEVERAL = {NGRAMS, PHRASE, VALUE, VECTOR}  # attributes that are not one text of a token
_NUMBER_TEXTS = {SPACY: {0: "0", 1: "1"}, ENT_IOB: {0: "", 1: "1", 2: "2", 3: "3"}}
"""Texts of annotations whose values are numbers; ENT_IOB is missing where it is 0."""


def parse_columns(columns: Sequence[str]) -> tuple[Read, ...]:
    """Parse the attributes that columns are.

    RAISES: SparseCRFError if they are not a list of attributes with one text a token.
    """
    if isinstance(columns, str) or not columns:
        raise SparseCRFError(Errors.SC157.format(value=columns))
    return tuple(_parse_column(i, column) for i, column in enumerate(columns))


def _parse_column(number: int, column: str) -> Read:
    try:
        tests = parse_template(f"u:{column}[0]").tests
    except SparseCRFError as error:
        raise _no_attribute(number, column, str(error)) from None
    if len(tests) != 1:
        raise _no_attribute(number, column, "it has an offset.")
    if tests[0].attribute in _SEVERAL:
        raise _no_attribute(number, column, "it is not one text.")
    return tests[0].read


def _no_attribute(number: int, column: str, reason: str) -> SparseCRFError:
    return SparseCRFError(Errors.SC158.format(number=number, column=column, reason=reason))


def texts_of(read: Read, docs: Sequence[Doc]) -> Mapping[int, str]:
    """Texts of the values that an attribute which is read in Python has in Docs.

    RETURNS: the texts by their numbers, see `tokens`; "" for 0.
    """
    if read.name == EXTENSION:
        values = {token._.get(read.argument) for doc in docs for token in doc}
        texts = {number_of(value): text_of(value) for value in values if value is not None}
    else:
        spans = (span for doc in docs for span in doc.spans.get(read.argument, ()))
        labels = {span.label_ for span in spans}
        marked = (f"{mark}-{label}" for label in labels for mark in "BI")
        texts = {int(get_string_id(text)): text for text in marked}
    return {**texts, 0: ""}


@dataclass(frozen=True)
class Shown:
    """What is seen of an attribute of a text, as a reader of words.

    read: the attribute; see: what is made of its text.
    """

    read: Callable[[str], Value]
    see: See

    def text(self, text: str) -> str | None:
        """What is seen; None where the attribute is empty."""
        value = text_of(self.read(text))
        return self.see(value) if value else None

    def __call__(self, text: str) -> int:
        """Number what is seen; 0 where the attribute is empty."""
        shown = self.text(text)
        return 0 if shown is None else value_of(shown)


class ColumnFeaturizer(Featurizer):
    """Hashes the tests of a pattern plan: like templates', but of what is seen of each column.

    patterns: laid out; reads: what each column is; start_label: see `Templates`.
    """

    def __init__(self, patterns: PatternPlan, reads: Sequence[Read], start_label: bool) -> None:
        super().__init__([f"u:{read}[0]" for read in dict.fromkeys(reads)], start_label)
        self.patterns = patterns
        self._plan = patterns.plan
        self._tables: dict[int, LexemeTable] = {}

    def readings(self, docs: Sequence[Doc], sequences: str = "sents") -> list[Readings]:
        """Read the values that are to be tested, as `Featurizer.readings`."""
        found = super().readings(docs, sequences)
        runs = [run for run in by_vocab(docs) if any(map(len, run))]
        return [self._with_seen(*both) for both in zip(found, runs, strict=True)]

    def _make_readers(self, like_num: "Reader") -> list["Reader"]:
        """The functions of a word that the patterns read."""
        # Columns are not n-grams, the only readers that return several values.
        readers = cast("list[Callable[[str], Value]]", super()._make_readers(like_num))
        return [Shown(*both) for both in zip(readers, self.patterns.words, strict=True)]

    def _with_seen(self, readings: Readings, docs: Sequence[Doc]) -> Readings:
        """Add what is seen of annotations, looking at each distinct one once."""
        from ..lexemes import LexemeTable  # imports numba

        columns = [readings.annotations]
        for at, seen in self.patterns.seen.items():
            if at not in self._tables:
                self._tables[at] = LexemeTable([Shown(str, see) for see in seen])
            values = np.ascontiguousarray(readings.annotations[:, at])
            rows, known, _ = self._tables[at].find(values, self._strings(at, docs))
            columns.append(known[rows])
        return readings._replace(annotations=np.concatenate(columns, axis=1))

    def _strings(self, at: int, docs: Sequence[Doc]) -> "StringStore | Mapping[int, str]":
        """The texts of an annotation's numbers, by its position among annotations."""
        annotations = self._plan.annotations
        if at >= len(annotations):
            return texts_of(self._plan.tokens[at - len(annotations)], docs)
        return _NUMBER_TEXTS.get(annotations[at], docs[0].vocab.strings)
