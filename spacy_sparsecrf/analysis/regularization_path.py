"""The regularisation path: the solutions at falling l1, each learnt from the one before."""

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
    """The end of training at one l1.

    objective: loss plus penalty. optimality: largest distance of a coordinate of -gradient, of all
    potential weights, to the penalty's subdifferential, 0 at a minimiser; unit: expected counts,
    compare l1. n_active: non-zero weights. n_steps: outer iterations. passes: see `StepReport`.
    converged: whether by the solver's own rule.
    """

    l1: float
    objective: float
    optimality: float
    n_active: int
    n_steps: int
    passes: float
    converged: bool


def check_solver(solver: BatchSolver) -> None:
    """Refuse a solver whose solutions are not minimisers, or that knows no l1.

    RAISES: SparseCRFError.
    """
    if not solver.exact or "no l1" in solver.requires:
        raise SparseCRFError(Errors.SC701.format(solver=type(solver).__name__))


def check_l1s(values: Sequence[float]) -> list[float]:
    """The given values of l1, from large to small, each once.

    RAISES: SparseCRFError where there is none, or one is not a finite number above 0.
    """
    if not values or not all(isfinite(value) and value > 0.0 for value in values):
        raise SparseCRFError(Errors.SC702.format(values=list(values)))
    return sorted(set(values), reverse=True)


def falling_l1s(highest: float, lowest: float, n: int) -> list[float]:
    """A geometric sequence of l1 (Friedman, Hastie & Tibshirani 2010, section 2.5).

        l1_i = highest (lowest / highest)^(i / n),  i = 1, ..., n

    highest: the smallest l1 at which all weights are zero, which is left out; lowest: the last l1;
    n: how many.
    RAISES: SparseCRFError where lowest is not between 0 and highest, or n < 1.
    """
    if n < 1:
        raise SparseCRFError(Errors.SC703.format(n=n))
    if not 0.0 < lowest < highest:
        raise SparseCRFError(Errors.SC704.format(lowest=lowest, highest=highest))
    values = highest * (lowest / highest) ** (np.arange(1, n) / n)
    return [*map(float, values), lowest]


def begin_at_zero(training: Training) -> None:
    """Let training begin where the path does, if it has not begun, instead of by a warm start."""
    if not isfinite(training.objective):
        training.begin(np.empty(0, np.int64), np.empty(0))


def follow(
    training: Training,
    l1s: Sequence[float],
    max_steps: int = 0,
    window: float | None = None,
    on_step: OnStep | None = None,
) -> Iterator[Solution]:
    """Train at each l1 in turn, from the weights at the one before.

    training: holds the weights of a solution while it is the last one yielded; its solver: see
    `check_solver`; l1s: from large to small, see `check_l1s`; max_steps: outer iterations for each,
    0 for as many as it takes; window: an outer iteration that lowers the objective by at most this
    fraction ends an l1, None: only the solver's own rule ends it; on_step: called after each outer
    iteration.
    RAISES: SparseCRFError where the objective stops being finite.
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
    """Train from the weights of a point that `window` has cut off, until the solver's own rule.

    weights: `training.weights` at the point, of this l1; the rest: see `follow`.
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
    """The smallest of the models whose score is near the best.

    scores, sizes: of the models, at least one; within: how far below the best score, >= 0; 0 for
    the best, of equals the smallest. Of equal sizes: the better score, then the first.
    RETURNS: its position.
    """
    floor = max(scores) - within
    near = [i for i, score in enumerate(scores) if score >= floor]
    return min(near, key=lambda i: (sizes[i], -scores[i], i))
