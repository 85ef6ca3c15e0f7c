"""Targets whose labels tell spans that do not overlap; groups of spans, `doc.spans`."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc, SpanGroup
from spacy.tokens import Span as DocSpan
from spacy.training import Example

from ..errors import Errors, SparseCRFError
from ..registry import crf_targets
from .base import (
    Docs,
    Ids,
    Labels,
    Mask,
    Scores,
    Target,
    add_extension,
    ends_of,
    have_same_tokens,
)
from .scheme import OUTSIDE, Scheme, Spans

SCORES = "scores"
Span = tuple[int, int, str]
"""First token, the one after the last, type."""


@dataclass(frozen=True)
class Present:
    """What is set in a Doc and is kept: spans, and tokens that must stay outside of spans."""

    spans: Sequence[Span]
    outside: Sequence[int] = ()


class SpanTarget(Target):
    """A target whose labels tell spans; names are types of spans.

    scheme: "BILUO" or "IOB2", how labels tell spans.
    RAISES: SparseCRFError for another scheme.
    """

    def __init__(self, scheme: str = "BILUO") -> None:
        self.scheme = Scheme(scheme)

    @abstractmethod
    def present(self, doc: Doc) -> Present | None:
        """What is set in a Doc; None where nothing is."""

    def unknown(self, example: Example) -> Mask | None:
        """Tell the predicted tokens that annotation leaves open: [tokens]; None where it does not.

        That is where some of a Doc is annotated, and of these tokens it is not said whether they
        are in a span.
        """
        return None

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a label that does not tell spans."""
        if not self.scheme.is_label(label):
            known = ", ".join((*self.scheme.labels_of("TYPE"), OUTSIDE))
            message = Errors.SC505.format(label=label, scheme=self.scheme.name, known=known)
            raise SparseCRFError(message)

    def complete(self, labels: Labels) -> tuple[str, ...]:
        """Return labels with all those of types among them, and, where there are any, with "O".

        Without "O" a sequence might have no legal labels.
        """
        known = [
            own
            for label in labels
            for own in ([label] if self.scheme.is_label(label) else self.labels_of(label))
        ]
        return tuple(dict.fromkeys([*known, OUTSIDE] if known else []))

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return all labels of spans of a type, and "O"."""
        return (*self.scheme.labels_of(name), OUTSIDE)

    def names_of(self, labels: Labels) -> tuple[str, ...]:
        """Return the types that labels tell."""
        return self.scheme.names_of(labels)

    def legal(self, labels: Labels) -> Mask:
        """Tell which labels may follow each other, see `Target.legal`."""
        return self.scheme.legal(labels)

    def spans(self, label_ids: Ids, labels: Labels) -> Spans:
        """Find the spans that labels tell; label_ids, labels: as for `write`."""
        ids = np.concatenate([np.empty(0, dtype=np.int32), *label_ids])
        return self.scheme.decode(ids, ends_of(label_ids), labels)

    def permitted(self, docs: Docs, labels: Labels, *, overwrite: bool) -> Mask | None:
        """Tell which labels tokens may get beside spans that are set, see `Target.permitted`.

        Tokens of spans that no sequence of these labels can tell get "O", so that nothing crosses
        them: spans of other types, that overlap, or that go beyond a sentence.
        """
        if overwrite:
            return None
        kept = [self.present(doc) for doc in docs]
        if not any(kept):
            return None
        masks = [np.ones((len(doc), len(labels)), dtype=np.bool_) for doc in docs]
        for doc, mask, present in zip(docs, masks, kept, strict=True):
            if present is not None and OUTSIDE in labels:
                self._restrict(mask, doc, present, labels)
        return np.concatenate(masks)

    def _restrict(self, mask: Mask, doc: Doc, present: Present, labels: Labels) -> None:
        """Permit only labels that agree with what is present. mask: [tokens, Y], in and out."""
        position = {label: i for i, label in enumerate(labels)}
        begins_sentence = doc.to_array("SENT_START") == 1
        covered = np.zeros(len(doc), dtype=np.int64)
        for start, end, _ in present.spans:
            covered[start:end] += 1
        forced = np.full(len(doc), -1, dtype=np.int64)
        forced[covered > 0] = position[OUTSIDE]
        forced[list(present.outside)] = position[OUTSIDE]
        for start, end, name in present.spans:
            ids = [position.get(label, -1) for label in self.scheme.labels_for(end - start, name)]
            crosses = begins_sentence[start + 1 : end].any() or covered[start:end].max() > 1
            if -1 in ids or crosses:
                continue
            forced[start:end] = ids
            inside = position.get(f"I-{name}", -1)
            if self.scheme.name == "IOB2" and inside >= 0:
                mask[end : end + 1, inside] = False  # it would make the span longer
        tokens = np.flatnonzero(forced >= 0)
        mask[tokens] = False
        mask[tokens, forced[tokens]] = True

    def endings(self, spans: Spans, labels: Labels) -> Mask | None:
        """Tell the labels of the token after each span with which it ends there.

        spans: K, of `spans`. RETURNS: [K, Y], or None where labels of spans tell their ends.
        """
        if self.scheme.name == "BILUO":
            return None
        follow = [self.labels_after(name, labels) for name in spans.names]
        ends = np.array([[label in those for label in labels] for those in follow])
        return ends.reshape(len(follow), len(labels))[spans.types]

    def labels_after(self, name: str, labels: Labels) -> list[str]:
        """Return those labels of the token after a span of a type with which it ends there."""
        longer = f"I-{name}" if self.scheme.name == "IOB2" else ""
        return [label for label in labels if label != longer]

    def outside(self, label_ids: Ids, labels: Labels, spans: Spans) -> Ids:
        """Take spans out of predicted labels, by the label "O".

        label_ids, labels: as for `write`; labels must have "O", as those of `complete` do.
        spans: some of those that `spans` finds.
        """
        ids = np.concatenate(label_ids)
        ids[spans.tokens()] = list(labels).index(OUTSIDE)
        return np.split(ids, ends_of(label_ids)[:-1])


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
                start, end = found[0].start, found[0].end
                gold[start:end] = self.scheme.labels_for(end - start, span.label_)
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

    @property
    def score_name(self) -> str:
        """See `Target.score_name`."""
        return f"{self.key}_score"

    def write(
        self, docs: Docs, label_ids: Ids, labels: Labels, *, overwrite: bool, scores: Scores = None
    ) -> None:
        """Write predicted spans, see `Target.write`; those that overlap kept ones are left out.

        Scores go to `span._.KEY_score`, and to `doc.spans[key].attrs["scores"]`, a float64 array; 1
        for spans that are kept.
        """
        if scores is not None:
            add_extension(DocSpan, self.score_name)
        spans, ends = self.spans(label_ids, labels), ends_of(docs)
        probabilities = np.ones(len(spans)) if scores is None else scores
        bounds = np.searchsorted(spans.starts, np.append(0, ends)).tolist()
        for doc, end, first, last in zip(docs, ends.tolist(), bounds, bounds[1:], strict=False):
            kept = [] if overwrite else list(doc.spans.get(self.key, []))
            is_kept = np.zeros(len(doc), dtype=np.bool_)
            for span in kept:
                is_kept[span.start : span.end] = True
            group = [(span, 1.0) for span in kept]
            for k in range(first, last):
                own = slice(*(int(t[k]) - end + len(doc) for t in (spans.starts, spans.ends)))
                if not is_kept[own].any():
                    new = DocSpan(doc, own.start, own.stop, label=spans.names[spans.types[k]])
                    group.append((new, float(probabilities[k])))
            if kept:
                group.sort(key=lambda item: item[0].start)
            attrs = {} if scores is None else {SCORES: np.array([score for _, score in group])}
            found = [span for span, _ in group]
            if scores is not None:
                for span, score in group:
                    span._.set(self.score_name, score)
            doc.spans[self.key] = SpanGroup(doc, name=self.key, attrs=attrs, spans=found)
