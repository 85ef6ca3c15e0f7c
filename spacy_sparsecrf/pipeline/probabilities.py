"""What a component tells of Docs besides its predictions: probabilities, and other labels."""

import heapq
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..errors import Errors, SparseCRFError
from ..targets.span_target import SpanTarget
from .prediction import Reader, by_doc

if TYPE_CHECKING:
    from ..decoding import Decoder
    from ..targets.base import Target

# First token, labels of the tokens from there on, and the labels that may follow, or None.
Span = tuple[int, Sequence[str]] | tuple[int, Sequence[str], Collection[str] | None]


class Probabilities:
    """Methods of a component on Docs, which are not changed.

    Sequences of a Doc are independent, so that the probability of a Doc's labels is the product of
    those of its sequences. With constraints ([components.NAME.decoding], and the target's scheme)
    probabilities are of the legal sequences, among which they sum to 1. With `forced` they are
    given what is set in the Doc, unless [components.NAME] overwrite = true; a Doc that the
    component has annotated already is certain then.
    """

    name: str
    target: "Target"

    if TYPE_CHECKING:

        @property
        def label_data(self) -> tuple[str, ...]:
            """The labels of tokens, in the order of their ids."""

        def _decoder(self) -> Decoder: ...

        def _reader(self) -> Reader: ...

    def marginals(self, docs: Iterable[Doc], *, forced: bool = False) -> list[NDArray[np.float64]]:
        """Compute the probabilities of all labels of each token, p(y_t = y | x).

        RETURNS: an array [tokens, labels] float64 for each Doc; rows sum to 1, the columns are
        `label_data`. RAISES: SparseCRFError if there are no labels.
        """
        docs = list(docs)
        decoder, n_labels = self._labelled_decoder(), len(self.label_data)
        if not any(map(len, docs)):
            return [np.zeros((0, n_labels)) for _ in docs]
        sources = self._reader().sources(docs, forced)
        return by_doc(docs, [decoder.marginals(*source) for source in sources])

    def nbest(self, doc: Doc, n: int, *, forced: bool = False) -> list[tuple[list[str], float]]:
        """Find the n most probable label sequences of a Doc.

        RETURNS: the labels of the Doc's tokens and their probability, n times or as often as there
        are any, most probable first.
        RAISES: SparseCRFError if there are no labels, or n is not a number of at least 1.
        """
        from ..decoding import check_n

        check_n(n)
        decoder, names = self._labelled_decoder(), self.label_data
        if not len(doc):
            return [([], 1.0)]
        [(source, permitted)] = self._reader().sources([doc], forced)
        found = decoder.nbest(source, n, permitted)
        chosen, totals = combine([log_p for _, log_p in found], n)
        paths = zip(chosen, np.exp(totals), strict=True)
        return [
            (
                [names[y] for (ids, _), k in zip(found, ranks, strict=True) for y in ids[k]],
                float(probability),
            )
            for ranks, probability in paths
        ]

    def log_probability(self, doc: Doc, labels: Sequence[str], *, forced: bool = False) -> float:
        """Compute the log-probability of labels of a Doc, log p(y | x).

        labels: one for each token. RETURNS: -inf for labels that are not legal.
        RAISES: SparseCRFError for unknown labels, or another number of them.
        """
        if len(labels) != len(doc):
            raise SparseCRFError(Errors.SC406.format(n_labels=len(labels), n_tokens=len(doc)))
        decoder = self._labelled_decoder()
        ids = np.array(self._ids(labels), dtype=np.int32)
        if not len(doc):
            return 0.0
        [(source, permitted)] = self._reader().sources([doc], forced)
        return float(decoder.log_probability(source, ids, permitted).sum())

    def span_probabilities(
        self, doc: Doc, spans: Iterable[Span], *, forced: bool = False
    ) -> NDArray[np.float64]:
        """Compute the probabilities that runs of tokens have given labels, exactly.

        spans: (first token, labels of the tokens from there on), as in (3, ["B-PER", "L-PER"]); or
            with a third part, the labels that the token after may have, for schemes in which labels
            do not tell where a span ends: (3, ["B-PER", "I-PER"], labels other than "I-PER"). It
            does not matter at the end of a sequence.
        RETURNS: [spans] float64. RAISES: SparseCRFError for unknown labels, and for spans without
        labels or not within the Doc.
        """
        from ..spans import Spans

        decoder = self._labelled_decoder()
        starts, runs, after = [], [], []
        for start, labels, *rest in spans:
            starts.append(start)
            runs.append(self._ids(labels))
            follow = np.ones(len(self.label_data), dtype=bool)
            if rest and rest[0] is not None:
                follow[:] = False
                follow[self._ids(rest[0])] = True
            after.append(follow)
        if not starts:
            return np.zeros(0)
        asked = Spans.of(starts, runs, np.array(after))
        asked.check(len(doc))
        [(source, permitted)] = self._reader().sources([doc], forced)
        return decoder.span_probability(source, asked, permitted)

    def entity_probabilities(
        self, doc: Doc, spans: Iterable[tuple[int, int, str]], *, forced: bool = False
    ) -> NDArray[np.float64]:
        """Compute the probabilities that spans are entities, or spans, of given types, exactly.

        spans: (first token, the one after the last, type), as in (3, 5, "PER"); they may overlap.
        RETURNS: [spans] float64; 0 where the component lacks a label that such a span would need.
        RAISES: SparseCRFError for unknown types, for spans that are empty or not within the Doc,
            and where the component learns labels of tokens.
        """
        target, known = self.target, self.label_data
        if not isinstance(target, SpanTarget):
            raise SparseCRFError(Errors.SC509.format(name=self.name))
        spans, runs, told = list(spans), [], []
        for number, (start, end, name) in enumerate(spans):
            if name not in target.names_of(known):
                types = ", ".join(target.names_of(known))
                raise SparseCRFError(Errors.SC409.format(name=self.name, label=name, known=types))
            if not 0 <= start < end <= len(doc):
                values = {"number": number, "length": end - start, "start": start}
                raise SparseCRFError(Errors.SC408.format(**values, n_tokens=len(doc)))
            labels = target.scheme.labels_for(end - start, name)
            if set(labels) <= set(known):
                told.append(number)
                runs.append((start, labels, target.labels_after(name, known)))
        found = np.zeros(len(spans))
        found[told] = self.span_probabilities(doc, runs, forced=forced)
        return found

    def _labelled_decoder(self) -> "Decoder":
        if not self.label_data:
            raise SparseCRFError(Errors.SC201.format(name=self.name))
        return self._decoder()

    def _ids(self, labels: Iterable[str]) -> list[int]:
        """Positions of labels."""
        ids = {label: i for i, label in enumerate(self.label_data)}
        labels = list(labels)
        for label in labels:
            if label not in ids:
                known = ", ".join(self.label_data)
                raise SparseCRFError(Errors.SC409.format(name=self.name, label=label, known=known))
        return [ids[label] for label in labels]


def combine(
    ranked: Sequence[NDArray[np.float64]], n: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose one of each list so that the sum is large: the n best choices, best first.

    ranked: D lists, which descend. RETURNS: [K, D] int64 positions in the lists, and [K] float64
    sums, which descend, K <= n.
    """
    chosen, totals = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for values in ranked:
        left, right, totals = _merge(totals, values, n)
        chosen = np.column_stack((chosen[left], right))
    return chosen, totals


def _merge(
    left: NDArray[np.float64], right: NDArray[np.float64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Find the n largest sums of elements of two lists that descend, by a heap of candidates.

    RETURNS: the positions in both lists, and the sums.
    """
    heap = [(-float(left[0] + right[0]), 0, 0)]
    found: list[tuple[int, int, float]] = []
    while heap and len(found) < n:
        total, i, j = heapq.heappop(heap)
        found.append((i, j, -total))
        # Each pair enters once: (i, j) after (i, j - 1), and (i, 0) after (i - 1, 0).
        if j + 1 < len(right):
            heapq.heappush(heap, (-float(left[i] + right[j + 1]), i, j + 1))
        if j == 0 and i + 1 < len(left):
            heapq.heappush(heap, (-float(left[i + 1] + right[0]), i + 1, 0))
    first, second, sums = zip(*found, strict=True)
    return np.array(first), np.array(second), np.array(sums)
