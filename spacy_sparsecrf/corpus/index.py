"""Parts of a corpus with local feature numbers, and the index that assigns global ones.

Each part is encoded independently, with features numbered as they arrive. The index of all parts
numbers features by descending frequency, ties by first occurrence. A corpus encoded in parts is
therefore identical to one encoded at once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import Errors, SparseCRFError
from . import numbering
from .encoded import EncodedCorpus, Floats
from .numbering import Hashes, Ints, Longs


class FeatureCounts(NamedTuple):
    """Features that are conjoined with the label, and their counts.

    keys: [O] uint64; counts: [O] int64, tokens of each; arrival: [O] int64, rank of the first
    occurrence.
    """

    keys: Hashes
    counts: Longs
    arrival: Longs

    def between(self, low: int, high: int, part: int) -> "FeatureCounts":
        """Return the features with keys low <= key <= high.

        Ranks are moved behind the ranks of all parts of lower numbers. part: number of this part.
        """
        own = (self.keys >= np.uint64(low)) & (self.keys <= np.uint64(high))
        return FeatureCounts(self.keys[own], self.counts[own], self.arrival[own] + (part << 32))


class ConjoinedRows(NamedTuple):
    """Distinct sets of features that are conjoined with label pairs.

    hashes: [C, B] uint64, 0 = no feature; counts: [C] int64, tokens of each.
    """

    hashes: Hashes
    counts: Longs


class Index(NamedTuple):
    """Numbers of features and contexts: the fields of the same names in `EncodedCorpus`."""

    unigram_keys: Hashes
    bigram_keys: Hashes
    ctx_indptr: Longs
    ctx_indices: Ints


class CorpusPart(NamedTuple):
    """Consecutive sequences of a corpus, with local numbers of features and contexts.

    offsets [S + 1], labels [N], weights [S], uni_indptr [N + 1], start_label: as in
    `EncodedCorpus`; uni_indices: [nnz], numbers of `features`; context: [N], numbers of `rows`.
    """

    offsets: Longs
    labels: Ints
    weights: Floats
    uni_indptr: Longs
    uni_indices: Ints
    context: Ints
    features: FeatureCounts
    rows: ConjoinedRows
    start_label: bool

    @property
    def lengths(self) -> Longs:
        """Number of tokens of each sequence, [S]."""
        return np.diff(self.offsets)

    def encoded(self, index: Index, number: Ints, contexts: Ints) -> EncodedCorpus:
        """Return the part renumbered by an index.

        number: [O], of each of its features, -1 if removed; contexts: [C], of each of its rows.
        """
        indptr, indices = self.uni_indptr, number[self.uni_indices]
        if (number < 0).any():
            kept = np.append(0, np.cumsum(indices >= 0))
            indptr, indices = kept[indptr], indices[indices >= 0]
        return EncodedCorpus(
            offsets=self.offsets,
            labels=self.labels,
            weights=self.weights,
            uni_indptr=indptr,
            uni_indices=indices,
            context=contexts[self.context],
            **index._asdict(),
            start_label=self.start_label,
        )


def merged_features(parts: Sequence[FeatureCounts], min_freq: int = 1) -> FeatureCounts:
    """Merge the features of parts by hash; keep those that occur at min_freq tokens or more."""
    nothing = np.zeros(0, np.int64)
    none = FeatureCounts(np.zeros(0, np.uint64), nothing, nothing)
    every = FeatureCounts(*map(np.concatenate, zip(none, *parts, strict=True)))
    order = np.argsort(every.keys, kind="stable")
    keys, first = np.unique(every.keys[order], return_index=True)
    if not len(keys):
        return none
    counts = np.add.reduceat(every.counts[order], first)
    arrival = np.minimum.reduceat(every.arrival[order], first)
    frequent = counts >= min_freq
    return FeatureCounts(keys[frequent], counts[frequent], arrival[frequent])


def merged_rows(parts: Sequence[ConjoinedRows]) -> tuple[ConjoinedRows, list[Ints]]:
    """Merge the rows of parts. RETURNS: all rows, and for each part the numbers [C] of its rows."""
    hashes = np.concatenate([part.hashes for part in parts])
    representatives, numbers = numbering.distinct_rows(hashes)
    counts = np.zeros(len(representatives), np.int64)
    np.add.at(counts, numbers, np.concatenate([part.counts for part in parts]))
    ends = np.cumsum([len(part.hashes) for part in parts])
    return ConjoinedRows(hashes[representatives], counts), np.split(numbers, ends[:-1])


def build_index(
    features: FeatureCounts, rows: ConjoinedRows, min_freq: int = 1, n_values: int = 0
) -> tuple[Index, Ints, Ints]:
    """Number features that occur at min_freq tokens or more, the most frequent first, and contexts.

    features, rows: of all tokens; n_values: number of real-valued features, which are numbered
    elsewhere.
    RETURNS: the index, the number [O] of each feature, -1 if rare, and the context [C] of each row.
    RAISES: SparseCRFError for too many features to number, or none.
    """
    order = np.lexsort((features.arrival, -features.counts))
    order = order[features.counts[order] >= min_freq]
    if len(order) > np.iinfo(np.int32).max:
        raise SparseCRFError(Errors.SC301.format(n=len(order)))
    hashes = rows.hashes
    if min_freq > 1:
        hashes = numbering.without_rare(hashes, min_freq, rows.counts)
    representatives, context = numbering.distinct_rows(hashes)
    bigram_keys, ctx_indptr, ctx_indices = numbering.number_features(hashes[representatives])
    if min_freq > 1 and not (len(order) or len(bigram_keys) or n_values):
        n_tokens = int(rows.counts.sum())
        raise SparseCRFError(Errors.SC351.format(min_freq=min_freq, n_tokens=n_tokens))
    index = Index(features.keys[order], bigram_keys, ctx_indptr, ctx_indices)
    return index, numbering.positions(order, len(features.keys)), context


def without_sequences(index: Index, start_label: bool = True) -> EncodedCorpus:
    """Return a corpus with an index and no sequences."""
    nothing = np.zeros(0, np.int32)
    return EncodedCorpus(
        offsets=np.zeros(1, np.int64),
        labels=nothing,
        weights=np.zeros(0),
        uni_indptr=np.zeros(1, np.int64),
        uni_indices=nothing,
        context=nothing,
        **index._asdict(),
        start_label=start_label,
    )


def joined(corpora: Sequence[EncodedCorpus]) -> EncodedCorpus:
    """Concatenate corpora that have the same index."""

    def ends(of_each: Sequence[Longs]) -> Longs:
        return np.concatenate(([0], np.cumsum(np.concatenate([np.diff(each) for each in of_each]))))

    def whole(name: str) -> Any:
        return np.concatenate([getattr(corpus, name) for corpus in corpora])

    return replace(
        corpora[0],
        offsets=ends([corpus.offsets for corpus in corpora]),
        uni_indptr=ends([corpus.uni_indptr for corpus in corpora]),
        **{name: whole(name) for name in ("labels", "weights", "uni_indices", "context")},
    )
