"""Explanations as texts, for tables and pages."""

from collections.abc import Sequence

from ..explanation import Contribution, TestWeight, TokenExplanation
from ..names import ALWAYS, escape


def runner_up(token: TokenExplanation) -> str:
    """The most probable other label, or ""."""
    if token.runner_up is None:
        return ""
    return f", not {escape(token.runner_up)} {token.runner_up_probability:.4f}"


def strongest(token: TokenExplanation, n: int) -> Sequence[Contribution]:
    """The n contributions that speak most for a token's label, and the n most against it."""
    return (*token.supporting[:n], *reversed(token.opposing[:n]))


def contribution_row(contribution: Contribution) -> tuple[str, str, str, str]:
    """What contributes, and its weights and their difference, as texts."""
    values = contribution.weight, contribution.rival, contribution.difference
    weight, rival, difference = map(signed, values)
    return describe(contribution), weight, rival, difference


def weight_row(weight: TestWeight) -> tuple[str, str, str]:
    """A test, the label before where it matters, and the weight, as texts."""
    before = "" if weight.previous is None else boundary(weight.previous)
    return weight.test, before, signed(weight.weight)


def describe(contribution: Contribution) -> str:
    """What contributes: a test, and the pair of labels that it is conjoined with."""
    if contribution.previous is None:
        return contribution.test
    pair = f"{boundary(contribution.previous)} -> {escape(contribution.label)}"
    return pair if contribution.test == ALWAYS else f"{pair} {contribution.test}"


def boundary(label: str) -> str:
    """A label, or the beginning of a sequence."""
    return escape(label) or "(start)"


def signed(value: float) -> str:
    """A weight."""
    return f"{value:+.4f}"
