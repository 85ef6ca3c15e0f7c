"""Courses of training runs of our solvers and of other toolkits."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .processes import Cost, Stopwatch

# Errors are counted each time passes have grown by this factor.
_COUNT_EVERY = 1.5


@dataclass
class Course:
    """The state of a training run after each step.

    passes: over the data, empty if unknown; wall, cpu: seconds since the start; objective: None if
    not reported; errors: pairs of step number and percentage of wrong test tokens; failure: message
    of a solver that failed; cut: whether a limit ended the run.
    """

    passes: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    objective: list[float | None] = field(default_factory=list)
    errors: list[tuple[int, float]] = field(default_factory=list)
    failure: str = ""
    cut: bool = False

    @property
    def lowest(self) -> float:
        """The lowest objective, infinite if there is none."""
        return min((value for value in self.objective if value is not None), default=math.inf)

    def step_costs(self) -> list[Cost]:
        """Return the cost of each step except the first, which may contain an extra evaluation."""
        pairs = itertools.pairwise(zip(self.wall, self.cpu, strict=True))
        return [Cost(b[0] - a[0], b[1] - a[1]) for a, b in pairs]


class Enough(Exception):
    """A run has reached its goal, or one of its limits."""


class Watched:
    """A wrapper that records the steps of a solver, also inner ones.

    goal: objective at which to stop; cap, most: maximum processor seconds and passes; count:
    returns the percentage of wrong test tokens at the current weights; first: passes of a warm
    start. Time spent recording is excluded. loss, theta: the last working loss, and the weights.
    """

    def __init__(
        self,
        solver: Any,
        goal: float = -math.inf,
        cap: float = math.inf,
        most: float = math.inf,
        count: Callable[[], float] | None = None,
        first: float = 0.0,
    ) -> None:
        self._first, self.course, self.count = first, Course(), count
        self.loss: Any = None
        self.theta: Any = None
        self._solver, self._limits = solver, (goal, cap, most)
        self._watch, self._spent, self._next_count = Stopwatch(), Cost(), 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def step(self, loss: Any, penalty: Any, state: Any) -> Any:
        """Run a step, and record the result. RAISES: Enough if the goal or a limit is reached."""
        report = self._solver.step(loss, penalty, state)
        course, pause, now = self.course, Stopwatch(), self._watch.read()
        self.loss, self.theta = loss, getattr(state, "theta", None)
        course.passes.append((course.passes[-1] if course.passes else self._first) + report.passes)
        course.wall.append(now.wall - self._spent.wall)
        course.cpu.append(now.cpu - self._spent.cpu)
        course.objective.append(report.objective)
        goal, cap, most = self._limits
        course.cut = course.cpu[-1] > cap or course.passes[-1] >= most
        done = course.cut or report.objective <= goal
        if self.count is not None and (done or course.passes[-1] >= self._next_count):
            course.errors.append((len(course.passes) - 1, self.count()))
            self._next_count = _COUNT_EVERY * course.passes[-1]
        paused = pause.read()
        self._spent.wall += paused.wall
        self._spent.cpu += paused.cpu
        if done:
            raise Enough
        return report
