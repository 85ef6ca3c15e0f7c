"""Gold labels as sets of labels, and the sets of labels that tokens may have, as bits.

A set has a number: 0 is that of all labels, 1 + y that of label y alone, and 1 + Y + q is set q of
the corpus.
"""

import numpy as np
from numpy.typing import NDArray

from ..corpus import MISSING

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]

_WORD = 64  # labels


def n_words(n_labels: int) -> int:
    """How many words the bits of a set take."""
    return -(-n_labels // _WORD)


def set_numbers(labels: Ints, n_labels: int) -> Longs:
    """Number [N] of the set of each token's gold labels. labels: [N], see `EncodedCorpus`."""
    wide = labels.astype(np.int64)
    return np.where(wide >= MISSING, wide + 1, n_labels - 1 - wide)


def set_table(sets: Mask, n_labels: int) -> Mask:
    """The sets by number, [1 + Y + Q, Y]. sets: [Q, Y], of the corpus."""
    everything = np.ones((1, n_labels), np.bool_)
    own = sets.reshape(-1, n_labels)
    return np.concatenate((everything, np.eye(n_labels, dtype=np.bool_), own))


def allowed_labels(
    numbers: Longs, table: Mask, begins: Mask, ends: Mask, legal: Mask | None
) -> Words:
    """The labels that tokens may have: [N, W] uint64, see `kernels.sets`.

    numbers: [N], of sets; table: of `set_table`; begins, ends: [N], tokens that begin or end a
    sequence; legal: see `build_lattice`; here it restricts only those.
    """
    if legal is None:
        return np.take(_bits(table), numbers, axis=0)
    first, last = legal[-1, :-1], legal[:-1, -1]
    variants = (table, table & first, table & last, table & first & last)
    variant = begins + 2 * ends.astype(np.int64)
    return np.take(_bits(np.concatenate(variants)), numbers + len(table) * variant, axis=0)


def _bits(table: Mask) -> Words:
    """Sets [R, Y] as words [R, W] uint64; that of all labels has no bits."""
    width = n_words(table.shape[1]) * _WORD
    padded = np.zeros((len(table), width), np.bool_)
    padded[:, : table.shape[1]] = table & ~table.all(axis=1, keepdims=True)
    packed = np.packbits(padded, axis=1, bitorder="little")
    words: Words = packed.view("<u8").astype(np.uint64)
    return words
