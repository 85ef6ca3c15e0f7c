"""Courses of training runs: of our solvers, step by step, and of other toolkits."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .processes import Cost, Stopwatch

# Errors are counted when the passes have grown by this factor.
_COUNT_EVERY = 1.5


@dataclass
class Course:
    """Where a training run stood after each of its steps.

    passes: over the data, empty if unknown; wall, cpu: seconds since its start; objective: None
    where it is not reported; n_active: weights that are not zero; errors: pairs of the number of a
    step and the percentage of wrong test tokens; failure: message of a solver that gave up; cut:
    whether a limit ended it; n_weights: candidates; peak_mb: memory.
    """

    passes: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    objective: list[float | None] = field(default_factory=list)
    n_active: list[int] = field(default_factory=list)
    errors: list[tuple[int, float]] = field(default_factory=list)
    failure: str = ""
    cut: bool = False
    n_weights: int | None = None
    peak_mb: float = 0.0

    @property
    def lowest(self) -> float:
        """The lowest objective, infinite if there is none."""
        return min((value for value in self.objective if value is not None), default=math.inf)

    def first_at(self, objective: float) -> int | None:
        """Return the number of the first step with at most this objective; None = never."""
        found = enumerate(self.objective)
        return next((i for i, value in found if value is not None and value <= objective), None)

    def step_costs(self) -> list[Cost]:
        """Return the cost of each step but the first, which may contain one more evaluation."""
        pairs = itertools.pairwise(zip(self.wall, self.cpu, strict=True))
        return [Cost(b[0] - a[0], b[1] - a[1]) for a, b in pairs]


class Enough(Exception):
    """A run has reached its goal, or one of its limits."""


class Watched:
    """A solver whose steps are noted, inner ones too; otherwise it behaves as what it wraps.

    goal: objective at which it is done; cap: processor seconds, and most: passes, that it may take;
    count: returns the percentage of wrong test tokens at the present weights. What noting takes is
    not counted. loss, theta: the last working loss, and the weights.
    """

    def __init__(
        self,
        solver: Any,
        goal: float = -math.inf,
        cap: float = math.inf,
        most: float = math.inf,
        count: Callable[[], float] | None = None,
    ) -> None:
        self.course, self.count = Course(), count
        self.loss: Any = None
        self.theta: Any = None
        self._solver, self._limits = solver, (goal, cap, most)
        self._watch, self._spent, self._next_count = Stopwatch(), Cost(), 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def step(self, loss: Any, penalty: Any, state: Any) -> Any:
        """Step, and note the result. RAISES: Enough."""
        report = self._solver.step(loss, penalty, state)
        course, pause, now = self.course, Stopwatch(), self._watch.read()
        self.loss, self.theta = loss, getattr(state, "theta", None)
        first = float(self._solver.warm_start_epochs) if penalty.l1 else 0.0
        course.passes.append((course.passes[-1] if course.passes else first) + report.passes)
        course.wall.append(now.wall - self._spent.wall)
        course.cpu.append(now.cpu - self._spent.cpu)
        course.objective.append(report.objective)
        course.n_active.append(report.n_active)
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
