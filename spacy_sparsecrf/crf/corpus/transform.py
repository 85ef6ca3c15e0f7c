"""Functions that return a changed corpus.

The gradient of a weight is expected minus observed counts. Both counts are between zero and the
total weight W(o) of the tokens with its feature: |dL/dw| <= W(o). If W(o) <= l1, the weight is 0 at
every minimum; see `without_idle`.
"""

from dataclasses import replace

import numpy as np

from ..kernels.layout import Csr
from .encoded import MISSING, EncodedCorpus
from .numbering import Floats, Ints, Longs, distinct_rows, positions
from .ragged import row_numbers


def weighted(corpus: EncodedCorpus, label_weights: Floats) -> EncodedCorpus:
    """Multiply the weight of each sequence by the mean of the weights of its gold labels.

    The loss is then sum_i w_i m_i (-log p(y_i given x_i)), m_i = (1 / n_i) sum_t c(y_t), c being
    label_weights, over the n_i tokens of sequence i whose labels are not missing: still a weighted
    likelihood, as if sequence i occurred w_i m_i times. For a token with several possible labels, c
    is their mean. Sequences without any gold label get weight 0.

    corpus: if each token is a separate sequence, m_i is the weight of its label; label_weights:
    [Y] float64, >= 0.
    """
    n = len(label_weights)
    sets = corpus.sets.reshape(-1, n)
    number, label = np.nonzero(sets)
    means = np.bincount(number, label_weights[label], minlength=len(sets)) / sets.sum(axis=1)
    # Labels are indices here: -1 for missing labels, -2 for the first set.
    by_label = np.concatenate((label_weights, means[::-1], [0.0]))
    is_labelled, size = corpus.labels != MISSING, corpus.n_sequences
    sequence = row_numbers(corpus.offsets)[is_labelled]
    sums = np.bincount(sequence, by_label[corpus.labels[is_labelled]], minlength=size)
    counts = np.maximum(np.bincount(sequence, minlength=size), 1)
    return replace(corpus, weights=corpus.weights * np.divide(sums, counts))


def sliced(corpus: EncodedCorpus, first: int, last: int) -> EncodedCorpus:
    """Return the sequences first:last of a corpus."""
    begin, end = corpus.offsets[first], corpus.offsets[last]
    indptr = corpus.uni_indptr[begin : end + 1]
    return replace(
        corpus,
        offsets=corpus.offsets[first : last + 1] - begin,
        labels=corpus.labels[begin:end],
        weights=corpus.weights[first:last],
        uni_indptr=indptr - indptr[0],
        uni_indices=corpus.uni_indices[indptr[0] : indptr[-1]],
        context=corpus.context[begin:end],
    )


def weights_of_features(corpus: EncodedCorpus) -> tuple[Floats, Floats]:
    """Return the total weight of the labelled tokens of each unigram and bigram feature."""
    from ..kernels.indexing import sum_columns

    unigram, bigram = np.zeros(len(corpus.unigram_keys)), np.zeros(len(corpus.bigram_keys))
    by_context = np.zeros(len(corpus.ctx_indptr) - 1)
    is_labelled, _ = corpus.with_labels()
    weights, lengths = np.where(is_labelled, corpus.weights, 0.0), np.diff(corpus.offsets)
    by_token = np.repeat(weights, lengths)
    sum_columns(corpus.uni_indptr, corpus.uni_indices, by_token, unigram)
    sum_columns(np.arange(corpus.n_tokens + 1), corpus.context, by_token, by_context)
    sum_columns(corpus.ctx_indptr, corpus.ctx_indices, by_context, bigram)
    return unigram, bigram


def reduced(corpus: EncodedCorpus, kept: Longs) -> EncodedCorpus:
    """Return the corpus with some of its features; contexts that become equal are not merged.

    kept: [n] int64, features, ascending, bigram after unigram features.
    """
    split = np.searchsorted(kept, len(corpus.unigram_keys))
    unigram, bigram = kept[:split], kept[split:] - len(corpus.unigram_keys)
    number = positions(unigram, len(corpus.unigram_keys))
    values = number[corpus.value_features]
    return replace(
        _renumbered(corpus, number, positions(bigram, len(corpus.bigram_keys))),
        unigram_keys=corpus.unigram_keys[unigram],
        families=corpus.families[unigram[unigram < len(corpus.families)]],
        bigram_keys=corpus.bigram_keys[bigram],
        values=corpus.values if (values >= 0).all() else corpus.values[:, values >= 0],
        value_features=values[values >= 0].astype(np.int64),
    )


def without_idle(corpus: EncodedCorpus, l1: float, initial: Longs) -> EncodedCorpus:
    """Remove the features whose weights are 0 at every minimum from the tokens.

    The other features keep their numbers. initial: [n] int64, features with initial weights, which
    are kept; bigram after unigram features.
    """
    is_active = np.concatenate(weights_of_features(corpus)) > l1
    # Counts do not bound the gradients of real values.
    is_active[corpus.value_features] = True
    is_active[initial] = True
    if is_active.all():
        return corpus
    split, n = len(corpus.unigram_keys), len(corpus.bigram_keys)
    number = np.where(is_active, np.append(np.arange(split), np.arange(n)), -1).astype(np.int32)
    return _renumbered(corpus, number[:split], number[split:])


def _renumbered(corpus: EncodedCorpus, unigram: Ints, bigram: Ints) -> EncodedCorpus:
    """Renumber the features of tokens and contexts; -1: remove. unigram, bigram: [O] int32."""
    from ..kernels.indexing import select

    features = select(Csr(corpus.uni_indptr, corpus.uni_indices), unigram)
    of_contexts = select(Csr(corpus.ctx_indptr, corpus.ctx_indices), bigram)
    return replace(
        corpus,
        uni_indptr=features.indptr,
        uni_indices=features.indices,
        ctx_indptr=of_contexts.indptr,
        ctx_indices=of_contexts.indices,
    )


def with_distinct_contexts(corpus: EncodedCorpus) -> EncodedCorpus:
    """Merge the contexts of a corpus that have the same features."""
    from ..kernels.indexing import take

    indptr, indices = corpus.ctx_indptr, corpus.ctx_indices
    # Rows of indices plus 1, padded with 0.
    lengths = np.diff(indptr)
    padded = np.zeros((len(lengths), int(lengths.max(initial=0))), np.int32)
    row = row_numbers(indptr)
    padded[row, np.arange(len(indices)) - indptr[row]] = indices + 1
    representatives, context = distinct_rows(padded)
    features = take(Csr(indptr, indices), representatives)
    return replace(
        corpus,
        context=context[corpus.context],
        ctx_indptr=features.indptr,
        ctx_indices=features.indices,
    )
