"""A component's settings, checked: its own, and its blocks `decoding` and `learning`.

[components.NAME.learning] says what of a corpus is learnt, and how much each part counts:

    min_freq = 1           tests at fewer training tokens than this get no weights; tests conjoined
                           with labels are counted apart from those conjoined with pairs of labels
    observed_only = false  whether only pairs of a test and a gold label (or pair of them) that
                           occur may have weights
    doc_weight = ""        name of an extension of Doc, doc._.name of gold Docs: the weight of a
                           Doc's log-likelihood, as if the Doc were there so many times; with
                           weight 0 it is left out, and its labels and tests with it
    label_weights = {}     weight of a gold label, 1 for those not named; a sequence counts as
                           much as its gold labels on average (see `gold.weighted`)
    negative_rate = 0.1    share of the tokens that are learnt as outside of spans, of those that an
                           annotated Doc leaves open
    negative_seed = 0      of which tokens these are
    entity_ratio = {}      a penalty on the expected share of tokens in spans (see `loss.ratio`):
                           a section with `ratio`, that share, and if need be `margin`, by which it
                           may be missed, and `strength`
    constrained = false    whether log Z is over legal sequences only
    prior = ""             path of a saved pipeline around whose weights the penalty is
    schedule = []          stages in which groups of templates enter, see below
    stack = {}             whether a first model is learnt, of which templates read what it says:
                           {"folds": 5}, see `StackSettings`

Weights of labels are those of a weighted likelihood: they say how much an example counts, not what
a mistake costs. A rare label with a high weight makes *all* labels of the sequences that have it
count more; of a per-position model, whose sequences are single tokens, only that token.

A schedule is a list of stages, in which tests enter:

    schedule = [{"templates": ["b:", "u:lower[0]"], "steps": 2}, {"templates": "*"}]

Keys of a stage: see `corpus.schedule.Stage`; a single pattern may stand for a list of one.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.encoded import Observations
from ..corpus.schedule import ADMIT, REQUIRE, Stage
from ..decoding.legal import legal_transitions
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..features.attributes import DOC_ENTITY
from ..model.model import KINDS, check_clusters
from ..old_paths import serve_old_names
from ..targets.base import Target
from ..targets.spans import SpanTarget
from .graph_settings import CHAIN, Edge, Inference

if TYPE_CHECKING:
    from ..solvers.base import BatchSolver

Features: TypeAlias = Callable[[Sequence[Doc], str], Observations]
Pair = tuple[str, str]
# What a value must be: a test of it, and the same in words.
Rule: TypeAlias = tuple[Callable[[Any], bool], str]

_PENALTY: Rule = (lambda x: math.isfinite(x) and x >= 0), "a finite number that is not negative"
_FLOAT: Rule = ("float32", "float64").__contains__, '"float32" or "float64"'
_TRUTH: Rule = (lambda x: isinstance(x, bool)), "true or false"
_OWN: dict[str, Rule] = {
    "model": (KINDS.__contains__, "one of " + ", ".join(f'"{kind}"' for kind in KINDS)),
    "clusters": (lambda n: n >= 0, "0 (none) or a number of clusters of labels"),
    "l1": _PENALTY,
    "l2": _PENALTY,
    "sequences": (("sents", "docs").__contains__, '"sents" or "docs"'),
    "dtype": _FLOAT,
    "precision": _FLOAT,
    "threshold": (lambda p: 0.0 <= p <= 1.0, "a probability, from 0 to 1"),
    "n_threads": (lambda n: n >= 0, "0 (all cores) or a number of threads"),
}
_DECODING: dict[str, Rule] = {
    "method": (lambda x: x in ("viterbi", "posterior"), '"viterbi" or "posterior"'),
    "scores": _TRUTH,
    "temperature": ((lambda x: _is_weight(x) and x > 0.0), "a finite number above 0"),
}
_LEARNING: dict[str, Rule] = {
    "min_freq": (lambda n: type(n) is int and n >= 1, "a whole number that is at least 1"),
    "observed_only": _TRUTH,
    "negative_rate": ((lambda x: _is_weight(x) and x <= 1), "a share, from 0 to 1"),
    "negative_seed": (lambda n: type(n) is int and n >= 0, "a whole number that is not negative"),
    "constrained": _TRUTH,
    "prior": (lambda x: isinstance(x, str), 'a path, or "" for none'),
    "doc_weight": (lambda x: isinstance(x, str), 'a name, or "" for none'),
}

# What a config file has as a key when it is read again.
_IS_KEY = re.compile(r"[^\s:=#;\[]([^\n:=]*[^\s:=])?").fullmatch
# What the block `learning` once had, with the value that asks for what is done anyway: pipelines
# that were saved then have it in their configs.
_GONE = {"merge_tests": False}
_STAGE_KEYS = "templates", "steps", "require", "admit", "parents"


@dataclass(frozen=True)
class DecodingSettings:
    """Settings of the block `decoding`.

    method: "viterbi" (the most probable labels of a sequence) or "posterior" (the legal labels with
        the largest sum of marginals: of each token, what is most probable).
    forbidden: pairs [label, next label] that are never predicted, "" = boundary of a sequence.
    allowed: the only pairs that are predicted; empty: all but those that are forbidden.
    scores: whether the probability of each token's label is stored in the Doc, as
        `token._.NAME_score`, and of each entity or span, as its target says.
    temperature: what scores are divided by before they become probabilities, 1 to leave them; best
        labels stay what they are.
    thresholds: by type of entities or spans, in place of the component's threshold.
    """

    method: str = "viterbi"
    forbidden: tuple[Pair, ...] = ()
    allowed: tuple[Pair, ...] = ()
    scores: bool = False
    temperature: float = 1.0
    thresholds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, block: Mapping[str, Any] | None) -> "DecodingSettings":
        """Read the block of component `name`, None for the defaults.

        RAISES: SparseCRFError that names a key that is not known or has a wrong value.
        """
        given = _copied(name, "decoding", block)
        _refuse_unknown(name, Errors.SC401, cls, given)
        for key in given.keys() & {"forbidden", "allowed"}:
            given[key] = _read_pairs(name, key, given[key])
        if "thresholds" in given:
            given["thresholds"] = _read_thresholds(name, given["thresholds"])
        settings = cls(**given)
        _check(name, Errors.SC402, settings, _DECODING)
        return settings


@dataclass(frozen=True)
class StackSettings:
    """Settings of two stages, see `stacking`.

    folds: parts of the corpus, each of which gets labels of a first model that has not seen it; 0:
        there is one stage only.
    steps: outer iterations of first models.
    l1, l2: their penalties; None for those of the component.
    """

    folds: int = 0
    steps: int = 5
    l1: float | None = None
    l2: float | None = None

    @property
    def penalty(self) -> dict[str, float]:
        """The penalties that are given."""
        both = {"l1": self.l1, "l2": self.l2}
        return {key: value for key, value in both.items() if value is not None}


@dataclass(frozen=True)
class LearningSettings:
    """Settings of the block `learning`; see above.

    label_weights: by label, 0 or more; unknown: settings that there were once, and that training
    would need.
    """

    min_freq: int = 1
    observed_only: bool = False
    label_weights: Mapping[str, float] = field(default_factory=dict)
    doc_weight: str = ""
    negative_rate: float = 0.1
    negative_seed: int = 0
    entity_ratio: Mapping[str, float] = field(default_factory=dict)
    constrained: bool = False
    prior: str = ""
    schedule: list[Stage] = field(default_factory=list)
    stack: StackSettings = field(default_factory=StackSettings)
    unknown: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str, block: Mapping[str, Any] | None) -> "LearningSettings":
        """Read the block of component `name`.

        block: settings, defaults for those that are absent; label_weights may be a list of pairs
            [label, weight] too, for labels that a config cannot have as keys.
        RAISES: SparseCRFError for an unknown key or a value out of range. Settings that there were
            once raise in training only (see `check_trainable`), so that what was trained loads.
        """
        given = _copied(name, "learning", block)
        gone = tuple(key for key, idle in _GONE.items() if given.pop(key, idle) is not idle)
        _refuse_unknown(name, Errors.SC350, cls, given)
        if gone:
            warn(Warnings.SCW351.format(name=name, unknown=", ".join(gone)))
        if "label_weights" in given:
            given["label_weights"] = _weights_by_label(name, given["label_weights"])
        if given.get("entity_ratio"):
            given["entity_ratio"] = _read_ratio(name, given["entity_ratio"])
        schedule, stack = given.pop("schedule", []), given.pop("stack", {})
        settings = cls(**given, unknown=gone)
        _check(name, Errors.SC352, settings, _LEARNING)
        stages = read_schedule(name, schedule)
        return replace(settings, schedule=stages, stack=_read_stack(name, stack))

    def check_trainable(self, name: str) -> None:
        """Check what training needs: no setting of old, and that Docs have weights.

        RAISES: SparseCRFError.
        """
        _refuse_unknown(name, Errors.SC350, LearningSettings, self.unknown)
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
        unknown = ", ".join(repr(label) for label in self.label_weights if label not in labels)
        if unknown:
            values = {"unknown": unknown, "known": ", ".join(labels)}
            raise SparseCRFError(Errors.SC353.format(name=name, **values))
        weights = np.array([self.label_weights.get(label, 1.0) for label in labels])
        return None if (weights == 1.0).all() else weights


@dataclass(frozen=True)
class ComponentSettings:
    """Settings of a component.

    model: "chain" (a CRF), "maxent" or "memm": whether p(y | x) is normalised over label sequences,
        or at each token, without or with the label before; or "graph", a chain with more edges.
    clusters: with model = "maxent" and many labels, about the square root of their number: p(y | x)
        is that of y's cluster times that of y in it, for sums over fewer labels; 0 for none.
        Clusters are runs of labels in their order.
    edges: with model = "graph", see `graph_settings`; inference: of it, in training and prediction.
    l1, l2: penalties, >= 0, not divided by anything.
    sequences: "sents" (sentences where a Doc has them, else the Doc) or "docs".
    dtype: "float32" or "float64", how weights are stored.
    precision: "float64", or "float32" to train in half the memory (see `ChainLoss`).
    n_threads: of training; 0 = one a core.
    overwrite: whether annotation that is already set is replaced.
    threshold: entities or spans of a lower probability are left out.
    names: whether names of active tests are stored beside the model.
    """

    model: str
    clusters: int
    edges: tuple[Edge, ...]
    inference: Inference
    l1: float
    l2: float
    sequences: str
    dtype: str
    precision: str
    n_threads: int
    overwrite: bool
    threshold: float
    names: bool
    decoding: DecodingSettings
    learning: LearningSettings

    def __post_init__(self) -> None:
        for key in ("l1", "l2", "threshold"):
            # A config may say 1, of which all that is told, as by checkpoints, is 1.0.
            with suppress(TypeError, ValueError, OverflowError):
                object.__setattr__(self, key, float(getattr(self, key)))

    @property
    def problem(self) -> dict[str, Any]:
        """What is minimised, and in which numbers: arguments of `Training` and of `Stream`."""
        names = "l1", "l2", "dtype", "precision", "clusters"
        return {"kind": self.model, **{name: getattr(self, name) for name in names}}


class Setup(NamedTuple):
    """What a component consists of, but for what it has learnt.

    name: of the component, also the key of its loss; features: hashes the observation tests of
    Docs; target: the annotation that is learnt and written; solver: a batch solver, or one that
    learns from batches too; engine: where training
    computes, see `engines`.
    """

    name: str
    features: Features
    target: Target
    solver: "BatchSolver"
    settings: ComponentSettings
    engine: Any

    def check(self) -> None:
        """Check the settings. RAISES: SparseCRFError that names the config key that is wrong."""
        settings = self.settings
        for key, part, fits in (
            ("features", self.features, callable(self.features)),
            ("target", self.target, isinstance(self.target, Target)),
            ("solver", self.solver, callable(getattr(self.solver, "step", None))),
            ("engine", self.engine, callable(getattr(self.engine, "compile", None))),
        ):
            if not fits:
                told = {"name": self.name, "key": key, "found": type(part).__name__}
                raise SparseCRFError(Errors.SC662.format(**told))
        _check(self.name, Errors.SC205, settings, _OWN)
        check_clusters(settings.model, settings.clusters)
        self._check_stack()
        self._check_chains()
        is_graph = settings.model == "graph"
        of_spans = isinstance(self.target, SpanTarget) and settings.decoding.scores
        for key, fits in (
            ("] edges", is_graph or [edge.form for edge in settings.edges] == [CHAIN]),
            ("] threshold", not (is_graph and settings.threshold)),
            (".decoding] scores", not (is_graph and of_spans)),
            (".learning] stack", not (is_graph and settings.learning.stack.folds)),
        ):
            if not fits:
                raise SparseCRFError(Errors.SC236.format(name=self.name, key=key))
        for key, value in (
            ("threshold", settings.threshold),
            ("decoding.thresholds", settings.decoding.thresholds),
        ):
            if value and not isinstance(self.target, SpanTarget):
                raise SparseCRFError(Errors.SC504.format(name=self.name, key=key, value=value))
        if settings.model == "graph" and settings.decoding.temperature != 1.0:
            values = {"value": settings.decoding.temperature, "expected": "1.0 for graphs"}
            raise SparseCRFError(Errors.SC402.format(name=self.name, key="temperature", **values))

    def _check_stack(self) -> None:
        """Check that templates read a first model where there is one. RAISES: SparseCRFError."""
        reads = {read.name for read in getattr(self.features, "stacked", ())}
        folds, schedule = self.settings.learning.stack.folds, self.settings.learning.schedule
        if bool(folds) != bool(reads):
            message = Errors.SC411 if folds else Errors.SC416
            raise SparseCRFError(message.format(name=self.name, reads=", ".join(sorted(reads))))
        for key, value in ("schedule", schedule), ("prior", self.settings.learning.prior):
            if folds and value:
                raise SparseCRFError(Errors.SC412.format(name=self.name, key=key))
        if DOC_ENTITY in reads and not isinstance(self.target, SpanTarget):
            raise SparseCRFError(Errors.SC413.format(name=self.name))

    def _check_chains(self) -> None:
        """Check that settings can be combined with spans that overlap. RAISES: SparseCRFError."""
        own, learning = self.settings, self.settings.learning
        given = {
            f'] model = "{own.model}"': own.model != "chain",
            ".decoding] forbidden": own.decoding.forbidden,
            ".decoding] allowed": own.decoding.allowed,
            ".learning] label_weights": learning.label_weights,
            ".learning] entity_ratio": learning.entity_ratio,
            ".learning] constrained": learning.constrained,
            ".learning] schedule": learning.schedule,
            ".learning] stack": learning.stack.folds,
        }
        for key in given if getattr(self.target, "overlap", None) is not None else ():
            if given[key]:
                raise SparseCRFError(Errors.SC424.format(name=self.name, key=key))

    def legal(self, labels: Sequence[str]) -> NDArray[np.bool_] | None:
        """Combine the target's scheme with the settings; see `legal_transitions`.

        RAISES: SparseCRFError for unknown labels, and where no sequence of some length is legal.
        """
        own = self.settings.decoding
        return legal_transitions(labels, own.forbidden, own.allowed, self.target.legal(labels))


def read_inference(name: str, block: Mapping[str, Any] | None) -> Inference:
    """Read the block `inference` of component `name`, None for the defaults.

    RAISES: SparseCRFError that names a key that is not known or has a wrong value.
    """
    given = _copied(name, "inference", block)
    _refuse_unknown(name, Errors.SC237, Inference, given)
    return Inference(**given)


def _copied(name: str, key: str, block: object) -> dict[str, Any]:
    """A copy of a block of settings. RAISES: SparseCRFError for a part that was made of it."""
    if not block:
        return {}
    if not isinstance(block, Mapping):
        told = {"name": name, "key": key, "value": block, "expected": "a block of settings"}
        raise SparseCRFError(Errors.SC205.format(**told))
    return dict(block)


def _check(name: str, message: str, settings: object, rules: Mapping[str, Rule]) -> None:
    """Hold settings of component `name` against rules. RAISES: SparseCRFError with the message."""
    for key, (fits, expected) in rules.items():
        value = getattr(settings, key)
        try:
            is_sound = fits(value)
        except (TypeError, OverflowError):
            is_sound = False  # It is not even of a type that the rule is about.
        if not is_sound:
            raise SparseCRFError(message.format(name=name, key=key, value=value, expected=expected))


def _refuse_unknown(name: str, message: str, kind: Any, given: Iterable[str]) -> None:
    """Refuse keys that are no settings of a block. RAISES: SparseCRFError with the message."""
    known = [setting.name for setting in fields(kind) if setting.name != "unknown"]
    unknown = ", ".join(key for key in given if key not in known)
    if unknown:
        raise SparseCRFError(message.format(name=name, unknown=unknown, known=", ".join(known)))


def _read_pairs(name: str, key: str, pairs: Any) -> tuple[Pair, ...]:
    """Check a list of pairs of labels."""
    sound = isinstance(pairs, (list, tuple)) and all(
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and all(isinstance(label, str) for label in pair)
        for pair in pairs
    )
    if not sound:
        expected = 'a list of pairs of labels, such as [["DT", "VB"]], "" for a boundary'
        values = {"key": key, "value": pairs, "expected": expected}
        raise SparseCRFError(Errors.SC402.format(name=name, **values))
    return tuple((first, second) for first, second in pairs)


def _read_thresholds(name: str, given: Any) -> dict[str, float]:
    """Thresholds by type from a dict, or from a list of pairs."""
    try:
        found = dict(given)
        fits = all(isinstance(key, str) and 0.0 <= x <= 1.0 for key, x in found.items())
    except (TypeError, ValueError):
        fits = False
    if not fits:
        expected = "a section of types with probabilities, from 0 to 1, or a list of such pairs"
        values = {"key": "thresholds", "value": given, "expected": expected}
        raise SparseCRFError(Errors.SC402.format(name=name, **values))
    return {key: float(x) for key, x in found.items()}


def as_section(by_label: Mapping[str, float]) -> Any:
    """What a config has for numbers by label: pairs where a label is lost as a key."""
    return dict(by_label) if all(map(_IS_KEY, by_label)) else list(map(list, by_label.items()))


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
        _refuse(name, "label_weights", given, expected)
    weights: dict[str, float] = {}
    for pair in pairs:
        fits = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not fits or not isinstance(pair[0], str) or not _is_weight(pair[1]):
            _refuse(name, "label_weights", given, expected)
        weights[pair[0]] = float(pair[1])
    return weights


def _read_ratio(name: str, given: Any) -> dict[str, float]:
    """The setting `entity_ratio` with its defaults; strength is in nats."""
    defaults: dict[str, float] = {"margin": 0.0, "strength": 20.0}
    own = defaults | dict(given) if isinstance(given, Mapping) else {}
    fits = own.keys() == {"ratio", *defaults} and all(map(_is_weight, own.values()))
    if not fits or own["ratio"] > 1.0 or own["strength"] == 0.0:
        expected = "a section with `ratio`, from 0 to 1, and, if need be, `margin` >= 0"
        _refuse(name, "entity_ratio", given, f"{expected} and `strength` > 0")
    return {key: float(value) for key, value in own.items()}


def _is_weight(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        return False
    return math.isfinite(value) and float(value) >= 0.0


def _read_stack(name: str, value: Any) -> StackSettings:
    """Check the setting of component `name`. RAISES: SparseCRFError for anything malformed."""
    keys = {own.name for own in fields(StackSettings)}
    if not isinstance(value, Mapping) or not value.keys() <= keys:
        _refuse(name, "stack", value, f"a section of {', '.join(sorted(keys))}")
    fits, expected = _PENALTY
    for key in value.keys() & {"l1", "l2"}:
        if value[key] is not None and not (_is_weight(value[key]) and fits(value[key])):
            _refuse(name, f"stack {key}", value[key], expected)
    for key, least in (("folds", 2), ("steps", 1)):
        n = value.get(key, least)
        if type(n) is not int or (n < least and (key, n) != ("folds", 0)):
            _refuse(name, f"stack {key}", n, f"a whole number that is at least {least}")
    return StackSettings(**value)


def read_schedule(name: str, value: Any) -> list[Stage]:
    """Check the setting of component `name`. RAISES: SparseCRFError for anything malformed."""
    if not isinstance(value, (list, tuple)):
        _refuse(name, "schedule", value, 'a list of stages, such as {"templates": ["u:lower[0]"]}')
    return [_read_stage(name, f"schedule, stage {i},", s) for i, s in enumerate(value, start=1)]


def _read_stage(name: str, key: str, stage: Any) -> Stage:
    fits = isinstance(stage, Mapping) and "templates" in stage and set(stage) <= set(_STAGE_KEYS)
    if not fits:
        keys = ", ".join(_STAGE_KEYS[1:])
        _refuse(name, key, stage, f"a section with `templates` and, if need be, {keys}")
    steps, require = stage.get("steps", 0), stage.get("require", "all")
    if type(steps) is not int or steps < 0:
        _refuse(name, f"{key} steps", steps, "a whole number >= 0, 0 = until they converge")
    admit = stage.get("admit", "tests")
    for part, value, known in (("require", require, REQUIRE), ("admit", admit, ADMIT)):
        if value not in known:
            _refuse(name, f"{key} {part}", value, f"one of {', '.join(known)}")
    parents = stage.get("parents", {})
    if not isinstance(parents, Mapping):
        _refuse(name, f"{key} parents", parents, 'a section such as {"u:lower[-1]|lower[0]": []}')
    templates = _patterns(name, f"{key} templates", stage["templates"])
    own = {child: _patterns(name, f"{key} parents", found) for child, found in parents.items()}
    return Stage(templates, steps, require, admit, own)


def _patterns(name: str, key: str, value: Any) -> tuple[str, ...]:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(p, str) for p in patterns):
        _refuse(name, key, value, "a template, a pattern of templates, or a list of them")
    return tuple(patterns)


def _refuse(name: str, key: str, value: object, expected: str) -> NoReturn:
    """Raise SparseCRFError for a setting of the block `learning`."""
    message = Errors.SC352.format(name=name, key=key, value=value, expected=expected)
    raise SparseCRFError(message)


serve_old_names(__name__)
