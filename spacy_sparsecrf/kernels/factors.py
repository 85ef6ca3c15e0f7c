"""Gradients from stored factors of each sequence."""

from .layout import Factors, Floats, Grouped, Ints, Tables
from .numba_support import kernel
from .sequence import scatter
from .sgd import collect_blocks


@kernel
def scatter_all(grouped: Grouped, residuals: Factors, sums: Floats) -> None:
    """Add the gradient of all sequences, by their residuals, to `sums` [K]."""
    offsets, seq_ptr = grouped.tables.sequences.offsets, grouped.groups.seq_ptr
    for s in range(len(seq_ptr) - 1):
        nodes = residuals.nodes[offsets[s] : offsets[s + 1]]
        scatter(s, grouped, Factors(nodes, residuals.pairs[seq_ptr[s] : seq_ptr[s + 1]]), sums)


@kernel
def blocks_of_sequences(
    tables: Tables, members: Ints, marks: Ints, touched: Ints, ptr: Ints, rows: Ints
) -> None:
    """List the feature blocks of each sequence; see `SequenceBlocks`.

    members: [S] int64, 0, 1, 2, ...; marks, touched: [rows] int64 workspaces; ptr: [S + 1] int64,
    out; rows: [all] int32, out, or empty to count only.
    """
    for row in range(len(marks)):
        marks[row] = -1
    for s in range(len(ptr) - 1):
        n = collect_blocks(members[s : s + 1], s, tables, marks, touched)
        ptr[s + 1] = ptr[s] + n
        if len(rows) > 0:
            for j in range(n):
                rows[ptr[s] + j] = touched[j]
