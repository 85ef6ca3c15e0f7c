"""The figures that are wanted, and those that were reached."""

from collections.abc import Mapping
from dataclasses import dataclass

from reports.records import Stored
from reports.tables import percent, shown, with_text

from .figures import Figures


@dataclass(frozen=True)
class Goal:
    """At most so much.

    name: of the experiment; what: of the row; error: of phonemes, in percent; minutes: of the
    processor; gigabytes: peak of memory.
    """

    name: str
    what: str
    error: float
    minutes: float
    gigabytes: float


GOALS = (
    Goal("phonemes-5grm+-owlqn", "5-grm+", 7.9, 10.0, 3.0),
    Goal("phonemes-7grm-owlqn", "7-grm", 8.2, 10.0, 3.0),
    Goal("phonemes-7grm-owlqn-l1=0.1", "7-grm, l1 = 0.1", 8.2, 10.0, 3.0),
    Goal("joint-5grm+-owlqn", "joint, 5-grm+", 7.5, 60.0, 8.0),
    Goal("joint-5grm++-owlqn", "joint, 5-grm++", 7.4, 60.0, 8.0),
)


def is_met(goal: Goal, one: Figures) -> bool | None:
    """Whether a run is within all limits, with the weights of the lowest development error.

    RETURNS: None where that is not known.
    """
    if one.best_test_part is None or one.cpu is None or one.peak_mb is None:
        return None
    return (
        one.best_test_part <= goal.error
        and one.cpu <= 60.0 * goal.minutes
        and one.peak_mb <= 1024.0 * goal.gigabytes
    )


def goals(known: Mapping[str, Figures], extra: Stored) -> str:
    """A row for each goal."""
    rows = []
    for goal in GOALS:
        if goal.name in known:
            one = known[goal.name]
            rows.append(
                [
                    goal.what,
                    *map(percent, (one.dev_part, one.test_part, one.best_test_part)),
                    f"{goal.error:.1f}",
                    shown(one.cpu, ".1f", 60.0),
                    f"{goal.minutes:g}",
                    shown(one.peak_mb, ".2f", 1024.0),
                    f"{goal.gigabytes:g}",
                    {True: "yes", False: "no", None: ""}[is_met(goal, one)],
                ]
            )
    header = ["phoneme error of OWL-QN, %", "dev", "test", "best dev", "at most", "min", "at most"]
    return with_text("", [*header, "GB", "at most", "met"], rows)
