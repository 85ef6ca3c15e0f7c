"""Overlapping spans: span types are divided into groups, and each group has its own chain."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..errors import Errors, SparseCRFError
from .scheme import OUTSIDE, LabelledSpans

Types: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Overlap:
    """Groups of span types; spans of different groups may overlap.

    groups: the groups of several types; every other type forms a group by itself.
    """

    groups: tuple[Types, ...] = ()

    @classmethod
    def read(cls, value: Any) -> "Overlap | None":
        """Read the setting `overlap`; return None if spans may not overlap.

        value: false; true, if spans of different types may overlap; or lists of types: spans of
            types in one list may not overlap. RAISES: SparseCRFError for any other value.
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
        """Return the group of a type."""
        return next((group for group in self.groups if name in group), (name,))

    def within(self, names: Iterable[str]) -> list[Types]:
        """Return the groups of types, each once, in order."""
        return list(dict.fromkeys(map(self.group, names)))


def outside_of(group: Types) -> str:
    """Return the component's name for the label "O" of a group's chain."""
    return f"{OUTSIDE}-{'+'.join(group)}"


def plain(label: str) -> str:
    """Return the name of a component's label within its chain."""
    return OUTSIDE if label.startswith(f"{OUTSIDE}-") else label


def joined(found: Sequence[LabelledSpans]) -> LabelledSpans:
    """Concatenate the spans of several chains, which have the same `names`."""
    starts, ends, types = (
        np.concatenate([getattr(own, part) for own in found])
        for part in ("starts", "ends", "types")
    )
    return LabelledSpans(starts, ends, types, found[0].names)
