"""Products of rows and matrices equal numpy's, for all label counts and dtypes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spacy_sparsecrf.crf.kernels.layout import Floats
from spacy_sparsecrf.crf.kernels.numba_support import kernel
from spacy_sparsecrf.crf.kernels.products import (
    add_outer_products,
    add_weights,
    advance,
    advance_two,
    retreat,
    retreat_two,
)

from ..support.kernel_functions import compiled

# Fewer than, as many as, and more than the rows of a block; one to seven blocks of columns.
LABELS = [1, 2, 3, 4, 5, 7, 8, 9, 14, 17, 22, 24, 31, 37, 49, 51]
ROOT = Path(__file__).parents[2]
# Guard value after the part that may be written.
UNTOUCHED = -7.0


@kernel
def multiply(kind: int, a: Floats, b: Floats, matrix: Floats, n: int, out: Floats) -> None:
    """Write the products of two rows, of the type with this number, to the rows of `out`."""
    if kind == 0:
        advance(a, matrix, n, out[0])
        advance(b, matrix, n, out[1])
    elif kind == 1:
        advance_two(a, b, matrix, n, out[0], out[1])
    elif kind == 2:
        retreat(matrix, a, n, out[0])
        retreat(matrix, b, n, out[1])
    else:
        retreat_two(matrix, a, b, n, out[0], out[1])


def padded_rows(rng: np.random.Generator, n_rows: int, n_labels: int, dtype: str) -> Floats:
    """Return random rows with zero padding."""
    rows = np.zeros((n_rows, -(-n_labels // 8) * 8), dtype)
    rows[:, :n_labels] = rng.normal(size=(n_rows, n_labels))
    return rows


@pytest.mark.parametrize("kind", range(4), ids=["forward", "two", "backward", "two back"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_with_a_matrix(kind, dtype):
    for n_labels in LABELS:
        rng = np.random.default_rng(n_labels)
        given = padded_rows(rng, 2, n_labels, dtype)
        matrix = padded_rows(rng, n_labels + 1, n_labels, dtype)
        out = np.full_like(given, UNTOUCHED)
        multiply(kind, given[0], given[1], matrix, n_labels, out)
        square = matrix[:n_labels, :n_labels].astype(np.float64)
        wanted = given[:, :n_labels] @ (square if kind < 2 else square.T)
        tolerance = n_labels * np.finfo(dtype).eps * 8
        np.testing.assert_allclose(out[:, :n_labels], wanted, atol=tolerance)
        assert (out[:, n_labels:] == (0.0 if kind < 2 else UNTOUCHED)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_tokens", [0, 1, 15, 16, 17, 70])
def test_sums_of_outer_products(n_tokens, dtype):
    for n_labels in LABELS:
        rng = np.random.default_rng(n_labels)
        alpha, backward = (padded_rows(rng, 40, n_labels, dtype) for _ in range(2))
        tokens = rng.integers(1, 40, n_tokens).astype(np.int32)
        total = np.full((n_labels + 1, alpha.shape[1]), UNTOUCHED)
        compiled(add_outer_products)(tokens, n_labels, alpha, backward, total)
        before, here = alpha[tokens - 1].astype(np.float64), backward[tokens].astype(np.float64)
        wanted = before[:, :n_labels].T @ here
        np.testing.assert_allclose(total[:n_labels], UNTOUCHED + wanted, atol=1e-12)
        assert (total[n_labels] == UNTOUCHED).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_weights_are_added_to_scores_wherever_they_begin(dtype):
    for n_labels in LABELS:
        rng = np.random.default_rng(n_labels)
        theta, before = rng.normal(size=n_labels + 9), padded_rows(rng, 1, n_labels, dtype)[0]
        # The last rows end with the array, so that nothing after it may be read.
        for begin in range(10):
            scores = before.copy()
            compiled(add_weights)(theta, begin, n_labels, scores)
            wanted = (before[:n_labels] + theta[begin : begin + n_labels]).astype(dtype)
            np.testing.assert_array_equal(scores[:n_labels], wanted)


CALLS = """
import numba
from tests.kernels import test_products as tests
assert numba.config.DISABLE_JIT and not hasattr(tests.multiply, "signatures")
for kind in range(4):
    tests.test_products_with_a_matrix(kind, "float64")
tests.test_sums_of_outer_products(17, "float32")
"""


def test_products_are_the_same_where_numba_is_disabled():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", CALLS], check=True, env=environment, cwd=ROOT)
