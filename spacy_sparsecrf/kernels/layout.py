"""Index kernels: transposes and selections of CSR structures."""

import numpy as np

from .compiled import kernel


@kernel
def transpose(
    indptr: np.ndarray, indices: np.ndarray, col_ptr: np.ndarray, col_rows: np.ndarray
) -> None:
    """Transpose a CSR pattern by counting; rows stay ascending inside each column.

    indptr [R + 1] int64, indices [nnz] int32 column ids; col_ptr [O + 1] int64 and col_rows
    [nnz] int32, out.
    """
    n = len(col_ptr) - 1
    col_ptr[:] = 0
    for j in range(len(indices)):
        col_ptr[indices[j] + 1] += 1
    for o in range(n):
        col_ptr[o + 1] += col_ptr[o]
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            o = indices[j]
            col_rows[col_ptr[o]] = row
            col_ptr[o] += 1
    for o in range(n, 0, -1):
        col_ptr[o] = col_ptr[o - 1]
    col_ptr[0] = 0


@kernel
def select(
    indptr: np.ndarray,
    indices: np.ndarray,
    number: np.ndarray,
    new_indptr: np.ndarray,
    new_indices: np.ndarray,
) -> int:
    """Renumber a CSR pattern's columns and drop those numbered -1.

    number [O] int32; new_indptr [R + 1] int64 and new_indices [>= kept] int32, out.
    RETURNS: how many entries were kept.
    """
    kept = 0
    new_indptr[0] = 0
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            column = number[indices[j]]
            if column >= 0:
                new_indices[kept] = column
                kept += 1
        new_indptr[row + 1] = kept
    return kept


@kernel
def sum_columns(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, totals: np.ndarray
) -> None:
    """Add the weight of each row of a CSR pattern to the totals of its columns.

    weights: [R] float64; totals: [O] float64, added to.
    """
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            totals[indices[j]] += weights[row]
