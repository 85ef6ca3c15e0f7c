"""Groups of arrays, indices and loops mean in kernels what they mean in Python."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from spacy_sparsecrf.kernels.compiled import inner, kernel


class Part(NamedTuple):
    weight: float
    ids: np.ndarray


class Whole(NamedTuple):
    is_on: bool
    part: Part
    matrix: np.ndarray


@inner
def later(first: int, whole: Whole) -> Whole:
    return Whole(not whole.is_on, Part(2.0 * whole.part.weight, whole.part.ids[first:]), whole[2])


@kernel
def use_groups(whole: Whole, out: np.ndarray) -> float:
    total = 0.0
    for first in range(len(whole.part.ids)):
        is_on, (weight, ids), matrix = later(first, whole)
        out[first] = ids[0]
        matrix[0, first] += weight
        total += 100.0 * is_on + 10.0 * len(ids) + matrix.shape[1]
    return total


@pytest.mark.parametrize("is_on", [True, False])
def test_groups_are_read_made_and_returned(is_on):
    def call(run):
        matrix, out = np.arange(12.0).reshape(3, 4), np.zeros(4, np.int32)
        whole = Whole(is_on, Part(0.5, np.array([7, 1, 5], np.int32)), matrix)
        return run(whole, out), matrix.tolist(), out.tolist()

    assert call(use_groups) == call(use_groups.py_func)


def test_a_group_takes_contiguous_arrays_only():
    whole = Whole(True, Part(0.5, np.arange(12)[::2]), np.zeros((3, 4)))
    with pytest.raises(TypingError, match="Cannot determine"):
        use_groups(whole, np.zeros(6, np.int32))


@kernel
def use_indices(a: np.ndarray, i: int, j: int, out: np.ndarray) -> None:
    row, part, tail, block = a[i, 1], a[i, 1, j:], a[0, 0][:j], a[i:j]
    out[0] = a[i, 2, -1] + row[i]
    out[1], out[2], out[3] = len(part), len(tail), block.shape[0]
    for x in part:
        out[4] += x
    for k in range(len(tail)):
        out[5] += tail[k]
    for k in range(len(block)):
        row = block[k, 2]
        row[1] += 100.0
    a[i, 0, 1] = 1000.0


@pytest.mark.parametrize(("i", "j"), [*product([-2, 0, 1], [-9, -2, 0, 1, 3, 9])])
def test_indices_and_slices(i, j):
    def call(run):
        a, out = np.arange(24.0).reshape(2, 3, 4), np.zeros(6)
        run(a, i, j, out)
        return a.tolist(), out.tolist()

    assert call(use_indices) == call(use_indices.py_func)


@kernel
def count(start: int, stop: int, step: int, out: np.ndarray) -> int:
    n = 0
    for i in range(start, stop, step):
        out[n] = i
        n += 1
    return n


def test_ranges():
    found = np.zeros(20, np.int64)
    for numbers in product([-3, 0, 2], [-4, 0, 2, 5], [-3, -1, 1, 2]):
        assert found[: count(*numbers, found)].tolist() == list(range(*numbers))
