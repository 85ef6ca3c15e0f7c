"""Weights of sequences from weights of labels."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .encoded import MISSING, EncodedCorpus

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
    factors = [np.zeros(0)]
    for first, last in corpus.store.runs(corpus.offsets):
        factors.append(_means(corpus, first, last, by_label))
        corpus.store.release()
    return replace(corpus, weights=corpus.weights * np.concatenate(factors))


def _means(corpus: EncodedCorpus, first: int, last: int, by_label: Floats) -> Floats:
    """The mean weight of the gold labels of each of the sequences first:last, 0 without any."""
    offsets, n = corpus.offsets[first : last + 1], last - first
    labels = corpus.labels[offsets[0] : offsets[-1]]
    known = labels != MISSING
    sequence = np.repeat(np.arange(n), np.diff(offsets))[known]
    sums = np.bincount(sequence, by_label[labels[known]], minlength=n)
    means: Floats = sums / np.maximum(np.bincount(sequence, minlength=n), 1)
    return means
