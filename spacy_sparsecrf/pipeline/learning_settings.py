"""The block [components.NAME.learning]: what of a corpus is learnt, and how much each part counts.

    min_freq = 1           tests at fewer training tokens than this get no weights; tests conjoined
                           with labels are counted apart from those conjoined with pairs of labels
    observed_only = false  whether only pairs of a test and a gold label (or pair of them) that
                           occur may have weights
    doc_weight = ""        name of an extension of Doc, doc._.name of gold Docs: the weight of a
                           Doc's log-likelihood, as if the Doc were there so many times; with
                           weight 0 it is left out, and its labels and tests with it
    label_weights = {}     weight of a gold label, 1 for those not named; a sequence counts as
                           much as its gold labels on average (see `gold.weighted`)
    constrained = false    whether log Z is over legal sequences only
    schedule = []          stages in which groups of templates enter, see below

Weights of labels are those of a weighted likelihood: they say how much an example counts, not what
a mistake costs. A rare label with a high weight makes *all* labels of the sequences that have it
count more; of a per-position model, whose sequences are single tokens, only that token.

A schedule is a list of stages, in which tests enter:

    schedule = [{"templates": ["b:", "u:lower[0]"], "steps": 2}, {"templates": "*"}]

Keys of a stage: see `corpus.schedule.Stage`; a single pattern may stand for a list of one.
"""

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.schedule import ADMIT, REQUIRE, Stage
from ..errors import Errors, SparseCRFError, SparseCRFWarning, Warnings

# What a config file has as a key when it is read again.
_IS_KEY = re.compile(r"[^\s:=#;\[]([^\n:=]*[^\s:=])?").fullmatch
# What the block once had, with the value that asks for what is done anyway: pipelines that were
# saved then have it in their configs.
_GONE = {"merge_tests": False}
_STAGE_KEYS = "templates", "steps", "require", "admit", "parents"


@dataclass(frozen=True)
class LearningSettings:
    """Settings of the block, checked; see above.

    label_weights: by label, 0 or more; unknown: settings that there were once, and that training
    would need.
    """

    min_freq: int = 1
    observed_only: bool = False
    label_weights: Mapping[str, float] = field(default_factory=dict)
    doc_weight: str = ""
    constrained: bool = False
    schedule: list[Stage] = field(default_factory=list)
    unknown: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str, block: Mapping[str, Any] | None) -> "LearningSettings":
        """Check the block of component `name`.

        block: settings, defaults for those that are absent; label_weights may be a list of pairs
            [label, weight] too, for labels that a config cannot have as keys.
        RAISES: SparseCRFError for an unknown key or a value out of range. Settings that there were
            once raise in training only (see `check_known`), so that what was trained loads.
        """
        block = dict(block or {})
        gone = tuple(k for k, idle in _GONE.items() if block.pop(k, idle) is not idle)
        _refuse_unknown(name, [key for key in block if key not in _known()])
        if gone:
            message = Warnings.SCW351.format(name=name, unknown=", ".join(gone))
            warnings.warn(message, SparseCRFWarning, stacklevel=3)
        if "label_weights" in block:
            block["label_weights"] = _weights_by_label(name, block["label_weights"])
        schedule = block.pop("schedule", [])
        plain = cls(**block)
        _check(name, plain)
        stages = read_schedule(name, schedule)
        return replace(plain, schedule=stages, unknown=gone)

    def check_known(self, name: str) -> None:
        """Refuse to train with settings that there were once. RAISES: SparseCRFError."""
        _refuse_unknown(name, self.unknown)

    def check_extension(self, name: str) -> None:
        """Check that Docs have the attribute of their weights. RAISES: SparseCRFError."""
        if self.doc_weight and not Doc.has_extension(self.doc_weight):
            raise SparseCRFError(Errors.SC354.format(name=name, attribute=self.doc_weight))

    def weight_of(self, name: str, doc: Doc) -> float:
        """The weight of a gold Doc. RAISES: SparseCRFError where it is not a number >= 0."""
        if not self.doc_weight:
            return 1.0
        value = doc._.get(self.doc_weight)
        if not _is_weight(value):
            values = {"name": name, "attribute": self.doc_weight, "value": value}
            raise SparseCRFError(Errors.SC355.format(**values, text=doc.text[:60]))
        return float(value)

    def weights_of(self, name: str, labels: Sequence[str]) -> NDArray[np.float64] | None:
        """The weights of labels: [Y] float64, or None where all are 1.

        RAISES: SparseCRFError where a weight is given for something else.
        """
        unknown = [repr(label) for label in self.label_weights if label not in labels]
        if unknown:
            values = {"unknown": ", ".join(unknown), "known": ", ".join(labels)}
            raise SparseCRFError(Errors.SC353.format(name=name, **values))
        weights = np.array([self.label_weights.get(label, 1.0) for label in labels])
        return None if (weights == 1.0).all() else weights


def _known() -> list[str]:
    return [setting.name for setting in fields(LearningSettings) if setting.name != "unknown"]


def _refuse_unknown(name: str, unknown: Sequence[str]) -> None:
    """Raise SparseCRFError where there are settings that are not known."""
    if unknown:
        values = {"unknown": ", ".join(unknown), "known": ", ".join(_known())}
        raise SparseCRFError(Errors.SC350.format(name=name, **values))


def _check(name: str, settings: LearningSettings) -> None:
    """Check the plain settings of component `name`."""
    if type(settings.min_freq) is not int or settings.min_freq < 1:
        refuse(name, "min_freq", settings.min_freq, "a whole number that is at least 1")
    for key in ("observed_only", "constrained"):
        if not isinstance(getattr(settings, key), bool):
            refuse(name, key, getattr(settings, key), "true or false")
    if not isinstance(settings.doc_weight, str):
        refuse(name, "doc_weight", settings.doc_weight, 'a name, or "" for none')


def _weights_by_label(name: str, given: Any) -> dict[str, float]:
    """The weights of labels from a dict, or from a list of pairs."""
    pairs = given
    if isinstance(given, Mapping):
        pairs = list(given.items())
        lost = [key for key in given if not _IS_KEY(key)]
        if lost:
            raise SparseCRFError(Errors.SC362.format(name=name, label=lost[0]))
    expected = "a section of labels with finite numbers >= 0, or a list of pairs of them"
    if not isinstance(pairs, (list, tuple)):
        refuse(name, "label_weights", given, expected)
    weights: dict[str, float] = {}
    for pair in pairs:
        fits = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not fits or not isinstance(pair[0], str) or not _is_weight(pair[1]):
            refuse(name, "label_weights", given, expected)
        weights[pair[0]] = float(pair[1])
    return weights


def _is_weight(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        return False
    return math.isfinite(value) and float(value) >= 0.0


def read_schedule(name: str, value: Any) -> list[Stage]:
    """Check the setting of component `name`. RAISES: SparseCRFError for anything malformed."""
    if not isinstance(value, (list, tuple)):
        refuse(name, "schedule", value, 'a list of stages, such as {"templates": ["u:lower[0]"]}')
    return [_read_stage(name, f"schedule, stage {i},", s) for i, s in enumerate(value, start=1)]


def _read_stage(name: str, key: str, stage: Any) -> Stage:
    fits = isinstance(stage, Mapping) and "templates" in stage and set(stage) <= set(_STAGE_KEYS)
    if not fits:
        keys = ", ".join(_STAGE_KEYS[1:])
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
