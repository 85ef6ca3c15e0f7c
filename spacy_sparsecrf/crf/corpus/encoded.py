"""The encoded corpus: hashed features of sequences, as arrays.

A featurizer returns `Observations` for a batch; `CorpusBuilder` collects batches. `EncodedCorpus`
numbers the features by descending frequency, so that the weights of neighbouring tokens are close
in memory. It numbers distinct sets of bigram features as contexts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from .numbering import Array, Bytes, Floats, Hashes, Ints, Longs, Mask, Singles
from .ragged import row_numbers

MISSING = -1  # gold label of a token without one
# Labels and the start label are stored in 16 bits.
MAX_LABELS = np.iinfo(np.uint16).max - 1
NO_VALUES: Singles = np.empty((0, 0), np.float32)


@dataclass(frozen=True, repr=False)
class Observations:
    """Hashed features of a batch of sequences, and real-valued features.

    Attributes
    ----------
    hashes : array [N, P] uint64
        The feature of template p at token n; 0 for none.
    offsets : array [S + 1] int64
        Sequence s is the tokens offsets[s]:offsets[s + 1].
    unigram_columns : array [U] int32
        Columns of `hashes` that are conjoined with the label.
    bigram_columns : array [B] int32
        Columns that are conjoined with the label pair.
    start_label : bool
        Whether the first token of a sequence has the pair (start, y).
    values : array [N, V] float32
        Real-valued features, finite, conjoined with the label.
    value_keys : array [V] uint64
        Hashes of the names of real-valued features, distinct from all hashes.
    kept : array [N] int64 or None
        The tokens of the Docs that are observed; None for all.
    families : array [<= P] uint8
        Families of the first columns: features of one family depend on the same attributes, so
        that tokens often share all of them; 0 for none, as of the others.

    Examples
    --------
    >>> Observations(
    ...     hashes=np.array([[3, 1], [4, 1]], np.uint64),
    ...     offsets=np.array([0, 2]),
    ...     unigram_columns=np.array([0], np.int32),
    ...     bigram_columns=np.array([1], np.int32),
    ... )
    Observations(1 sequences, 2 tokens)
    """

    hashes: Hashes
    offsets: Longs
    unigram_columns: Ints
    bigram_columns: Ints
    start_label: bool = True
    values: Singles = field(default_factory=lambda: NO_VALUES)
    value_keys: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    kept: Longs | None = None
    families: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))

    def __repr__(self) -> str:
        return f"Observations({len(self.offsets) - 1} sequences, {self.n_tokens} tokens)"

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

    def sequences(self, first: int, last: int) -> Observations:
        """Return the observations of some sequences.

        Parameters
        ----------
        first, last : int
            The sequences first:last.

        Returns
        -------
        Observations
            Their observations.
        """
        begin, end = self.offsets[first], self.offsets[last]
        offsets, hashes = self.offsets[first : last + 1] - begin, self.hashes[begin:end]
        return replace(self, hashes=hashes, values=self.values[begin:end], offsets=offsets)


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
    families: [<= O] uint8, of the first unigram features, see `Observations`; others have none.
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
    values: Singles = field(default_factory=lambda: NO_VALUES)
    value_features: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    families: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))

    @property
    def arrays(self) -> dict[str, Array]:
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
        sequence, n = row_numbers(self.offsets), self.n_sequences
        n_known = np.bincount(sequence[self.labels != MISSING], minlength=n)
        n_sure = np.bincount(sequence[self.labels >= 0], minlength=n)
        return (n_known > 0) & (self.weights > 0.0), n_sure == np.diff(self.offsets)

    def n_potential(self, n_labels: int) -> int:
        """Count the potential weights K = sum of Y per unigram and Y² (+ Y for the start
        label) per bigram feature (Lavergne 2010, section 2.1 and footnote 2).
        """
        n_previous = n_labels + int(self.start_label)
        return n_labels * (len(self.unigram_keys) + len(self.bigram_keys) * n_previous)
