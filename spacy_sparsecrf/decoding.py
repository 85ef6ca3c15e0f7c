"""Decoding: the best labels of sequences, and marginal probabilities."""

import numpy as np
from numpy.typing import NDArray

from .corpus import Observations, distinct_rows
from .model import CRFModel, WeightTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


def _csr(rows: Ints) -> tuple[Longs, Ints]:
    """A matrix of row numbers, -1 = none, as CSR."""
    present = rows >= 0
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(present.sum(axis=1), out=indptr[1:])
    return indptr, rows[present]


class _Rows:
    """One kind of a model's weights, ready for look-up by hash.

    places: [K] int32, y, or y' * Yp + y for pairs: the place in a row or matrix of scores.
    """

    def __init__(self, table: WeightTable, padded: int) -> None:
        from .kernels.hashing import build_table

        # Arrays of a loaded model are read-only, which would compile every kernel once more.
        self.keys = table.keys.copy()
        self.slots = build_table(self.keys)
        self.ptr = table.indptr.copy()
        self.places = table.labels.astype(np.int32)
        if len(table.previous):
            self.places += table.previous.astype(np.int32) * padded
        self.values = table.values.astype(np.float64)

    def of(self, hashes: NDArray[np.uint64]) -> Ints:
        """Row of each hash, -1 where the model has no weight for it."""
        from .kernels.hashing import lookup

        rows = np.empty(hashes.shape, dtype=np.int32)
        lookup(self.slots, self.keys, hashes.reshape(-1), rows.reshape(-1))
        return rows


class Decoder:
    """Applies a model to observations; serial, so that it is safe in forked processes."""

    def __init__(self, model: CRFModel) -> None:
        self.n_labels = len(model.labels)
        self.padded = -(-self.n_labels // 8) * 8
        self._unigram = _Rows(model.unigram, self.padded)
        self._bigram = _Rows(model.bigram, self.padded)

    def viterbi(self, observations: Observations) -> Ints:
        """Find the most probable labels of each sequence.

        observations: of N tokens. RETURNS: [N] int32 label ids.
        """
        from .kernels.scoring import token_scores
        from .kernels.viterbi import viterbi

        n = observations.n_tokens
        labels = np.zeros(n, dtype=np.int32)
        if n == 0:
            return labels
        scores = np.empty((n, self.padded))
        unigram = self._unigram
        token_scores(
            observations.hashes,
            observations.unigram_columns,
            unigram.slots,
            unigram.keys,
            unigram.ptr,
            unigram.places,
            unigram.values,
            scores,
        )
        context, indptr, indices = self._contexts(observations)
        viterbi(
            observations.offsets,
            self.n_labels,
            scores,
            context,
            self._pair_scores(indptr, indices),
            np.empty((n, self.padded), dtype=np.int16),
            labels,
        )
        return labels

    def marginals(self, observations: Observations) -> Floats:
        """Compute p(y_t = y | x) of each token.

        observations: of N tokens. RETURNS: [N, Y] float64, rows sum to 1.
        """
        from .kernels.forward_backward import forward_backward
        from .kernels.potentials import context_matrices

        n, n_sequences = observations.n_tokens, len(observations.offsets) - 1
        context, indptr, indices = self._contexts(observations)
        psi = np.empty((len(indptr) - 1, self.n_labels + 1, self.padded))
        shift = np.empty(len(psi))
        bigram = self._bigram
        context_matrices(
            0,
            len(psi),
            self.n_labels,
            self.n_labels + 1,
            indptr,
            indices,
            bigram.ptr,
            bigram.places,
            bigram.values,
            psi,
            shift,
        )
        alpha, backward, marginals = (np.zeros((n, self.padded)) for _ in range(3))
        forward_backward(
            0,
            n_sequences,
            self.n_labels,
            observations.offsets,
            np.ones(n_sequences),
            np.full(n, -1, dtype=np.int32),
            *_csr(self._unigram.of(observations.unigram_hashes)),
            self._unigram.ptr,
            self._unigram.places,
            self._unigram.values,
            context,
            psi,
            shift,
            alpha,
            backward,
            marginals,
            np.zeros(n_sequences),
            np.empty(self.padded),
        )
        return np.ascontiguousarray(marginals[:, : self.n_labels])

    def _contexts(self, observations: Observations) -> tuple[Ints, Longs, Ints]:
        """Number the sets of bigram rows that occur: [N] int32 and their rows as CSR."""
        rows = self._bigram.of(observations.bigram_hashes)
        representatives, context = distinct_rows(rows)
        if rows.shape[1] == 0:
            return context, np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int32)
        return context, *_csr(rows[representatives])

    def _pair_scores(self, indptr: Longs, indices: Ints) -> Floats:
        """Scores of label pairs of contexts: [C, Y + 1, Yp]."""
        from .kernels.scoring import pair_scores

        bigram = self._bigram
        pairs = np.empty((len(indptr) - 1, self.n_labels + 1, self.padded))
        pair_scores(indptr, indices, bigram.ptr, bigram.places, bigram.values, pairs)
        return pairs
