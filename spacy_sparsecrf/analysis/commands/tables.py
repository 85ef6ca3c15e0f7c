"""Explanations as tables of text."""

from collections import Counter
from collections.abc import Sequence

from ...model.names import escape
from ..explanation import START, Contribution, Transition


def contribution_row(found: Contribution) -> tuple[str, str, str, str]:
    """Return the name of a contribution, its weights and their difference."""
    weight, rival, difference = map(signed, (found.weight, found.rival, found.difference))
    return found.name, weight, rival, difference


def strongest_pairs(transitions: Sequence[Transition], n: int) -> list[Transition]:
    """Return for each label the n strongest transitions to it with positive and negative weight.

    transitions: descending by weight. RETURNS: a selection in the same order.
    """
    kept: set[tuple[str, str]] = set()
    for sign, ordered in ((1.0, transitions), (-1.0, reversed(transitions))):
        counts: Counter[str] = Counter()
        for pair in ordered:
            if sign * pair.weight > 0.0 and counts[pair.label] < n:
                counts[pair.label] += 1
                kept.add((pair.previous, pair.label))
    return [pair for pair in transitions if (pair.previous, pair.label) in kept]


def before(label: str) -> str:
    """Return a label, or the name of the start label, for display."""
    return escape(label) or START


def signed(value: float) -> str:
    """Return a weight as text with its sign."""
    return f"{value:+.4f}"
