"""Per-position models as chains of one token: maximum entropy and maximum entropy Markov models.

maxent: p(y | x) = prod_t p(y_t | x, t);    memm: p(y | x) = prod_t p(y_t | y_{t-1}, x, t)
p(y | y', x, t) = psi_t(y', y) / sum_i psi_t(y', i)      (Goodman 2002, equation 1, at each token)

In training y' is the gold label, so that every token is a separate sequence. A bigram feature o of
an MEMM is the *unigram* feature "o, and the previous label is y'". With number U + o P + y', its
weights have the same coordinates as in the chain loss (see `chain`): `ChainLoss` on this corpus is
the loss of the per-position model, and coordinates keep their meaning.
"""

import warnings
from dataclasses import replace

import numpy as np

from ...errors import Errors, SparseCRFError, SparseCRFWarning, Warnings
from ..corpus.encoded import MISSING, NO_VALUES, EncodedCorpus
from ..corpus.numbering import Floats, Hashes, Ints, Longs
from ..kernels.indexing import take
from ..kernels.layout import Csr


def warn_of_pairs(corpus: EncodedCorpus) -> None:
    """Warn if a corpus has bigram features, which maximum entropy does not support."""
    if len(corpus.bigram_keys):
        message = Warnings.SCW340.format(n=len(corpus.bigram_keys))
        warnings.warn(message, SparseCRFWarning, stacklevel=3)


def local_corpus(corpus: EncodedCorpus, n_labels: int, pairs: bool) -> EncodedCorpus:
    """Cut a corpus into its tokens, each with the weight of its sequence.

    n_labels: Y; pairs: whether p depends on the previous label (MEMM); otherwise bigram features
    are dropped (maxent). Tokens without a gold label are left out; with `pairs`, also tokens whose
    previous token has no gold label or several possible labels.
    RETURNS: a corpus without bigram features. Its unigram features are the unigram features of the
        corpus, then, with `pairs`, its bigram features with each previous label, not by frequency.
    RAISES: SparseCRFError if there are too many features to number.
    """
    lengths = np.diff(corpus.offsets)
    previous = np.roll(corpus.labels, 1)
    previous[corpus.offsets[:-1][lengths > 0]] = n_labels
    usable = corpus.labels != MISSING
    if pairs:
        usable &= previous >= 0
    tokens = np.flatnonzero(usable)
    features = Csr(corpus.uni_indptr, corpus.uni_indices)
    if len(tokens) < corpus.n_tokens:
        features = take(features, tokens)
    keys = corpus.unigram_keys
    if pairs:
        n_previous = n_labels + int(corpus.start_label)
        n_features = len(keys) + len(corpus.bigram_keys) * n_previous
        if n_features > np.iinfo(np.int32).max:
            raise SparseCRFError(Errors.SC301.format(n=n_features))
        features = _joined(features, _pair_features(corpus, tokens, previous[tokens], n_previous))
        keys = np.concatenate((keys, np.repeat(corpus.bigram_keys, n_previous)))
    weights = np.repeat(corpus.weights, lengths)[tokens]
    of_tokens = tokens_as_corpus(
        corpus, labels=corpus.labels[tokens], weights=weights, features=features, keys=keys
    )
    if not len(corpus.value_features):
        return of_tokens
    # Avoid a copy if no token is left out: a matrix of vectors is large.
    values = corpus.values if len(tokens) == corpus.n_tokens else corpus.values[tokens]
    return replace(of_tokens, values=values, value_features=corpus.value_features)


def tokens_as_corpus(
    corpus: EncodedCorpus, *, labels: Ints, weights: Floats, features: Csr, keys: Hashes
) -> EncodedCorpus:
    """Return a corpus of n sequences of one token, without bigram features and real values.

    corpus: has the other fields; labels, weights: [n]; features: features of the tokens;
    keys: [O], of features.
    """
    n = len(labels)
    return replace(
        corpus,
        offsets=np.arange(n + 1, dtype=np.int64),
        labels=labels,
        weights=weights,
        uni_indptr=features.indptr,
        uni_indices=features.indices,
        context=np.zeros(n, dtype=np.int32),
        ctx_indptr=np.zeros(2, dtype=np.int64),
        ctx_indices=np.empty(0, dtype=np.int32),
        unigram_keys=keys,
        bigram_keys=np.empty(0, dtype=np.uint64),
        values=NO_VALUES,
        value_features=np.empty(0, dtype=np.int64),
    )


def _pair_features(corpus: EncodedCorpus, tokens: Longs, previous: Ints, n_previous: int) -> Csr:
    """Return bigram features of tokens, conjoined with previous gold labels, as unigram features.

    previous: [n]; without start pairs, a first token has no such features.
    """
    contexts = Csr(corpus.ctx_indptr, corpus.ctx_indices)
    features = take(contexts, corpus.context[tokens].astype(np.int64))
    label = np.repeat(previous, np.diff(features.indptr))
    number = features.indices.astype(np.int64) * n_previous + label + len(corpus.unigram_keys)
    return Csr(features.indptr, number.astype(np.int32))


def _joined(left: Csr, right: Csr) -> Csr:
    """Concatenate two tables of the same length row by row."""
    rows = np.arange(len(left.indptr) - 1)
    row = np.concatenate([np.repeat(rows, np.diff(table.indptr)) for table in (left, right)])
    indices = np.concatenate((left.indices, right.indices))
    return Csr(left.indptr + right.indptr, indices[np.argsort(row, kind="stable")])
