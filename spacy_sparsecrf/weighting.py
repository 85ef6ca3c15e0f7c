"""Weights of sequences from weights of labels."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .corpus import MISSING, EncodedCorpus

Floats = NDArray[np.float64]


def weighted(corpus: EncodedCorpus, label_weights: Floats) -> EncodedCorpus:
    """Multiply the weight of each sequence by the mean of the weights of its gold labels.

    The loss is then sum_i w_i m_i (-log p(y_i given x_i)), m_i = (1 / n_i) sum_t c(y_t), c being
    label_weights, over the n_i tokens of sequence i whose labels are not missing: still a weighted
    likelihood, as if sequence i were there w_i m_i times. Of a token that may have several labels,
    c is the mean of theirs. Sequences without any gold label, which do not count, get weight 0.

    corpus: where each token is a sequence of its own, its label's weight is its weight;
    label_weights: [Y] float64, >= 0.
    """
    n = len(label_weights)
    means = corpus.sets.reshape(-1, n) @ label_weights / corpus.sets.reshape(-1, n).sum(axis=1)
    # Labels are positions here: -1 is that of missing ones, -2 that of the first set.
    by_label = np.concatenate((label_weights, means[::-1], [0.0]))
    sequence = np.repeat(np.arange(corpus.n_sequences), np.diff(corpus.offsets))
    known = corpus.labels != MISSING
    counts = np.bincount(sequence[known], minlength=corpus.n_sequences)
    own = by_label[corpus.labels[known]]
    sums = np.bincount(sequence[known], own, minlength=corpus.n_sequences)
    factor = sums / np.maximum(counts, 1)
    return replace(corpus, weights=corpus.weights * factor)
