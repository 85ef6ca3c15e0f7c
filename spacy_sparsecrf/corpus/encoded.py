"""The encoded corpus: hashed features of sequences, as arrays.

A featurizer returns `Observations` for a batch; `CorpusBuilder` collects batches. `EncodedCorpus`
numbers the features by descending frequency, so that the weights of neighbouring tokens are close
in memory. It numbers distinct sets of bigram features as contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from . import numbering
from .numbering import Array, Hashes, Ints, Longs

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Relabel = Callable[[Ints], Ints]

MISSING = -1  # gold label of a token without one
# Labels and the start label are stored in 16 bits.
MAX_LABELS = np.iinfo(np.uint16).max - 1
NO_VALUES: NDArray[np.float32] = np.empty((0, 0), np.float32)


@dataclass(frozen=True)
class Observations:
    """Hashed features of a batch of sequences, and real-valued features.

    hashes: [N, P] uint64, the feature of template p at token n; 0 for none.
    offsets: [S + 1] int64, sequence s is the tokens offsets[s]:offsets[s + 1].
    unigram_columns: [U] int32, columns of `hashes` that are conjoined with the label.
    bigram_columns: [B] int32, columns that are conjoined with the label pair.
    start_label: whether the first token of a sequence has the pair (start, y).
    values: [N, V] float32, finite; real-valued features, conjoined with the label.
    value_keys: [V] uint64, hashes of the names of real-valued features, distinct from all hashes.
    """

    hashes: Hashes
    offsets: Longs
    unigram_columns: Ints
    bigram_columns: Ints
    start_label: bool = True
    values: NDArray[np.float32] = field(default_factory=lambda: NO_VALUES)
    value_keys: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return len(self.hashes)

    @property
    def unigram_hashes(self) -> Hashes:
        """[N, U] uint64, features conjoined with the label."""
        return np.take(self.hashes, self.unigram_columns, axis=1)

    @property
    def bigram_hashes(self) -> Hashes:
        """[N, B] uint64, features conjoined with the label pair.

        Without a start label, the first token of a sequence has no pair and no such feature.
        """
        hashes = np.take(self.hashes, self.bigram_columns, axis=1)
        if not self.start_label:
            hashes[self.offsets[:-1][np.diff(self.offsets) > 0]] = 0
        return hashes


@dataclass(frozen=True)
class EncodedCorpus:
    """Sequences as arrays: features, context and label of each token.

    The potential of token t, with o over its unigram features and over those of its context, is
    log psi_t(y', y) = sum_o mu[o, y] + sum_o lam[o, y', y]  (Lavergne 2010, section 2.1).
    Real-valued features are numbered as unigram features o and add x_t[o] mu[o, y], x_t: values.

    offsets: [S + 1] int64, tokens of a sequence.
    labels: [N] int32, gold label ids, -1 = missing, -2 - q = any label of sets[q].
    weights: [S] float64, >= 0, weight of the log-likelihood of a sequence.
    uni_indptr, uni_indices: CSR [N + 1] int64, [nnz] int32, unigram features of a token.
    context: [N] int32, set of bigram features of a token.
    ctx_indptr, ctx_indices: CSR [C + 1] int64, [nnz] int32, bigram features of a context.
    unigram_keys, bigram_keys: [O] uint64, hashes by descending frequency, ties by first occurrence;
        index = feature id.
    start_label: whether pairs (start, y) exist.
    sets: [Q, Y] bool, possible gold labels of a token, if several but not all labels are possible.
    values: [N, V] float32, of real-valued features, finite.
    value_features: [V] int64, ascending, feature ids of real values; no token has these features.
    """

    offsets: Longs
    labels: Ints
    weights: Floats
    uni_indptr: Longs
    uni_indices: Ints
    context: Ints
    ctx_indptr: Longs
    ctx_indices: Ints
    unigram_keys: Hashes
    bigram_keys: Hashes
    start_label: bool
    sets: Mask = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    values: NDArray[np.float32] = field(default_factory=lambda: NO_VALUES)
    value_features: Longs = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, including `start_label` as an array of shape []."""
        return {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return len(self.labels)

    @property
    def n_sequences(self) -> int:
        """Number of sequences S."""
        return len(self.weights)

    def with_labels(self) -> tuple[Mask, Mask]:
        """Return masks of the sequences with any, and with only, known gold labels: [S] bool each.

        The first mask excludes sequences of weight 0. In the second, each token has one label.
        """
        lengths, n = np.diff(self.offsets), self.n_sequences
        sequence = np.repeat(np.arange(n), lengths)
        n_known = np.bincount(sequence[self.labels != MISSING], minlength=n)
        n_sure = np.bincount(sequence[self.labels >= 0], minlength=n)
        return (n_known > 0) & (self.weights > 0.0), n_sure == lengths

    def n_potential(self, n_labels: int) -> int:
        """Count the potential weights K = sum of Y per unigram and Y² (+ Y for the start
        label) per bigram feature (Lavergne 2010, section 2.1 and footnote 2).
        """
        pairs = n_labels * (n_labels + int(self.start_label))
        return len(self.unigram_keys) * n_labels + len(self.bigram_keys) * pairs


# Arrays that arrive in batches, with provisional numbers, and their dtypes.
_ARRIVING: dict[str, type[np.generic]] = {
    "offsets": np.int64,
    "n_features": np.int32,
    "features": np.int32,
    "context": np.int32,
    "labels": np.int32,
    "weights": np.float64,
    "values": np.float32,
}


class CorpusBuilder:
    """Collects batches of observations with their gold labels into one `EncodedCorpus`.

    Features and sets of bigram features get provisional numbers as they arrive; `build` assigns the
    final ones.

    features, rows: distinct features conjoined with the label, and distinct sets of bigram
    features, None before the first batch; start_label: see `EncodedCorpus`.
    """

    def __init__(self) -> None:
        self._pieces: dict[str, list[Array]] = {name: [] for name in _ARRIVING}
        self._n_tokens = self._n_sequences = 0
        self._value_keys: Hashes = np.empty(0, np.uint64)
        self.features = numbering.RowIndex(1)
        self.rows: numbering.RowIndex | None = None
        self.start_label = True

    def add(self, observations: Observations, labels: Ints, weights: Floats | None = None) -> None:
        """Append a batch.

        observations: the features of N tokens in S sequences.
        labels: [N] int32, gold label ids, below 0 as in `EncodedCorpus`.
        weights: [S] float64, weight of each sequence's log-likelihood; default 1.
        """
        if observations.n_tokens and len(observations.value_keys):
            self._append(values=observations.values)
            self._value_keys = observations.value_keys
        hashes, bigrams = observations.unigram_hashes, observations.bigram_hashes
        present, n_sequences = hashes != 0, len(observations.offsets) - 1
        if self.rows is None:
            self.rows = numbering.RowIndex(bigrams.shape[1])
            self._append(offsets=np.zeros(1))
        self.start_label = observations.start_label
        self._append(
            offsets=self._n_tokens + observations.offsets[1:],
            n_features=present.sum(axis=1),
            features=self.features.add(hashes[present][:, None]),
            context=self.rows.add(bigrams),
            labels=np.asarray(labels),
            weights=np.ones(n_sequences) if weights is None else weights,
        )
        self._n_tokens += observations.n_tokens
        self._n_sequences += n_sequences

    def _append(self, **arrays: Array) -> None:
        """Append a piece to each array."""
        for name, array in arrays.items():
            self._pieces[name].append(np.asarray(array, _ARRIVING[name]))

    def arrived(self, name: str) -> Array:
        """Return an array named in _ARRIVING, with provisional numbers."""
        return np.concatenate(self._pieces[name])

    @property
    def has_values(self) -> bool:
        """Return whether real-valued features have arrived."""
        return len(self._value_keys) > 0

    def relabel(self, final: Relabel) -> int:
        """Replace labels by final ids, batch by batch. RETURNS: the number of missing labels."""
        pieces = self._pieces["labels"] = [final(piece) for piece in self._pieces["labels"]]
        return sum(int((labels == MISSING).sum()) for labels in pieces)

    def build(self, min_freq: int = 1) -> EncodedCorpus:
        """Number the features and contexts of all batches.

        min_freq: features at fewer tokens are removed, see `without_rare`; real values are not.
        RETURNS: the corpus, without sets; it does not depend on the division into batches.
        RAISES: SparseCRFError if no feature is left.
        """
        if self.rows is None:
            raise SparseCRFError(Errors.SC302)
        rows = numbering.without_rare(self.rows.rows, min_freq, self.rows.counts)
        representatives, context = numbering.distinct_rows(rows)
        bigram_keys, ctx_indptr, ctx_indices = numbering.number_features(rows[representatives])
        order, number = numbering.by_frequency(self.features, min_freq)
        if min_freq > 1 and not (len(order) or len(bigram_keys) or self.has_values):
            raise SparseCRFError(Errors.SC351.format(min_freq=min_freq, n_tokens=self._n_tokens))
        # Real values come after the features of tokens.
        value_features = np.arange(len(order), len(order) + len(self._value_keys))
        # Pieces, as the numbers of all occurrences take the most memory.
        numbered = [np.take(number, features) for features in self._pieces["features"]]
        return EncodedCorpus(
            offsets=self.arrived("offsets"),
            labels=self.arrived("labels"),
            weights=self.arrived("weights"),
            uni_indptr=self._ends_of_features(numbered),
            uni_indices=np.concatenate([found[found >= 0] for found in numbered]),
            context=context[self.arrived("context")],
            ctx_indptr=ctx_indptr,
            ctx_indices=ctx_indices,
            unigram_keys=np.concatenate((self.features.rows[order, 0], self._value_keys)),
            bigram_keys=bigram_keys,
            start_label=self.start_label,
            values=self.arrived("values") if self._pieces["values"] else NO_VALUES,
            value_features=value_features,
        )

    def _ends_of_features(self, numbered: list[Ints]) -> Longs:
        """Return the first feature of each token, and the end; numbered: -1 if removed."""
        counts = [np.zeros(1, np.int64)]
        for sizes, found in zip(self._pieces["n_features"], numbered, strict=True):
            kept = np.append(0, np.cumsum(found >= 0))
            counts.append(np.diff(kept[np.append(0, np.cumsum(sizes))]))
        return np.cumsum(np.concatenate(counts))
