"""Evidence of tokens, from the weights of their features.

The labels that a token may have are a set of W words of bits: label y is bit y % 64 of word
y // 64. An empty set cannot occur; if all bits are zero, the set has all labels.
"""

import numpy as np

from .exp import exp_relative
from .layout import Floats, Ints, Unigrams
from .numba_support import inlined
from .products import add_weights
from .simd import prefetch
from .small import fill

# Number of feature blocks ahead at which positions of weights, and weights, are prefetched.
_FAR = 24
_NEAR = 12


@inlined
def is_restricted(words: Ints) -> bool:
    """Return whether a set excludes any label. words: [W] uint64."""
    bits = np.uint64(0)
    for word in words:
        bits |= word
    return bool(bits != np.uint64(0))


@inlined
def has_label(words: Ints, label: int) -> bool:
    """Return whether a label is in a restricted set. words: [W] uint64."""
    bit = words[label >> 6] >> np.uint64(label & 63)
    return bool(bit & np.uint64(1))


@inlined
def _level(scores: Floats, n_labels: int, words: Ints) -> None:
    """Replace the scores of labels outside a set, so that the maximum is in the set."""
    inside = 0
    while not has_label(words, inside):
        inside += 1
    for y in range(n_labels):
        if not has_label(words, y):
            scores[y] = scores[inside]


@inlined
def score_token(t: int, n_labels: int, unigrams: Unigrams, theta: Floats, scores: Floats) -> None:
    """Add the weights of the features of token t: scores[y] += sum_o mu[o, y].

    theta: [K] float64, the first `split` are used; scores: [Yp], the padding becomes 0.
    """
    for j in range(unigrams.bundle_ptr[t], unigrams.bundle_ptr[t + 1]):
        row = unigrams.table[unigrams.bundles[j]]
        for y in range(len(scores)):
            scores[y] += row[y]
    add_site(t, n_labels, unigrams, theta, scores)


@inlined
def add_site(site: int, n_labels: int, unigrams: Unigrams, theta: Floats, scores: Floats) -> None:
    """Add the weights of the feature blocks of a site, without those of bundles of a token.

    site: a token or a bundle; theta, scores: see `score_token`.
    """
    rows, block_ptr, block_labels = unigrams.site_blocks, unigrams.block_ptr, unigrams.block_labels
    for j in range(unigrams.site_ptr[site], unigrams.site_ptr[site + 1]):
        if j + _FAR < len(rows):
            prefetch(block_ptr, rows[j + _FAR])
            ahead = rows[j + _NEAR]
            prefetch(block_labels, block_ptr[ahead])
            for k in range(block_ptr[ahead], block_ptr[ahead + 1], 8):
                prefetch(theta, k)
        row = rows[j]
        begin, end = block_ptr[row], block_ptr[row + 1]
        if end - begin == n_labels:
            add_weights(theta, begin, n_labels, scores)
        else:
            for k in range(begin, end):
                scores[block_labels[k]] += theta[k]
    fill(scores, n_labels, len(scores), 0.0)


@inlined
def evidence_of(scores: Floats, n_labels: int, allowed: Ints) -> float:
    """Exponentiate the scores [Yp] of a token in place, relative to their maximum.

    allowed: [W] uint64, labels that the token may have; the results of others, and the padding,
    are 0. RETURNS: the maximum, of the allowed labels.
    """
    restricted = is_restricted(allowed)
    if restricted:
        _level(scores, n_labels, allowed)
    top: float = exp_relative(scores, n_labels)
    if restricted:
        for y in range(n_labels):
            if not has_label(allowed, y):
                scores[y] = 0.0
    return top
