"""Passes of stochastic solvers, a minibatch at a time."""

from typing import NamedTuple

from .compiled import inner, kernel
from .descent import Paid
from .layout import ContextRows, Floats, Ints, Tables, Visit
from .sgd import add_gradient, collect_rows, forget
from .updates import catch_up_adagrad, catch_up_sgd, step_adagrad, step_sgd

# Rules of `minibatch_pass`.
SGD = 0
ADAGRAD = 1


class Rule(NamedTuple):
    """How weights move.

    kind: SGD or ADAGRAD; delta: of AdaGrad; l1, l2: penalties of one step; shrinkage, averaged: of
    SGD, see `catch_up_sgd`; averaging: whether SGD sums its iterates.
    """

    kind: int
    delta: float
    l1: float
    l2: float
    shrinkage: Floats
    averaged: Floats
    averaging: bool


class RowMarks(NamedTuple):
    """Which rows a minibatch has: weights_of [rows + 1] int64, weights of each row.

    Workspaces: marks [rows] int64, all -1 first; touched, done [rows] int64, done all zero first.
    """

    weights_of: Ints
    marks: Ints
    touched: Ints
    done: Ints


@inner
def _catch_up(
    rows: Ints, step: int, eta: float, rule: Rule, marks: RowMarks, theta: Floats, extra: Floats
) -> None:
    """Bring rows up to a step; arguments as in `minibatch_pass`."""
    done = marks.done
    for row in rows:
        begin, end = marks.weights_of[row], marks.weights_of[row + 1]
        if rule.kind == SGD:
            sums = rule.shrinkage, rule.averaged
            catch_up_sgd(begin, end, done[row], step, *sums, theta, extra)
        else:
            missed = step - done[row]
            catch_up_adagrad(begin, end, missed, eta, rule.delta, rule.l1, rule.l2, theta, extra)
        done[row] = step


@inner
def _step(
    rows: Ints,
    eta: float,
    rule: Rule,
    marks: RowMarks,
    gradient: Floats,
    theta: Floats,
    extra: Floats,
) -> None:
    """Step along the gradient [K] on the weights of rows, and clear it."""
    for row in rows:
        begin, end = marks.weights_of[row], marks.weights_of[row + 1]
        if rule.kind == SGD:
            step_sgd(begin, end, eta, rule.l2, rule.averaging, gradient, theta, extra)
        else:
            penalty = rule.l1, rule.l2
            step_adagrad(begin, end, eta, rule.delta, *penalty, gradient, theta, extra)


@kernel
def minibatch_pass(
    order: Ints,
    batch: int,
    etas: Floats,
    rule: Rule,
    tables: Tables,
    context_rows: ContextRows,
    marks: RowMarks,
    theta: Floats,
    extra: Floats,
    gradient: Floats,
    gradients: tuple[Paid, Paid],
    visit: Visit,
) -> float:
    """One pass over examples, a minibatch at a time, with a step along each one's gradient.

    order: [n] int64 examples; batch: how many make up a minibatch; etas: [minibatches], the steps,
    of which a 0 only measures; theta: [K], in and out; extra: [K], in and out, the sum of SGD's
    iterates or AdaGrad's sum of squares; gradient: [K] zeros, of which `gradients` are the parts of
    unigram and bigram weights (see `add_gradient`).
    RETURNS: the weighted sum of the losses of the examples, each before its step.
    """
    unigram, bigram = gradients
    loss = 0.0
    forget(visit)
    for number in range(len(etas)):
        eta = etas[number]
        members = order[number * batch : (number + 1) * batch]
        found = collect_rows(
            members,
            number,
            tables.sequences,
            tables.unigrams,
            context_rows,
            marks.marks,
            marks.touched,
        )
        rows = marks.touched[:found]
        _catch_up(rows, number, eta, rule, marks, theta, extra)
        for s in members:
            loss += add_gradient(s, number, tables, theta, unigram, bigram, visit)
        _step(rows, eta, rule, marks, gradient, theta, extra)
        for row in rows:
            marks.done[row] = number + 1
    for row in range(len(marks.done)):
        marks.touched[row] = row
    _catch_up(marks.touched, len(etas), etas[-1], rule, marks, theta, extra)
    return loss
