"""Groups of spans that do not overlap: `doc.spans`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, SpanGroup
from spacy.tokens import Span as DocSpan
from spacy.training import Example

from ..errors import Errors, SparseCRFError
from ..registry import crf_targets
from .base import ends_of, have_same_tokens
from .scheme import OUTSIDE
from .span_target import Present, SpanTarget

SCORES = "scores"


@crf_targets("spacy_sparsecrf.Spans.v1")
class SpanGroups(SpanTarget):
    """Learns and writes spans that do not overlap, such as chunks, in `doc.spans[key]`.

    key: of the group.
    scheme: "BILUO" or "IOB2", how labels tell spans.
    RAISES: SparseCRFError for an empty key or another scheme.
    """

    def __init__(self, key: str = "sc", scheme: str = "BILUO") -> None:
        super().__init__(scheme)
        if not key:
            raise SparseCRFError(Errors.SC508)
        self.key = key

    def scoring(self) -> dict[str, str]:
        """Return the key, for `spacy.spancat_scorer.v1`."""
        return {"spans_key": self.key}

    def gold(self, example: Example) -> list[str | None]:
        """Read gold labels, see `Target.gold`; those of a Doc without the group are missing.

        RAISES: SparseCRFError that names the Doc if its spans overlap.
        """
        gold: list[str | None] = [None] * len(example.predicted)
        if self.key not in example.reference.spans:
            return gold
        group = [span for span in example.reference.spans[self.key] if len(span)]
        self._check(group, example.reference)
        gold = [OUTSIDE] * len(gold)
        same = have_same_tokens(example)
        for span in group:
            found = [span] if same else example.get_aligned_spans_y2x([span], allow_overlap=True)
            if found and span.label_:
                own = self.scheme.labels_for(len(found[0]), span.label_)
                gold[found[0].start : found[0].end] = own
            else:
                for token in example.alignment.y2x[span.start : span.end]:
                    gold[token] = None
        return gold

    def _check(self, group: Sequence[DocSpan], doc: Doc) -> None:
        end = 0
        for span in sorted(group, key=lambda span: span.start):
            if span.start < end:
                message = Errors.SC502.format(key=self.key, span=span.text, text=doc.text[:60])
                raise SparseCRFError(message)
            end = span.end

    def present(self, doc: Doc) -> Present | None:
        """Spans of the group; None where there are none."""
        if self.key not in doc.spans:
            return None
        spans = [(span.start, span.end, span.label_) for span in doc.spans[self.key] if len(span)]
        return Present(spans) if spans else None

    def write(
        self,
        docs: Sequence[Doc],
        label_ids: Sequence[NDArray[np.int32]],
        labels: Sequence[str],
        *,
        overwrite: bool,
        scores: NDArray[np.float64] | None = None,
    ) -> None:
        """Write predicted spans, see `Target.write`; those that overlap kept ones are left out.

        Scores go to `doc.spans[key].attrs["scores"]`, a float64 array; 1 for spans that are kept.
        """
        spans, ends = self.spans(label_ids, labels), ends_of(docs)
        first_span = np.searchsorted(spans.starts, np.append(0, ends))
        triples = list(zip(spans.starts.tolist(), spans.ends.tolist(), spans.types, strict=True))
        for i, (doc, end) in enumerate(zip(docs, ends.tolist(), strict=True)):
            own = range(first_span[i], first_span[i + 1])
            kept = [] if overwrite else list(doc.spans.get(self.key, []))
            is_kept = np.zeros(len(doc), dtype=np.bool_)
            for span in kept:
                is_kept[span.start : span.end] = True
            group = [(span, 1.0) for span in kept]
            for k in own:
                start, last = (token - end + len(doc) for token in triples[k][:2])
                if not is_kept[start:last].any():
                    name = spans.names[triples[k][2]]
                    new = DocSpan(doc, start, last, label=name)
                    group.append((new, 1.0 if scores is None else float(scores[k])))
            if kept:
                group.sort(key=lambda item: item[0].start)
            attrs = {} if scores is None else {SCORES: np.array([score for _, score in group])}
            found = [span for span, _ in group]
            doc.spans[self.key] = SpanGroup(doc, name=self.key, attrs=attrs, spans=found)
