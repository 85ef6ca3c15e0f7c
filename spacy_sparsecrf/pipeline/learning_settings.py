"""The block [components.NAME.learning]: what of a corpus is learnt, and how much each part counts.

    min_freq = 1           tests at fewer training tokens than this get no weights; tests conjoined
                           with labels are counted apart from those conjoined with pairs of labels
    observed_only = false  whether only pairs of a test and a gold label (or pair of them) that
                           occur may have weights
    merge_tests = false    whether tests that are true of the same tokens have one weight while
                           they are learnt, which is then divided among them: see `loss.merging`
    doc_weight = ""        name of an extension of Doc, doc._.name of gold Docs: the weight of a
                           Doc's log-likelihood, as if the Doc were there so many times; with
                           weight 0 it is left out, and its labels and tests with it
    label_weights = {}     weight of a gold label, 1 for those not named; a sequence counts as
                           much as its gold labels on average (see `weighting.weighted`)
    constrained = false    whether log Z is over legal sequences only
    schedule = []          stages in which groups of templates enter, see `schedule_settings`

Weights of labels are those of a weighted likelihood: they say how much an example counts, not what
a mistake costs. A rare label with a high weight makes *all* labels of the sequences that have it
count more; of a per-position model, whose sequences are single tokens, only that token.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..errors import Errors, SparseCRFError
from ..stage import Stage
from .defaults import DEFAULT_LEARNING
from .schedule_settings import read_schedule, refuse

# What a config file has as a key when it is read again.
_IS_KEY = re.compile(r"[^\s:=#;\[]([^\n:=]*[^\s:=])?").fullmatch


@dataclass(frozen=True)
class LearningSettings:
    """Settings of the block, checked; see above. label_weights: by label, 0 or more."""

    min_freq: int = 1
    observed_only: bool = False
    merge_tests: bool = False
    label_weights: Mapping[str, float] = field(default_factory=dict)
    doc_weight: str = ""
    constrained: bool = False
    schedule: list[Stage] = field(default_factory=list)

    @classmethod
    def read(cls, name: str, block: Mapping[str, Any] | None) -> "LearningSettings":
        """Check the block of component `name`.

        block: settings, defaults for those that are absent; label_weights may be a list of pairs
            [label, weight] too, for labels that a config cannot have as keys.
        RAISES: SparseCRFError for an unknown key or a value out of range.
        """
        block = dict(block or {})
        known = [setting.name for setting in fields(cls)]
        unknown = [key for key in block if key not in known]
        if unknown:
            text = Errors.SC350.format(
                name=name, unknown=", ".join(unknown), known=", ".join(known)
            )
            raise SparseCRFError(text)
        if "label_weights" in block:
            block["label_weights"] = _weights_by_label(name, block["label_weights"])
        _check(name, DEFAULT_LEARNING | block)
        block["schedule"] = read_schedule(name, block.get("schedule", []))
        if block["schedule"] and block.get("merge_tests"):
            refuse(name, "merge_tests", True, "false where there is a schedule")
        return cls(**block)

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


def _check(name: str, block: Mapping[str, Any]) -> None:
    """Check the plain settings of a block."""
    if type(block["min_freq"]) is not int or block["min_freq"] < 1:
        refuse(name, "min_freq", block["min_freq"], "a whole number that is at least 1")
    for key in ("observed_only", "merge_tests", "constrained"):
        if not isinstance(block[key], bool):
            refuse(name, key, block[key], "true or false")
    if not isinstance(block["doc_weight"], str):
        refuse(name, "doc_weight", block["doc_weight"], 'a name, or "" for none')


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
