"""Sets of labels, as bits: which labels a token may have.

A set is W = ceil(Y / 64) words, uint64; label y is bit y % 64 of word y // 64. A set without labels
makes no sense, so that no bits stand for all labels: a token that is not restricted.
"""

import numpy as np

from .compiled import inner


@inner
def is_restricted(words: np.ndarray) -> bool:
    """Whether a set is not that of all labels. words: [W] uint64."""
    bits = np.uint64(0)
    for word in words:
        bits |= word
    return bool(bits != np.uint64(0))


@inner
def has_label(words: np.ndarray, label: int) -> bool:
    """Whether a label is in a set that has bits. words: [W] uint64."""
    bit = words[label >> 6] >> np.uint64(label & 63)
    return bool(bit & np.uint64(1))


@inner
def level(scores: np.ndarray, n_labels: int, words: np.ndarray) -> None:
    """Give labels outside a set the score of one inside, so that they do not count as largest.

    scores: [>= n_labels], in and out; words: [W] uint64, with bits.
    """
    inside = 0
    while not has_label(words, inside):
        inside += 1
    for y in range(n_labels):
        if not has_label(words, y):
            scores[y] = scores[inside]
