"""Groups of spans, `doc.spans[KEY]`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.util import filter_spans

from .attribute import KeyedAttribute, PythonAttribute, Value, Values


@dataclass(frozen=True)
class Span(KeyedAttribute, PythonAttribute):
    """The spans of a group: "B-label" at their beginning, then "I-label".

    If spans overlap, the longest is used, of equally long spans the first. The group is optional.
    """

    NAMES = ("span",)
    is_watched = True

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """See `TokenReader`."""
        values = np.zeros(sum(map(len, docs)), dtype=np.uint64)
        behind = 0
        for doc in docs:
            spans: Iterable[Any] = doc.spans.get(self.key, ())
            for span in filter_spans(spans):
                begin = behind + span.start
                values[begin : behind + span.end] = get_string_id(f"I-{span.label_}")
                values[begin] = get_string_id(f"B-{span.label_}")
            behind += len(doc)
        return values[:, None]

    def texts(self, docs: Sequence[Doc], tokens: Mapping[int, int]) -> Mapping[int, Value]:
        """See `TokenReader`."""
        labels = {span.label_ for doc in docs for span in doc.spans.get(self.key, ())}
        marks = (f"{mark}-{label}" for label in labels for mark in "BI")
        return {int(get_string_id(mark)): mark for mark in marks}
