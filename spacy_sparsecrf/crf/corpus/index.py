"""Parts of a corpus with local feature numbers, and the index that assigns global ones.

Each part is encoded independently, with features numbered as they arrive. The index of all parts
numbers features by descending frequency, ties by first occurrence. A corpus encoded in parts is
therefore identical to one encoded at once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...errors import Errors, SparseCRFError
from ..kernels.layout import Csr
from . import numbering
from .encoded import EncodedCorpus
from .numbering import Array, Bytes, Hashes, Ints, Longs
from .ragged import pointers


class FeatureCounts(NamedTuple):
    """Features that are conjoined with the label, and their counts.

    keys: [O] uint64; counts: [O] int64, tokens of each; arrival: [O] int64, rank of the first
    occurrence; families: [O] uint8, see `Observations`.
    """

    keys: Hashes
    counts: Longs
    arrival: Longs
    families: Bytes

    def between(self, low: int, high: int, part: int) -> "FeatureCounts":
        """Return the features with keys low <= key <= high.

        Ranks are moved behind the ranks of all parts of lower numbers. part: number of this part.
        """
        is_between = (self.keys >= np.uint64(low)) & (self.keys <= np.uint64(high))
        return self._replace(arrival=self.arrival + (part << 32)).take(is_between)

    def take(self, chosen: NDArray[np.generic]) -> "FeatureCounts":
        """Return chosen features; chosen: a mask [O], or positions."""
        return FeatureCounts._make(array[chosen] for array in self)


class ConjoinedRows(NamedTuple):
    """Distinct sets of features that are conjoined with label pairs.

    hashes: [C, B] uint64, 0 = no feature; counts: [C] int64, tokens of each.
    """

    hashes: Hashes
    counts: Longs


class Index(NamedTuple):
    """Numbers of features and contexts: the fields of the same names in `EncodedCorpus`."""

    unigram_keys: Hashes
    families: Bytes
    bigram_keys: Hashes
    ctx_indptr: Longs
    ctx_indices: Ints


_NO_KEYS = np.zeros(0, np.uint64)
_NO_FAMILIES = np.zeros(0, np.uint8)
NO_INDEX = Index(
    unigram_keys=_NO_KEYS,
    families=_NO_FAMILIES,
    bigram_keys=_NO_KEYS,
    ctx_indptr=np.zeros(1, np.int64),
    ctx_indices=np.zeros(0, np.int32),
)


class CorpusPart(NamedTuple):
    """Consecutive sequences of a corpus, with local numbers of features and contexts.

    sequences: without an index; `uni_indices` are numbers of `features`, `context` of `rows`.
    """

    sequences: EncodedCorpus
    features: FeatureCounts
    rows: ConjoinedRows

    def encoded(self, index: Index, number: Ints, contexts: Ints) -> EncodedCorpus:
        """Return the part renumbered by an index.

        number: [O], of each of its features, -1 if removed; contexts: [C], of each of its rows.
        """
        from ..kernels.indexing import select

        sequences = self.sequences
        features = select(Csr(sequences.uni_indptr, sequences.uni_indices), number)
        return replace(
            sequences,
            uni_indptr=features.indptr,
            uni_indices=features.indices,
            context=contexts[sequences.context],
            **index._asdict(),
        )


def merged_features(parts: Sequence[FeatureCounts], min_freq: int = 1) -> FeatureCounts:
    """Merge the features of parts by hash; keep those that occur at min_freq tokens or more."""
    nothing = np.zeros(0, np.int64)
    none = FeatureCounts(_NO_KEYS, nothing, nothing, _NO_FAMILIES)
    every = FeatureCounts._make(map(np.concatenate, zip(none, *parts, strict=True)))
    order = np.argsort(every.keys, kind="stable")
    keys, begins = np.unique(every.keys[order], return_index=True)
    counts = np.add.reduceat(every.counts[order], begins)
    arrival = np.minimum.reduceat(every.arrival[order], begins)
    frequent = counts >= min_freq
    return FeatureCounts(keys, counts, arrival, every.families[order][begins]).take(frequent)


def merged_rows(parts: Sequence[ConjoinedRows]) -> tuple[ConjoinedRows, list[Ints]]:
    """Merge the rows of parts. RETURNS: all rows, and for each part the numbers [C] of its rows."""
    # A part without tokens has no columns.
    width = max(part.hashes.shape[1] for part in parts)
    hashes = np.concatenate([part.hashes.reshape(len(part.hashes), width) for part in parts])
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
    index = Index(
        unigram_keys=features.keys[order],
        families=features.families[order],
        bigram_keys=bigram_keys,
        ctx_indptr=ctx_indptr,
        ctx_indices=ctx_indices,
    )
    return index, numbering.positions(order, len(features.keys)), context


def joined(index: Index, corpora: Sequence[EncodedCorpus], start_label: bool) -> EncodedCorpus:
    """Concatenate corpora with an index; none give a corpus without sequences."""

    def joined_array(name: str, dtype: DTypeLike) -> Array:
        return np.concatenate([np.zeros(0, dtype), *(getattr(corpus, name) for corpus in corpora)])

    def ends(name: str) -> Longs:
        sizes = [np.diff(getattr(corpus, name)) for corpus in corpora]
        return pointers(np.concatenate([np.zeros(0, np.int64), *sizes]))

    return EncodedCorpus(
        offsets=ends("offsets"),
        labels=joined_array("labels", np.int32),
        weights=joined_array("weights", np.float64),
        uni_indptr=ends("uni_indptr"),
        uni_indices=joined_array("uni_indices", np.int32),
        context=joined_array("context", np.int32),
        **index._asdict(),
        start_label=start_label,
    )
