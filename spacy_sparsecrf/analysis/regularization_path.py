"""The regularisation path: solutions at decreasing l1, each warm-started from the previous one."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from ..errors import Errors, SparseCRFError, SparseCRFWarning, Warnings
from ..solvers.base import BatchSolver, Floats, Longs, StepReport
from ..training.training import Training

OnStep = Callable[[StepReport], None]


@dataclass(frozen=True)
class Solution:
    """The result of training at one l1.

    objective: loss plus penalty; optimality: largest distance of a coordinate of -gradient, over
    all potential weights, to the penalty's subdifferential, 0 at a minimiser, in expected counts
    like l1; n_active: number of non-zero weights; n_steps: number of outer iterations; passes: see
    `StepReport`; converged: whether the solver's own stopping rule holds.
    """

    l1: float
    objective: float
    optimality: float
    n_active: int
    n_steps: int
    passes: float
    converged: bool


def check_solver(solver: BatchSolver) -> None:
    """Refuse a solver that does not reach the minimiser, or does not support l1.

    RAISES: SparseCRFError.
    """
    if not solver.exact or "no l1" in solver.requires:
        raise SparseCRFError(Errors.SC701.format(solver=type(solver).__name__))


def check_l1s(values: Sequence[float]) -> list[float]:
    """Return the distinct values of l1 in descending order.

    RAISES: SparseCRFError if there are none, or a value is not finite and above 0.
    """
    if not values or not all(isfinite(value) and value > 0.0 for value in values):
        raise SparseCRFError(Errors.SC702.format(values=list(values)))
    return sorted(set(values), reverse=True)


def falling_l1s(highest: float, lowest: float, n: int) -> list[float]:
    """Return a geometric sequence of l1 (Friedman, Hastie & Tibshirani 2010, section 2.5).

        l1_i = highest (lowest / highest)^(i / n),  i = 1, ..., n

    highest: the smallest l1 at which all weights are zero, excluded; lowest: the last l1;
    n: the number of values.
    RAISES: SparseCRFError if lowest is not between 0 and highest, or n < 1.
    """
    if n < 1:
        raise SparseCRFError(Errors.SC703.format(n=n))
    if not 0.0 < lowest < highest:
        raise SparseCRFError(Errors.SC704.format(lowest=lowest, highest=highest))
    values = highest * (lowest / highest) ** (np.arange(1, n) / n)
    return [*map(float, values), lowest]


def begin_at_zero(training: Training) -> None:
    """Start training from zero weights instead of a warm start, if it has not started."""
    if not isfinite(training.objective):
        training.begin(np.empty(0, np.int64), np.empty(0))


def follow(
    training: Training,
    l1s: Sequence[float],
    max_steps: int = 0,
    window: float | None = None,
    on_step: OnStep | None = None,
) -> Iterator[Solution]:
    """Train at each l1 in turn, from the weights of the previous solution.

    training: has the weights of a solution until the next one is requested, and a solver that
    passes `check_solver`; l1s: descending, see `check_l1s`; max_steps: limit of outer iterations
    for each l1, 0 for none; window: training at an l1 ends when an outer iteration lowers the
    objective by at most this fraction, None: only by the solver's own rule; on_step: called after
    each outer iteration.
    RAISES: SparseCRFError if the objective is not finite.
    """
    for l1 in l1s:
        training.change_l1(l1)
        yield _solve(training, l1, max_steps, window, on_step)


def finish(
    training: Training,
    l1: float,
    weights: tuple[Longs, Floats],
    max_steps: int = 0,
    on_step: OnStep | None = None,
) -> Solution:
    """Train to convergence from a solution at which `window` ended training.

    weights: `training.weights` of this solution, at the same l1; other arguments: see `follow`.
    """
    training.begin(*weights, l1=l1)
    return _solve(training, l1, max_steps, None, on_step)


def _solve(
    training: Training, l1: float, max_steps: int, window: float | None, on_step: OnStep | None
) -> Solution:
    n_steps, passes, near = 0, 0.0, False
    while True:
        before = training.objective
        report = training.step()
        n_steps, passes = n_steps + 1, passes + report.passes
        if not isfinite(report.objective):
            raise SparseCRFError(Errors.SC705.format(l1=l1, objective=report.objective))
        if on_step is not None:
            on_step(report)
        if window is not None:
            near = before - report.objective <= window * abs(report.objective)
        if report.converged or near or n_steps == max_steps:
            break
    if not (report.converged or near):
        message = Warnings.SCW701.format(l1=l1, n=n_steps, optimality=report.optimality)
        warnings.warn(message, SparseCRFWarning, stacklevel=3)
    reached = report.objective, report.optimality, report.n_active
    return Solution(l1, *reached, n_steps, passes, report.converged)


def choose(scores: Sequence[float], sizes: Sequence[int], within: float = 0.0) -> int:
    """Choose the smallest of the models with scores near the best.

    scores, sizes: of the models, at least one; within: permitted difference to the best score,
    >= 0. Ties in size are broken by the better score, then by position.
    RETURNS: the position of the model.
    """
    floor = max(scores) - within
    near = [i for i, score in enumerate(scores) if score >= floor]
    return min(near, key=lambda i: (sizes[i], -scores[i], i))
