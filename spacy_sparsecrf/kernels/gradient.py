"""The gradients of examples, and the rows of weights they are on."""

import numpy as np

from .compiled import inner, kernel
from .example import infer_example
from .groups import Chains, ContextRows, PairSums, PairTables, Potentials, TokenRows, Vectors
from .sgd import update_example


@inner
def add_gradient(
    s: int,
    visit: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    theta: np.ndarray,
    gradient: np.ndarray,
    nothing: np.ndarray,
    no_dues: np.ndarray,
    potentials: Potentials,
    vectors: Vectors,
    space: PairSums,
) -> float:
    """Add the weighted gradient of example s at theta [K] to gradient [K].

    That is to descend from it, with a step of minus the example's weight and no penalty. visit: see
    `build_potentials`; nothing: [K + 1] zeros; no_dues: [2] zeros; the rest: see `infer_example`
    and `update_example`, which leave what they do in the workspaces. RETURNS: the weighted loss.
    """
    weight = chains.weights[s]
    loss = infer_example(s, visit, chains, tests, pairs, theta, potentials, vectors)
    update_example(
        s,
        chains,
        tests,
        pairs,
        potentials,
        vectors,
        space,
        -weight,
        gradient,
        nothing,
        nothing,
        nothing,
        no_dues,
    )
    return float(weight * loss)


@kernel
def add_gradients(
    members: np.ndarray,
    visit: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    theta: np.ndarray,
    gradient: np.ndarray,
    nothing: np.ndarray,
    no_dues: np.ndarray,
    potentials: Potentials,
    vectors: Vectors,
    space: PairSums,
) -> float:
    """Add the weighted gradients of examples `members`, at the same weights, to gradient [K].

    visit: a number of its own for each theta; the rest: see `add_gradient`.
    RETURNS: the weighted sum of the losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(
            s,
            visit,
            chains,
            tests,
            pairs,
            theta,
            gradient,
            nothing,
            no_dues,
            potentials,
            vectors,
            space,
        )
    return loss


@inner
def _collect(
    rows: np.ndarray, first: int, visit: int, marks: np.ndarray, touched: np.ndarray, n: int
) -> int:
    """Append first + row to touched[:n] for rows that are not marked with this visit.

    RETURNS: the new n.
    """
    for row in rows:
        if marks[first + row] != visit:
            marks[first + row] = visit
            touched[n] = first + row
            n += 1
    return n


@inner
def collect_rows(
    sequences: np.ndarray,
    visit: int,
    offsets: np.ndarray,
    tests: TokenRows,
    rows_of: ContextRows,
    marks: np.ndarray,
    touched: np.ndarray,
) -> int:
    """List the rows that sequences have: unigram rows, then bigram rows.

    marks: [rows] int64, in and out, the visit at which a row was listed last; touched: [rows]
    int64, out. RETURNS: how many they are.
    """
    n, n_unigram = 0, len(tests.row_ptr) - 1
    tok_ptr, ctx_ptr = tests.tok_ptr, rows_of.ctx_ptr
    for s in sequences:
        for t in range(offsets[s], offsets[s + 1]):
            rows = tests.tok_rows[tok_ptr[t] : tok_ptr[t + 1]]
            n = _collect(rows, 0, visit, marks, touched, n)
            c = rows_of.context[t]
            rows = rows_of.ctx_rows[ctx_ptr[c] : ctx_ptr[c + 1]]
            n = _collect(rows, n_unigram, visit, marks, touched, n)
    return n
