"""Validated settings of a component, and of its blocks `decoding` and `learning`.

[components.NAME.learning] selects features and weights the parts of a corpus:

    min_freq = 1           features that occur at fewer training tokens get no weights; features of
                           labels and features of label pairs are counted separately
    observed_only = false  whether weights are limited to pairs of a feature and a gold label (or
                           label pair) that occur in the training data
    doc_weight = ""        name of a Doc extension of gold Docs: the weight of a Doc's
                           log-likelihood, as if the corpus contained the Doc so many times; a Doc
                           with weight 0 is left out, with its labels and features
    label_weights = {}     weights of gold labels, 1 for labels not named; the weight of a sequence
                           is multiplied by the mean over its gold labels (see `transform.weighted`)
    negative_rate = 0.1    share of the unannotated tokens of partly annotated Docs that are learnt
                           as outside of spans
    negative_seed = 0      seed for the selection of these tokens
    constrained = false    whether log Z is over valid sequences only
    prior = ""             path of a saved pipeline; the penalty is centred on its weights
    stack = {}             settings of a first-stage model, whose predictions templates read:
                           {"folds": 5}, see `StackSettings`
    clusters = 0           number of clusters of labels for model = "maxent" with many labels, about
                           the square root of their number, 0 for none: p(y | x) is then
                           p(cluster of y | x) p(y | cluster, x), with sums over fewer labels;
                           clusters are runs of consecutive labels
    dtype = "float32"      type of stored weights, or "float64"
    precision = "float64"  or "float32", to train in half the memory (see `ChainLoss`)
    store_feature_names = true    whether names of active features are stored with the model

Label weights define a weighted likelihood: how much an example counts, not the cost of a mistake.
A high weight of a rare label raises the weight of *all* labels in the same sequences; in a
per-position model, whose sequences are single tokens, it affects that token only.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from spacy.tokens import Doc
from typing_extensions import Self

from .. import compatible
from ..crf.corpus.encoded import Observations
from ..crf.decoding.once import Once
from ..crf.decoding.transitions import combined_transitions
from ..crf.memory import check_labels_fit
from ..crf.model.model import Kind
from ..errors import Errors, SparseCRFError, nearest, unknown_setting
from ..registry import PartRegistry, crf_engines, crf_features, crf_solvers, crf_targets
from .facts import facts_of
from .targets.scheme import OUTSIDE
from .targets.spans import SpanTarget
from .targets.target import Target

if TYPE_CHECKING:
    from ..crf.solvers.solver import BatchSolver

Features: TypeAlias = Callable[[Sequence[Doc], str], Observations]

# Keys that survive writing and reading a config.
_IS_KEY = re.compile(r"[^\s:=#;\[]([^\n:=]*[^\s:=])?").fullmatch


# Types of settings, with a description of valid values for messages


def _from_text(value: Any) -> Any:
    """Convert a number that is a string in a config because it is not JSON, such as .5."""
    return float(value) if isinstance(value, str) else value


def _by_label(value: Any) -> Any:
    """Convert a list of pairs to a dict."""
    if not isinstance(value, (list, tuple)):
        return value
    try:
        return dict(value)
    except TypeError as error:
        raise ValueError(value) from error


def _of_labels(value: Any) -> Any:
    """Do `_by_label`; refuse keys that a saved config would lose."""
    if isinstance(value, Mapping) and not all(map(_IS_KEY, value)):
        raise ValueError(value)
    return _by_label(value)


_OR_DEFAULTS = BeforeValidator(lambda given: given or {})
_Number = Annotated[
    float, Field(strict=True, ge=0.0, allow_inf_nan=False, description="a finite number >= 0")
]
_Penalty = Annotated[_Number, BeforeValidator(_from_text)]
_Weight = Annotated[_Number, Field(le=1e6)]
_Probability = Annotated[
    float, Field(strict=True, ge=0.0, le=1.0, description="a probability, from 0 to 1")
]
_Natural = Annotated[int, Field(strict=True, ge=0, description="a whole number >= 0")]
_Positive = Annotated[int, Field(strict=True, ge=1, description="a whole number >= 1")]
_Truth = Annotated[bool, Field(strict=True, description="true or false")]
_Float = Annotated[Literal["float32", "float64"], Field(description='"float32" or "float64"')]
_Pairs = Annotated[
    tuple[tuple[str, str], ...],
    Field(description='a list of pairs of labels, such as [["DT", "VB"]], "" for a boundary'),
]


class SettingsBlock(BaseModel):
    """A block of settings; the description of each field states its valid values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def validated(cls, name: str, given: Mapping[str, Any]) -> Self:
        """Validate the settings of component `name`.

        RAISES: SparseCRFError that names the key that is unknown or has a wrong value.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise SparseCRFError(_describe(cls, name, given, error)) from None


def _describe(owner: type[SettingsBlock], name: str, given: Any, error: ValidationError) -> str:
    """Describe the first wrong setting: its key, value, and valid values or the nearest key."""
    fault, value, expected, path = error.errors()[0], given, "", list[str]()
    keys = list(fault["loc"])
    unknown = str(keys.pop()) if fault["type"] == "extra_forbidden" else ""
    for key in keys:
        value = value[key]
        path.append(str(key))
        field = owner.model_fields[str(key)]
        kind = field.annotation
        if not (isinstance(kind, type) and issubclass(kind, SettingsBlock)):
            expected = field.description or ""
            break
        owner, expected = kind, f"a section of {', '.join(kind.model_fields)}"
    if unknown:
        fields = list(owner.model_fields)
        block = ".".join(["components", name, *path])
        return str(unknown_setting(block, unknown, fields))
    block = ".".join(["components", name, *path[: len(path) > 1]])
    inner = ", ".join(path[len(path) > 1 :])
    return Errors.SC205.format(block=block, key=inner, value=value, expected=expected)


class DecodingSettings(SettingsBlock):
    """Settings of the block `decoding`.

    method: "viterbi" (the most probable labels of a sequence) or "posterior" (the valid labels with
        the largest sum of marginals, which maximise the expected number of correct tokens).
    forbidden: pairs [label, next label] that are never predicted, "" = boundary of a sequence.
    allowed: the only pairs that may be predicted; empty: all pairs that are not forbidden.
    scores: whether to store the probability of each token's label in `token._.NAME_score`, and of
        each entity in `span._.ents_score`.
    temperature: scores are divided by it before probabilities are computed; 1 for no change; the
        best labels do not change.
    outside_weight: added to the score of the outside label to choose labels; probabilities do not
        use it. Values below 0 give more entities or spans (Minkov et al. 2006).
    thresholds: by type of entities or spans, or by label, in place of the component's threshold.
    once: labels, or types of entities or spans, that form at most one run in a sequence.
    """

    method: Literal["viterbi", "posterior"] = Field(
        default="viterbi", description='"viterbi" or "posterior"'
    )
    forbidden: _Pairs = ()
    allowed: _Pairs = ()
    scores: _Truth = False
    temperature: float = Field(
        default=1.0, strict=True, ge=1e-3, le=1e3, description="a number from 0.001 to 1000"
    )
    outside_weight: float = Field(
        default=0.0, strict=True, ge=-1e6, le=1e6, description="a number from -1e6 to 1e6"
    )
    thresholds: Annotated[dict[str, _Probability], BeforeValidator(_by_label)] = Field(
        default={},
        description="a section of types with probabilities, from 0 to 1, or a list of pairs",
    )
    once: tuple[str, ...] = Field(default=(), description='a list of names, such as ["LOC"]')


class StackSettings(SettingsBlock):
    """Settings of two-stage models, see `pipeline.stacking.first_stage`.

    folds: number of parts of the corpus; a first-stage model trained on the other parts labels each
        part; 0: there is one stage only.
    steps: maximum of outer iterations of first-stage models.
    l1, l2: penalties of first-stage models; None: the penalties of the component.
    """

    folds: Literal[0] | Annotated[int, Field(strict=True, ge=2)] = Field(
        default=0, description="a whole number that is at least 2"
    )
    steps: _Positive = 5
    l1: _Number | None = Field(default=None, description="a finite number >= 0")
    l2: _Number | None = Field(default=None, description="a finite number >= 0")


class WarmStartSettings(SettingsBlock):
    """Settings of the warm start, see `crf.solvers.warm_start`; None: the default of the solver."""

    epochs: _Natural | None = Field(default=None, description="a whole number >= 0")
    averaged: _Truth | None = Field(default=None, description="true or false")
    seed: _Natural | None = Field(default=None, description="a whole number >= 0")
    evaluated: _Truth | None = Field(default=None, description="true or false")


class PolishSettings(SettingsBlock):
    """Settings of polishing, see `crf.training.run.Polish`."""

    iterations: _Natural = 0
    l2: _Number = 1e-5


class LearningSettings(SettingsBlock):
    """Settings of the block `learning`; see above.

    label_weights: by label, 0 to 1e6.
    """

    min_freq: _Positive = 1
    observed_only: _Truth = False
    label_weights: Annotated[dict[str, _Weight], BeforeValidator(_of_labels)] = Field(
        default={},
        description="a section of labels with numbers from 0 to 1e6, or, for labels that a saved "
        'config would lose as keys, a list of pairs, such as [[":", 2.0]]',
    )
    doc_weight: str = Field(default="", description='a name, or "" for none')
    negative_rate: _Probability = 0.1
    negative_seed: _Natural = 0
    constrained: _Truth = False
    prior: str = Field(default="", description='a path, or "" for none')
    stack: Annotated[StackSettings, _OR_DEFAULTS] = StackSettings()
    warm_start: Annotated[WarmStartSettings, _OR_DEFAULTS] = WarmStartSettings()
    polish: Annotated[PolishSettings, _OR_DEFAULTS] = PolishSettings()
    clusters: _Natural = 0
    dtype: _Float = "float32"
    precision: _Float = "float64"
    store_feature_names: _Truth = True

    def weights_of(self, name: str, labels: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the weights of labels: [Y] float64, or None if all are 1.

        RAISES: SparseCRFError for the weight of an unknown label.
        """
        if not self.label_weights:
            return None
        unknown = ", ".join(repr(label) for label in self.label_weights if label not in labels)
        if unknown:
            values = {"unknown": unknown, "known": ", ".join(labels)}
            raise SparseCRFError(Errors.SC353.format(name=name, **values))
        weights = np.array([self.label_weights.get(label, 1.0) for label in labels])
        return None if (weights == 1.0).all() else weights


class ComponentSettings(SettingsBlock):
    """Settings of a component.

    model: "chain" (a CRF, p(y | x) is normalised over label sequences), or "maxent" or "memm"
        (normalised at each token, without or with the previous label).
    l1, l2: penalties, >= 0, not scaled by the number of sequences or tokens.
    sequences: "docs" (in training, up to ten short Docs are a sequence, because texts have several
        sentences) or "sents" (sentences, or the whole Doc if it has none, as it is).
    n_threads: number of threads for training; 0 = one per core.
    overwrite: whether existing annotation is replaced.
    threshold: entities, spans, or tokens with a lower probability are left out, or outside.
    """

    model: Kind = Field(description='one of "chain", "maxent", "memm"')
    l1: _Penalty
    l2: _Penalty
    sequences: Literal["docs", "sents"] = Field(description='"docs" or "sents"')
    n_threads: _Natural
    overwrite: _Truth
    threshold: Annotated[_Probability, BeforeValidator(_from_text)]
    decoding: Annotated[DecodingSettings, _OR_DEFAULTS]
    learning: Annotated[LearningSettings, _OR_DEFAULTS]


class NotCopied:
    """A part of a component that copies and pickles of it lack: their value is None."""

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Return the parts of None."""
        return type(None), ()


class Setup(NamedTuple):
    """The parts and settings of a component, without learnt values.

    name: of the component, also the key of its loss; features: hashes the observation features of
    Docs; target: the annotation that is learnt and written; solver: minimises the objective;
    engine: reads and holds the corpus for training, see `engines`.
    """

    name: str
    features: Features
    target: Target
    solver: "BatchSolver[Any]"
    settings: ComponentSettings
    engine: Any

    def check(self) -> None:
        """Check the settings. RAISES: SparseCRFError that names the wrong config key."""
        parts: dict[str, tuple[bool, PartRegistry, str]] = {
            "features": (callable(self.features), crf_features, "Templates"),
            "target": (isinstance(self.target, Target), crf_targets, "TokenAttribute"),
            "solver": (hasattr(self.solver, "step"), crf_solvers, "OWLQN"),
            "engine": (hasattr(self.engine, "divides"), crf_engines, "Threads"),
        }
        for key, (fits, registry, default) in parts.items():
            if not fits:
                part = getattr(self, key)
                message = Errors.SC662.format(
                    name=self.name,
                    key=key,
                    found=repr(part)[:60],
                    example=registry.full_name(part) or registry.full_name(default),
                    registry=registry.namespace[-1],
                )
                raise SparseCRFError(message)
        compatible.check(facts_of(self), self.name)

    def preference(self, labels: Sequence[str]) -> tuple[int, float] | None:
        """Return the outside label, if any, and its weight; see `crf.decoding.decoder.Decoder`."""
        outside, weight = (
            self.target.outside_label or OUTSIDE,
            self.settings.decoding.outside_weight,
        )
        return (labels.index(outside), weight) if outside in labels else None

    def once(self, labels: Sequence[str]) -> Once:
        """Return the constraint of `once`. RAISES: SparseCRFError for an unknown name."""
        names, where = self.settings.decoding.once, f"[components.{self.name}.decoding] once"
        return Once(labels, names, isinstance(self.target, SpanTarget), where)

    def transitions_of(self, labels: Sequence[str]) -> NDArray[np.bool_] | None:
        """Combine the target's valid transitions with the settings; see `combined_transitions`.

        RAISES: SparseCRFError for unknown names, also in `thresholds` and `once`, if no sequence
            of some length is valid, and for more labels than fit in memory.
        """
        check_labels_fit(len(labels), f"Component '{self.name}'")
        decoding, valid = self.settings.decoding, self.target.valid_transitions(labels)
        names = self.target.names_of(labels)
        if not isinstance(self.target, SpanTarget) and (outside := self.target.outside_label):
            if outside not in labels:
                where = f"[components.{self.name}.target] outside"
                hint = {"nearest": nearest(outside, labels), "known": ", ".join(labels)}
                raise SparseCRFError(Errors.SC419.format(where=where, name=outside, **hint))
            names = tuple(name for name in names if name != outside)
        if unknown := ", ".join(repr(name) for name in decoding.thresholds if name not in names):
            values = {"unknown": unknown, "known": ", ".join(names)}
            raise SparseCRFError(Errors.SC417.format(name=self.name, **values))
        if decoding.once:
            self.once(labels)
        if valid is None and not decoding.forbidden and not decoding.allowed:
            return None
        return combined_transitions(
            labels, forbidden=decoding.forbidden, allowed=decoding.allowed, scheme=valid
        )


def as_section(by_label: Mapping[str, float]) -> Any:
    """Return numbers by label for a config, as pairs if a label cannot be a key."""
    return dict(by_label) if all(map(_IS_KEY, by_label)) else list(map(list, by_label.items()))
