"""A stage of a schedule (see `schedule`), as the config has it.

This module is imported at each start of spaCy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

REQUIRE = ("all", "any", "none")
ADMIT = ("tests", "labels")


@dataclass(frozen=True)
class Stage:
    """Templates that enter together.

    templates: patterns that name the templates whose tests it may admit, but for those that stages
    before name; steps: outer iterations at most, 0 = until they converge; require: how many of the
    parents of a test must be active, "all", "any" or "none"; admit: whether "tests" are admitted
    with all labels, or only with the "labels" that so many parents are active with; parents:
    patterns that name the parents of templates, by the patterns that name these, where they are not
    to be derived.
    """

    templates: tuple[str, ...]
    steps: int = 0
    require: str = "all"
    admit: str = "tests"
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
