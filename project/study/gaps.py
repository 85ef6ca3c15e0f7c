"""What a course says: gaps to the minimum, and what it took to get within them."""

from collections.abc import Mapping
from typing import Any

GAPS = (1e-2, 1e-4, 1e-6)
# Passes after which errors are compared.
AFTER = (1.0, 5.0, 20.0)


def minimum(record: Mapping[str, Any]) -> float:
    """The lowest objective that anyone reached."""
    skipped = set(record["no_objective"])
    found = [
        min(course["objective"])
        for name, course in record["courses"].items()
        if name not in skipped and course["objective"]
    ]
    return float(min([record["reference"], *found]))


def gaps(record: Mapping[str, Any], name: str) -> list[float]:
    """(objective - minimum) / minimum after each step of a contestant."""
    best = minimum(record)
    return [value / best - 1.0 for value in record["courses"][name]["objective"]]


def reached(record: Mapping[str, Any], name: str, gap: float, axis: str) -> float | None:
    """Passes, or seconds, after which a contestant was first within a gap; None = never."""
    course = record["courses"][name]
    for value, spent in zip(gaps(record, name), course[axis], strict=True):
        if value <= gap:
            return float(spent)
    return None


def lowest_gap(record: Mapping[str, Any], name: str) -> float | None:
    """The smallest gap that a contestant reached; None where it failed at once."""
    return min(gaps(record, name), default=None)


def error_after(record: Mapping[str, Any], name: str, passes: float) -> float | None:
    """Test error when a contestant had last been counted, with at most that many passes."""
    course = record["courses"][name]
    found = [error for i, error in course["errors"] if course["passes"][i] <= passes]
    return found[-1] if found else None


def final_error(record: Mapping[str, Any], name: str) -> float | None:
    """Test error at the end; None where a contestant failed at once."""
    errors = record["courses"][name]["errors"]
    return float(errors[-1][1]) if errors else None
