"""Targets whose labels encode spans, and the target for span groups, `doc.spans`."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from spacy.tokens import Doc, SpanGroup
from spacy.tokens import Span as DocSpan
from spacy.training import Example

from ...crf.corpus.blanks import words_of
from ...crf.corpus.numbering import Longs, Mask
from ...errors import Errors, SparseCRFError
from ...registry import crf_targets
from .scheme import OUTSIDE, LabelledSpans, Scheme
from .target import Docs, Ids, Labels, Not, Scores, Target, ends_of, have_same_tokens, joined

SCORES = "scores"
ANNOTATED = "annotated"
"""The key in `doc.user_data` of the only types that annotators looked for in a Doc."""

Span = tuple[int, int, str]
"""First token, end (exclusive), type."""


@dataclass(frozen=True)
class Present:
    """Existing annotation of a Doc: spans, and tokens that must stay outside of spans."""

    spans: Sequence[Span]
    outside: Sequence[int] = ()


class SpanTarget(Target):
    """A target whose labels encode spans; names are span types.

    scheme: "BILUO" or "IOB2", the labelling scheme.
    types: the types that are learnt and written; empty: all. Spans of other types are not read, and
        predicted spans do not replace them.
    RAISES: SparseCRFError for another scheme, or types that are not a list of names.
    """

    outside_label = OUTSIDE

    def __init__(self, scheme: str = "BILUO", types: Sequence[str] = ()) -> None:
        self.scheme = Scheme(scheme)
        names = isinstance(types, (list, tuple)) and all(isinstance(x, str) and x for x in types)
        if not names:
            raise SparseCRFError(Errors.SC420.format(value=types))
        self.types = frozenset(types)

    def has_type(self, name: str) -> bool:
        """Return whether spans of a type are learnt and written."""
        return not self.types or name in self.types

    @abstractmethod
    def present(self, doc: Doc) -> Present | None:
        """Return the existing annotation of a Doc; None if there is none."""

    def unknown(self, example: Example) -> Mask | None:
        """Return the predicted tokens without annotation, if the Doc is partly annotated.

        The annotation leaves open whether such a token is in a span. RETURNS: [tokens] bool, or
        None if there are none.
        """
        return None

    def outside_of(self, doc: Doc) -> str | Not:
        """Return the gold label of tokens outside of the spans of a Doc.

        If annotators looked for some types only, this is any label but those of these types.
        """
        if ANNOTATED not in doc.user_data:
            return OUTSIDE
        names = doc.user_data[ANNOTATED]
        return Not((*chain.from_iterable(map(self.scheme.labels_of, names)),))

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a label that is not part of the scheme."""
        if not self.scheme.is_label(label):
            examples = ", ".join(self.labels_of("TYPE"))
            message = Errors.SC505.format(label=label, scheme=self.scheme.name, known=examples)
            raise SparseCRFError(message)

    def complete(self, labels: Labels) -> tuple[str, ...]:
        """Replace span types among the labels by their labels, and add "O" if there are any labels.

        Without "O", a sequence might have no valid labels.
        """
        parts = ([x] if self.scheme.is_label(x) else self.labels_of(x) for x in labels)
        completed = [*chain.from_iterable(parts)]
        return tuple(dict.fromkeys([*completed, OUTSIDE] if completed else []))

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return all labels of spans of a type, and "O"."""
        return (*self.scheme.labels_of(name), OUTSIDE)

    def names_of(self, labels: Labels) -> tuple[str, ...]:
        """Return the span types of labels."""
        return self.scheme.names_of(labels)

    def valid_transitions(self, labels: Labels) -> Mask:
        """Return the valid transitions between labels, see `Target.valid_transitions`."""
        return self.scheme.valid_transitions(labels)

    def spans(self, label_ids: Ids, labels: Labels) -> LabelledSpans:
        """Decode labels into spans; label_ids, labels: as for `write`."""
        ids = joined(label_ids) if len(label_ids) else np.empty(0, np.int32)
        return self.scheme.decode(ids, ends_of(label_ids), labels)

    def permitted(self, docs: Docs, labels: Labels, *, overwrite: bool) -> Mask | None:
        """Return the labels that tokens may get, given existing spans; see `Target.permitted`.

        Tokens of existing spans that the labels cannot encode get "O", so that no predicted span
        crosses them: spans of other types, overlapping spans, and spans across sentences.
        """
        if overwrite:
            return None
        present_in_docs = [self.present(doc) for doc in docs]
        if not any(present_in_docs):
            return None
        permitted = [np.ones((len(doc), len(labels)), dtype=np.bool_) for doc in docs]
        for doc, of_doc, present in zip(docs, permitted, present_in_docs, strict=True):
            if present is not None and OUTSIDE in labels:
                self._restrict(of_doc, doc, present, labels)
        return np.concatenate(permitted)

    def _restrict(self, permitted: Mask, doc: Doc, present: Present, labels: Labels) -> None:
        """Permit only labels that agree with existing annotation.

        permitted: [tokens, Y], in and out.
        """
        position = {label: i for i, label in enumerate(labels)}
        words = words_of(doc)
        begins_sentence = doc.to_array("SENT_START") == 1
        covered = np.zeros(len(doc), dtype=np.int64)
        for start, end, _ in present.spans:
            covered[start:end] += 1
        forced = np.full(len(doc), -1, dtype=np.int64)
        forced[covered > 0] = position[OUTSIDE]
        forced[list(present.outside)] = position[OUTSIDE]
        for span in present.spans:
            start, end, name = trimmed(span, words)
            ids = [position.get(label, -1) for label in self.scheme.labels_for(end - start, name)]
            crosses = begins_sentence[start + 1 : end].any() or (covered[start:end] > 1).any()
            if -1 in ids or crosses:
                continue
            forced[start:end] = ids
            inside = position.get(f"I-{name}", -1)
            if self.scheme.name == "IOB2" and inside >= 0:
                # The next word would make the span longer.
                permitted[words[words.searchsorted(end) :][:1], inside] = False
        tokens = np.flatnonzero(forced >= 0)
        permitted[tokens] = False
        permitted[tokens, forced[tokens]] = True

    def endings(self, spans: LabelledSpans, labels: Labels) -> Mask | None:
        """Return the labels of the next token with which each span ends.

        spans: K spans, of `spans`. RETURNS: [K, Y], or None if the labels of a span mark its end.
        """
        if self.scheme.name == "BILUO":
            return None
        follow = [self.labels_after(name, labels) for name in spans.names]
        ends = np.array([[label in those for label in labels] for those in follow])
        return ends.reshape(len(follow), len(labels))[spans.types]

    def labels_after(self, name: str, labels: Labels) -> list[str]:
        """Return the labels of the next token with which a span of a type ends."""
        longer = f"I-{name}" if self.scheme.name == "IOB2" else ""
        return [label for label in labels if label != longer]

    def outside(self, label_ids: Ids, labels: Labels, spans: LabelledSpans) -> Ids:
        """Remove spans from predicted labels: set the labels of their tokens to "O".

        label_ids, labels: as for `write`; labels must contain "O", which `complete` ensures.
        spans: a selection of the spans that `spans` finds.
        """
        ids = np.concatenate(label_ids)
        ids[spans.tokens()] = list(labels).index(OUTSIDE)
        return np.split(ids, ends_of(label_ids)[:-1])


def trimmed(span: Span, words: Longs) -> Span:
    """Return a span that begins and ends with a word; an empty one if it has none.

    words: positions of the Doc's words, ascending.
    """
    start, end, name = span
    if start < end <= len(words) and words[end - 1] == end - 1:  # no blanks up to its end
        return span
    inside = words[words.searchsorted(start) : words.searchsorted(end)]
    return (int(inside[0]), int(inside[-1]) + 1, name) if len(inside) else (start, start, name)


@crf_targets("spacy_sparsecrf.Spans.v1")
class SpanGroups(SpanTarget):
    """Learns and writes spans, such as chunks, in `doc.spans[key]`.

    key: key of the span group.
    scheme: "BILUO" or "IOB2", the labelling scheme.
    types: see `SpanTarget`.
    RAISES: SparseCRFError for an empty key, another scheme, or invalid types.
    """

    def __init__(self, key: str = "sc", scheme: str = "BILUO", types: Sequence[str] = ()) -> None:
        super().__init__(scheme, types)
        if not key:
            raise SparseCRFError(Errors.SC508)
        self.key = key

    def scoring(self) -> dict[str, str]:
        """Return the key, for `spacy.spancat_scorer.v1`."""
        return {"spans_key": self.key}

    def _spans_in(self, doc: Doc) -> list[DocSpan]:
        """Return the non-empty spans of the types in the group; none if the Doc lacks the group."""
        return [span for span in doc.spans.get(self.key, []) if len(span) and self._is_own(span)]

    def _is_own(self, span: DocSpan) -> bool:
        # A span without a type may have any type.
        return not span.label_ or self.has_type(span.label_)

    def gold(self, example: Example) -> list[str | Not | None]:
        """Read gold labels, see `Target.gold`; they are missing if a Doc lacks the group.

        RAISES: SparseCRFError that names the Doc if spans overlap.
        """
        n, doc = len(example.predicted), example.reference
        if self.key not in doc.spans:
            return [None] * n
        spans = self._spans_in(doc)
        self._check(spans, doc)
        gold: list[str | Not | None] = [self.outside_of(doc)] * n
        same, words = have_same_tokens(example), words_of(example.predicted)
        for span in spans:
            aligned = [span] if same else example.get_aligned_spans_y2x([span], allow_overlap=True)
            if aligned and span.label_:
                start, end, _ = trimmed((aligned[0].start, aligned[0].end, ""), words)
                gold[start:end] = self.scheme.labels_for(end - start, span.label_)
            else:
                for token in example.alignment.y2x[span.start : span.end]:
                    gold[token] = None
        return gold

    def _check(self, spans: Sequence[DocSpan], doc: Doc) -> None:
        end = 0
        for span in sorted(spans, key=lambda span: span.start):
            if span.start < end:
                values = {"key": self.key, "span": span.text, "name": span.label_}
                raise SparseCRFError(Errors.SC502.format(**values, text=doc.text[:60]))
            end = span.end

    def present(self, doc: Doc) -> Present | None:
        """Return the spans of the group; None if there are none."""
        spans = [(span.start, span.end, span.label_) for span in self._spans_in(doc)]
        return Present(spans) if spans else None

    def write(
        self, docs: Docs, label_ids: Ids, labels: Labels, *, overwrite: bool, scores: Scores = None
    ) -> None:
        """Write predicted spans, see `Target.write`; leave out spans that overlap kept spans.

        Spans of types that are not learnt are kept, with their scores, and may overlap new ones.
        Scores are written to `doc.spans[key].attrs["scores"]`, a float64 array; the score of kept
        spans of the learnt types is 1.
        """
        spans, ends = self.spans(label_ids, labels), ends_of(docs)
        probabilities = np.ones(len(spans)) if scores is None else scores
        order = np.lexsort((spans.ends, spans.starts)).astype(np.int64)
        spans, probabilities = spans.where(order), probabilities[order]
        bounds = np.searchsorted(spans.starts, np.append(0, ends)).tolist()
        for doc, end, low, high in zip(docs, ends.tolist(), bounds, bounds[1:], strict=False):
            group = self._kept(doc, overwrite)
            taken = {i for span, _ in group if self._is_own(span) for i in _tokens(span)}
            for k in range(low, high):
                start, stop = (int(t[k]) - end + len(doc) for t in (spans.starts, spans.ends))
                new = DocSpan(doc, start, stop, label=spans.names[spans.types[k]])
                if taken.isdisjoint(_tokens(new)):
                    group.append((new, float(probabilities[k])))
            group.sort(key=lambda scored: scored[0].start)
            kept_group = doc.spans.get(self.key) if self.types or not overwrite else None
            attrs = {k: v for k, v in getattr(kept_group, "attrs", {}).items() if k != SCORES}
            if scores is not None or not len(spans):
                attrs[SCORES] = np.array([score for _, score in group])
            members = [span for span, _ in group]
            doc.spans[self.key] = SpanGroup(doc, name=self.key, attrs=attrs, spans=members)

    def _kept(self, doc: Doc, overwrite: bool) -> list[tuple[DocSpan, float]]:
        """Return the existing spans of the group that are kept, and their scores."""
        group = doc.spans.get(self.key, ())
        scores = getattr(group, "attrs", {}).get(SCORES, ())
        if len(scores) != len(group):
            scores = np.ones(len(group))
        return [
            (span, 1.0 if self._is_own(span) else float(score))
            for span, score in zip(group, scores, strict=True)
            if not (overwrite and self._is_own(span))
        ]


def _tokens(span: DocSpan) -> range:
    return range(span.start, span.end)
