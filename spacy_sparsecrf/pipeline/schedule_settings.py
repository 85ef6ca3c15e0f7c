"""The setting `schedule` of [components.NAME.learning]: tests that enter in stages.

    schedule = [{"templates": ["b:", "u:lower[0]"], "steps": 2}, {"templates": "*"}]

Keys of a stage: see `stage.Stage`; a single pattern may stand for a list of one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from spacy.tokens import Doc
from spacy.util import logger

from ..errors import Errors, SparseCRFError
from ..stage import ADMIT, REQUIRE, Stage

if TYPE_CHECKING:
    from ..corpus import EncodedCorpus, Observations
    from ..training import Training
    from .settings import Settings

Features: TypeAlias = "Callable[[Sequence[Doc], str], Observations]"

_KEYS = "templates", "steps", "require", "admit", "parents"


def read_schedule(name: str, value: Any) -> list[Stage]:
    """Check the setting of component `name`. RAISES: SparseCRFError for anything malformed."""
    if not isinstance(value, (list, tuple)):
        refuse(name, "schedule", value, 'a list of stages, such as {"templates": ["u:lower[0]"]}')
    return [_read_stage(name, f"schedule, stage {i},", s) for i, s in enumerate(value, start=1)]


def _read_stage(name: str, key: str, stage: Any) -> Stage:
    fits = isinstance(stage, Mapping) and "templates" in stage and set(stage) <= set(_KEYS)
    if not fits:
        keys = ", ".join(_KEYS[1:])
        refuse(name, key, stage, f"a section with `templates` and, if need be, {keys}")
    steps, require = stage.get("steps", 0), stage.get("require", "all")
    if type(steps) is not int or steps < 0:
        refuse(name, f"{key} steps", steps, "a whole number >= 0, 0 = until they converge")
    admit = stage.get("admit", "tests")
    for part, value, known in (("require", require, REQUIRE), ("admit", admit, ADMIT)):
        if value not in known:
            refuse(name, f"{key} {part}", value, f"one of {', '.join(known)}")
    parents = stage.get("parents", {})
    if not isinstance(parents, Mapping):
        refuse(name, f"{key} parents", parents, 'a section such as {"u:lower[-1]|lower[0]": []}')
    templates = _patterns(name, f"{key} templates", stage["templates"])
    own = {child: _patterns(name, f"{key} parents", found) for child, found in parents.items()}
    return Stage(templates, steps, require, admit, own)


def _patterns(name: str, key: str, value: Any) -> tuple[str, ...]:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(p, str) for p in patterns):
        refuse(name, key, value, "a template, a pattern of templates, or a list of them")
    return tuple(patterns)


def refuse(name: str, key: str, value: object, expected: str) -> NoReturn:
    """Raise SparseCRFError for a setting of the block [components.NAME.learning]."""
    message = Errors.SC352.format(name=name, key=key, value=value, expected=expected)
    raise SparseCRFError(message)


def with_kin(
    name: str, stages: Sequence[Stage], settings: "Settings", features: Any, read: Features
) -> Features:
    """What reads features so that a schedule can be followed: `read` itself without one.

    name: of the component; features: its features; read: what they are read by.
    RAISES: SparseCRFError where the schedule does not fit features, penalty or model.
    """
    if not stages:
        return read
    from ..features.featurizer import Featurizer
    from ..features.lineage import KinRecord, Lineage

    if not isinstance(features, Featurizer):
        raise SparseCRFError(Errors.SC333.format(name=name))
    for key, value, fits, needed in (
        ("l1", settings.l1, settings.l1 > 0.0, "a number > 0"),
        ("clusters", settings.clusters, settings.clusters == 0, "0"),
    ):
        if not fits:
            message = Errors.SC334.format(name=name, key=key, value=value, needed=needed)
            raise SparseCRFError(message)
    return KinRecord(read, features, Lineage.of(features.parsed, features.templates, stages))


def training_class(
    name: str, stages: Sequence[Stage], read: Features, corpus: "EncodedCorpus"
) -> "Callable[..., Training]":
    """What makes a training run: in stages, if there is a schedule. Imports numba.

    name: of the component; read: of `with_kin`; corpus: what it has read.
    """
    from ..features.lineage import KinRecord
    from ..staged import StagedTraining
    from ..training import Training

    if not isinstance(read, KinRecord):
        return Training
    report = partial(logger.info, "%s: %s", name)
    return partial(StagedTraining, kin=read.kin(corpus), stages=stages, report=report)
