"""What targets have in common that learn spans which do not overlap."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..errors import Errors, SparseCRFError
from .base import Target, ends_of
from .scheme import OUTSIDE, Scheme, Spans

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

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a label that does not tell spans."""
        if not self.scheme.is_label(label):
            known = ", ".join((*self.scheme.labels_of("TYPE"), OUTSIDE))
            message = Errors.SC505.format(label=label, scheme=self.scheme.name, known=known)
            raise SparseCRFError(message)

    def complete(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return labels with all those of types among them, and, where there are any, with "O".

        Without "O" a sequence might have no legal labels.
        """
        known: dict[str, None] = {}
        for label in labels:
            own = (label,) if self.scheme.is_label(label) else self.labels_of(label)
            known.update(dict.fromkeys(own))
        if known:
            known.setdefault(OUTSIDE)
        return tuple(known)

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return all labels of spans of a type, and "O"."""
        return (*self.scheme.labels_of(name), OUTSIDE)

    def names_of(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the types that labels tell."""
        return self.scheme.names_of(labels)

    def legal(self, labels: Sequence[str]) -> NDArray[np.bool_]:
        """Tell which labels may follow each other, see `Target.legal`."""
        return self.scheme.legal(labels)

    def spans(self, label_ids: Sequence[NDArray[np.int32]], labels: Sequence[str]) -> Spans:
        """Find the spans that labels tell; label_ids, labels: as for `write`."""
        ids = np.concatenate([np.empty(0, dtype=np.int32), *label_ids])
        return self.scheme.decode(ids, ends_of(label_ids), labels)

    def permitted(
        self, docs: Sequence[Doc], labels: Sequence[str], *, overwrite: bool
    ) -> NDArray[np.bool_] | None:
        """Tell which labels tokens may get beside spans that are set, see `Target.permitted`.

        Tokens of spans that no sequence of these labels can tell get "O", so that nothing crosses
        them: spans of other types, that overlap, or that go beyond a sentence.
        """
        if overwrite:
            return None
        kept = [self.present(doc) for doc in docs]
        if not any(kept):
            return None
        masks = []
        for doc, present in zip(docs, kept, strict=True):
            masks.append(np.ones((len(doc), len(labels)), dtype=np.bool_))
            if present is not None and OUTSIDE in labels:
                self._restrict(masks[-1], doc, present, labels)
        return np.concatenate(masks)

    def _restrict(
        self, mask: NDArray[np.bool_], doc: Doc, present: Present, labels: Sequence[str]
    ) -> None:
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

    def endings(self, spans: Spans, labels: Sequence[str]) -> NDArray[np.bool_] | None:
        """Tell the labels of the token after each span with which it ends there.

        spans: K, of `spans`. RETURNS: [K, Y], or None where labels of spans tell their ends.
        """
        if self.scheme.name == "BILUO":
            return None
        follow = [self.labels_after(name, labels) for name in spans.names]
        ends = np.array([[label in those for label in labels] for those in follow])
        return ends.reshape(len(follow), len(labels))[spans.types]

    def labels_after(self, name: str, labels: Sequence[str]) -> list[str]:
        """Return those labels of the token after a span of a type with which it ends there."""
        longer = f"I-{name}" if self.scheme.name == "IOB2" else ""
        return [label for label in labels if label != longer]

    def outside(
        self, label_ids: Sequence[NDArray[np.int32]], labels: Sequence[str], spans: Spans
    ) -> list[NDArray[np.int32]]:
        """Take spans out of predicted labels, by the label "O".

        label_ids, labels: as for `write`; labels must have "O", as those of `complete` do.
        spans: some of those that `spans` finds.
        """
        ids = np.concatenate(label_ids)
        ids[spans.tokens()] = list(labels).index(OUTSIDE)
        return np.split(ids, ends_of(label_ids)[:-1])
