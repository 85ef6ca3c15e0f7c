"""Numbering of entries: the distinct pairs that the weights of a context's rows are of."""

import numpy as np

from .compiled import inner, kernel
from .memory import fill


@inner
def _low_bit(word: np.uint64) -> int:
    """Position of the lowest bit that is set; word: not 0."""
    position = 0
    for shift in (32, 16, 8, 4, 2, 1):
        low = word & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
        if low == np.uint64(0):
            word >>= np.uint64(shift)
            position += shift
    return position


@kernel
def count_places(
    row_ptr: np.ndarray,
    rows: np.ndarray,
    weight_ptr: np.ndarray,
    places: np.ndarray,
    seen: np.ndarray,
    n_places: np.ndarray,
    n_weights: np.ndarray,
) -> None:
    """Count the distinct places, and the weights, of the rows of each context.

    row_ptr [C + 1] and rows: CSR, rows of a context; weight_ptr: [R + 1] int64, weights of a row;
    places: [K] uint32, of a weight; seen: [> largest place] int32, -1, workspace;
    n_places, n_weights: [C] int64, out.
    """
    for c in range(len(row_ptr) - 1):
        n_places[c], n_weights[c] = 0, 0
        for j in range(row_ptr[c], row_ptr[c + 1]):
            begin, end = weight_ptr[rows[j]], weight_ptr[rows[j] + 1]
            n_weights[c] += end - begin
            for k in range(begin, end):
                if seen[places[k]] != c:
                    seen[places[k]] = c
                    n_places[c] += 1


@kernel
def list_places(
    row_ptr: np.ndarray,
    rows: np.ndarray,
    weight_ptr: np.ndarray,
    places: np.ndarray,
    ent_ptr: np.ndarray,
    bits: np.ndarray,
    entry_of: np.ndarray,
    n_labels: int,
    padded: int,
    ent_place: np.ndarray,
    ent_start: np.ndarray,
    ent_context: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    entry_ptr: np.ndarray,
    entry_weights: np.ndarray,
) -> None:
    """List the distinct places of each context, ascending, and the weights that each has.

    row_ptr, rows, weight_ptr, places: see `count_places`; ent_ptr: [C + 1] int64, entries of a
    context; bits: [W] uint64, 0, one for each place, and entry_of: [64 W] int64, workspaces;
    padded: Yp, a place being y' * Yp + y; ent_*: out, see `loss.contexts.Contexts`; entry_ptr
    [E + 1] int64 and entry_weights int32: CSR, out, weights of an entry, by row.
    """
    one = np.uint64(1)
    fill(entry_ptr, 0, len(entry_ptr), 0)
    for c in range(len(row_ptr) - 1):
        for j in range(row_ptr[c], row_ptr[c + 1]):
            for k in range(weight_ptr[rows[j]], weight_ptr[rows[j] + 1]):
                place = np.int64(places[k])
                bits[place >> 6] |= one << np.uint64(place & 63)
        e = int(ent_ptr[c])
        ent_start[c] = e
        if e == ent_ptr[c + 1]:
            continue
        for w in range(len(bits)):
            word = bits[w]
            while word != np.uint64(0):
                lowest = (w << 6) + _low_bit(word)
                ent_place[e], ent_context[e] = lowest, c
                ent_previous[e], ent_label[e] = lowest // padded, lowest % padded
                if lowest < n_labels * padded:
                    ent_start[c] = e + 1
                entry_of[lowest] = e
                e += 1
                word &= word - one
            bits[w] = np.uint64(0)
        for j in range(row_ptr[c], row_ptr[c + 1]):
            for k in range(weight_ptr[rows[j]], weight_ptr[rows[j] + 1]):
                entry_ptr[entry_of[places[k]] + 1] += 1
        begin = ent_ptr[c]
        for e in range(begin, ent_ptr[c + 1]):
            entry_ptr[e + 1] += entry_ptr[e]
        # `entry_of` becomes where the next weight of the place goes.
        for e in range(begin, ent_ptr[c + 1]):
            entry_of[ent_place[e]] = entry_ptr[e]
        for j in range(row_ptr[c], row_ptr[c + 1]):
            for k in range(weight_ptr[rows[j]], weight_ptr[rows[j] + 1]):
                entry_weights[entry_of[places[k]]] = k
                entry_of[places[k]] += 1
