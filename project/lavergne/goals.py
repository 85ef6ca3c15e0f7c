"""The figures that are wanted, and those that were reached."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.tables import table

from .records import Record


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


def is_met(goal: Goal, record: Record) -> bool:
    """Whether a run is within all limits, with the weights of the lowest development error."""
    return (
        record["best"]["test_part"] <= goal.error
        and record["cpu"] <= 60.0 * goal.minutes
        and record["peak_mb"] <= 1024.0 * goal.gigabytes
    )


def goals(records: Mapping[str, Record], extra: Record) -> str:
    """A row for each goal."""
    rows = []
    for goal in GOALS:
        if goal.name in records:
            record = records[goal.name]
            rows.append(
                [
                    goal.what,
                    *(f"{record['errors'][part]:.2f}" for part in ("dev_part", "test_part")),
                    f"{record['best']['test_part']:.2f}",
                    f"{goal.error:.1f}",
                    f"{record['cpu'] / 60.0:.1f}",
                    f"{goal.minutes:g}",
                    f"{record['peak_mb'] / 1024.0:.2f}",
                    f"{goal.gigabytes:g}",
                    "yes" if is_met(goal, record) else "no",
                ]
            )
    if not rows:
        return ""
    header = ["phoneme error of OWL-QN, %", "dev", "test", "best dev", "at most", "min", "at most"]
    return table([*header, "GB", "at most", "met"], rows)
