"""The coordinates of weights that something in the gold labels speaks for."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..kernels.values import value_supports
from .lattice import Csr, Lattice, Longs, Mask, concatenated_ranges, set_numbers, set_table


def observed_unigrams(lattice: Lattice, n_labels: int, merged: int) -> Longs:
    """Coordinates test * Y + y of tests and the gold labels of their tokens, ascending.

    A token that may have several labels counts for each; one whose label is missing for none.
    merged: see `Limits`.
    """
    members = _members(set_table(lattice.sets, n_labels))

    def seen(first: int, last: int) -> Longs:
        """Tests with the sets of tokens."""
        numbers = set_numbers(lattice.gold[first:last], n_labels)
        indptr = lattice.tests.indptr[first : last + 1]
        keys = lattice.tests.indices[indptr[0] : indptr[-1]].astype(np.int64) * len(members)
        keys += np.repeat(numbers, np.diff(indptr))
        return keys

    test, number = np.divmod(_distinct_over(lattice, seen, merged), len(members))
    test, number = test[number > 0], number[number > 0]
    row, label = _expanded(number, members)
    return distinct(test[row] * n_labels + label)


def observed_values(lattice: Lattice, n_labels: int) -> Longs:
    """Coordinates test * Y + y of real values that are not 0 at a token with that gold label.

    Ascending; labels as in `observed_unigrams`.
    """
    tests = lattice.value_tests
    if not len(tests):
        return np.empty(0, np.int64)
    table = set_table(lattice.sets, n_labels)
    found = np.zeros((len(table), len(tests)), np.bool_)
    value_supports(lattice.values, lattice.value_rows, set_numbers(lattice.gold, n_labels), found)
    # A missing label speaks for none.
    seen = found[1:].T.astype(np.float32) @ table[1:].astype(np.float32) > 0.0
    value, label = np.nonzero(seen)
    return tests[value] * n_labels + label


def observed_bigrams(lattice: Lattice, n_labels: int, merged: int) -> Longs:
    """Coordinates (test * P + y') * Y + y of tests and the pairs of their tokens, ascending.

    A pair is of two tokens whose labels are not missing, or of the start label and the first.
    merged: see `Limits`.
    """
    table = set_table(lattice.sets, n_labels)
    members = _members(table, start=n_labels)

    def seen(first: int, last: int) -> Longs:
        """Contexts with the sets of the tokens before, and of tokens."""
        numbers = set_numbers(lattice.gold[max(first - 1, 0) : last], n_labels)
        # What is before the first token of all does not matter: it begins a sequence.
        before, numbers = np.append(0, numbers)[:-1][-(last - first) :], numbers[-(last - first) :]
        before = np.where(lattice.begins[first:last], len(table), before)
        known = (numbers > 0) & (before > 0)
        keys = lattice.context[first:last][known].astype(np.int64) * len(members)
        pairs: Longs = (keys + before[known]) * len(members) + numbers[known]
        return pairs

    rest, number = np.divmod(_distinct_over(lattice, seen, merged), len(members))
    context, before = np.divmod(rest, len(members))
    row, label = _expanded(number, members)
    context, before = context[row], before[row]
    row, previous = _expanded(before, members)
    context, pair = context[row], previous * n_labels + label[row]
    tests = lattice.ctx_tests.take(context).indices.astype(np.int64)
    pair = np.repeat(pair, np.diff(lattice.ctx_tests.indptr)[context])
    return distinct(tests * n_labels * lattice.n_previous + pair)


def _members(table: Mask, start: int | None = None) -> Csr:
    """The labels of each set of a table [R, Y]; with `start`, a last set of that label alone."""
    labels = np.nonzero(table)[1]
    sizes = table.sum(axis=1)
    if start is not None:
        labels, sizes = np.append(labels, start), np.append(sizes, 1)
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Csr(indptr, labels.astype(np.int32))


def _expanded(numbers: Longs, members: Csr) -> tuple[Longs, Longs]:
    """For each label of each set: its place in numbers [n], and the label."""
    lengths = np.diff(members.indptr)[numbers]
    entries = concatenated_ranges(members.indptr[:-1][numbers], lengths)
    row = np.repeat(np.arange(len(numbers)), lengths)
    return row, members.indices[entries].astype(np.int64)


def _distinct_over(lattice: Lattice, keys: Callable[[int, int], Longs], merged: int) -> Longs:
    """The distinct ones of keys of all tokens, ascending; keys: of tokens first:last."""
    found: list[Longs] = []
    for first, last in lattice.store.ranges(lattice.n_tokens):
        found.append(distinct(keys(first, last)))
        lattice.store.release()
        # So that each is merged a few times only, and memory goes with what is distinct.
        if sum(map(len, found[1:])) > max(len(found[0]), merged):
            found = [distinct(np.concatenate(found))]
    return found[0] if len(found) == 1 else distinct(np.concatenate(found))


def distinct(coordinates: Longs) -> Longs:
    """Sort, and drop repetitions: faster than by a hash table, as `np.unique` does it."""
    # A stable sort merges runs that are sorted.
    ordered = np.sort(coordinates, kind="stable")
    first: NDArray[np.bool_] = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
