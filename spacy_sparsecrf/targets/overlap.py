"""Spans that may overlap: types fall into groups, and each group has a chain of its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..errors import Errors, SparseCRFError
from .scheme import OUTSIDE, LabelledSpans

Types: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Overlap:
    """Groups of types of spans; those of different groups may overlap.

    groups: of several types; each other type is a group by itself.
    """

    groups: tuple[Types, ...] = ()

    @classmethod
    def read(cls, value: Any) -> "Overlap | None":
        """Read the setting `overlap`: None where no spans overlap.

        value: false; true, where spans of all types may overlap; or lists of types, where those of
            one list may not. RAISES: SparseCRFError for anything else.
        """
        if isinstance(value, bool):
            return cls() if value else None
        kinds = list, tuple
        is_list = isinstance(value, kinds) and all(isinstance(own, kinds) for own in value)
        names = [name for own in value for name in own] if is_list else []
        sound = is_list and all(value) and all(isinstance(name, str) and name for name in names)
        if not sound or len(set(names)) < len(names):
            raise SparseCRFError(Errors.SC420.format(value=value))
        return cls(tuple(map(tuple, value)))

    def group(self, name: str) -> Types:
        """The group of a type."""
        return next((group for group in self.groups if name in group), (name,))

    def within(self, names: Iterable[str]) -> list[Types]:
        """The groups of types, each once, in their order."""
        return list(dict.fromkeys(map(self.group, names)))


def outside_of(group: Types) -> str:
    """Return a component's name of the label "O" of a group's chain."""
    return f"{OUTSIDE}-{'+'.join(group)}"


def plain(label: str) -> str:
    """Return the name that a chain by itself gives to a label."""
    return OUTSIDE if label.startswith(f"{OUTSIDE}-") else label


def joined(found: Sequence[LabelledSpans]) -> LabelledSpans:
    """Spans of several chains, one chain after the other; the chains know the same types."""
    starts, ends, types = (
        np.concatenate([getattr(own, part) for own in found])
        for part in ("starts", "ends", "types")
    )
    return LabelledSpans(starts, ends, types, found[0].names)
