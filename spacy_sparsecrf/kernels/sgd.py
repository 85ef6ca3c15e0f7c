"""Passes over examples: stochastic descent, one at a time, and sums of gradients of some."""

from .compiled import inner, kernel
from .descent import Paid, update_example
from .example import infer_example
from .layout import ContextRows, Floats, Ints, Sequences, Tables, Unigrams, Visit


@inner
def forget(visit: Visit) -> None:
    """Take all potentials for out of date, as weights have changed since."""
    stamp = visit.potentials.stamp
    for i in range(len(stamp)):
        stamp[i] = -1


@kernel
def sgd_pass(
    order: Ints,
    tables: Tables,
    unigram: Paid,
    bigram: Paid,
    l1_rate: float,
    l2_rate: float,
    eta: float,
    decay: float,
    visit: Visit,
) -> float:
    """One pass of stochastic gradient descent over examples, in the given order.

    order: [n] int64 examples; unigram, bigram: see `update_example`, in and out, with one `due`;
    l1_rate, l2_rate: penalties per example (rho / N); eta: step of the first example, multiplied by
    `decay` after each; 0 only measures.
    RETURNS: the weighted sum of the losses of the examples, each before its update.
    """
    due, loss = unigram.due, 0.0
    forget(visit)
    for number in range(len(order)):
        s = order[number]
        weight = tables.sequences.weights[s]
        loss += weight * infer_example(s, number, tables, unigram.theta, bigram.theta, visit)
        if eta == 0.0:
            continue
        # An example's share of the penalty does not depend on its weight.
        due[0] += eta * l1_rate
        due[1] += eta * l2_rate
        update_example(s, tables, visit, eta * weight, unigram, bigram)
        eta *= decay
    return loss


@inner
def add_gradient(
    s: int, number: int, tables: Tables, theta: Floats, unigram: Paid, bigram: Paid, visit: Visit
) -> float:
    """Add the weighted gradient of example s at theta [K] to that of others.

    That is to descend from it, with a step of minus the example's weight and no penalty. number:
    see `infer_example`; unigram, bigram: the gradients of each kind of weights, all else zeros.
    RETURNS: the weighted loss.
    """
    weight, split = tables.sequences.weights[s], tables.unigrams.split
    loss = infer_example(s, number, tables, theta[:split], theta[split:], visit)
    update_example(s, tables, visit, -weight, unigram, bigram)
    return float(weight * loss)


@kernel
def add_gradients(
    members: Ints,
    number: int,
    tables: Tables,
    theta: Floats,
    unigram: Paid,
    bigram: Paid,
    visit: Visit,
) -> float:
    """Add the weighted gradients of examples `members`, at the same weights, to gradients.

    number: one of its own for each theta; the rest: see `add_gradient`.
    RETURNS: the weighted sum of the losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(s, number, tables, theta, unigram, bigram, visit)
    return loss


@inner
def _collect(rows: Ints, first: int, number: int, marks: Ints, touched: Ints, n: int) -> int:
    """Append first + row to touched[:n] for rows that are not marked with this number.

    RETURNS: the new n.
    """
    for row in rows:
        if marks[first + row] != number:
            marks[first + row] = number
            touched[n] = first + row
            n += 1
    return n


@inner
def collect_rows(
    members: Ints,
    number: int,
    sequences: Sequences,
    unigrams: Unigrams,
    context_rows: ContextRows,
    marks: Ints,
    touched: Ints,
) -> int:
    """List the rows that sequences have: unigram rows, then bigram rows.

    members: [n] sequences; marks: [rows] int64, in and out, the number at which a row was listed
    last; touched: [rows] int64, out. RETURNS: how many they are.
    """
    n, n_unigram = 0, len(unigrams.row_ptr) - 1
    for s in members:
        for t in range(sequences.offsets[s], sequences.offsets[s + 1]):
            rows = unigrams.tok_rows[unigrams.tok_ptr[t] : unigrams.tok_ptr[t + 1]]
            n = _collect(rows, 0, number, marks, touched, n)
            c = context_rows.context[t]
            rows = context_rows.rows[context_rows.ptr[c] : context_rows.ptr[c + 1]]
            n = _collect(rows, n_unigram, number, marks, touched, n)
    return n
