"""A component's settings, checked: those of its own, and the block [components.NAME.decoding].

The block [components.NAME.learning] has a module of its own, `learning_settings`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.encoded import Observations
from ..decoding.legal import legal_transitions
from ..errors import Errors, SparseCRFError
from ..model.model import KINDS, check_clusters
from ..targets.base import Target
from ..targets.spans import SpanTarget
from .learning_settings import LearningSettings

if TYPE_CHECKING:
    from ..solvers.base import BatchSolver

Features: TypeAlias = Callable[[Sequence[Doc], str], Observations]

METHODS = ("viterbi", "posterior")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Settings:
    """Settings of a component that are not blocks.

    model: "chain" (a CRF), "maxent" or "memm": whether p(y | x) is normalised over label sequences,
        or at each token, without or with the label before.
    clusters: with model = "maxent" and many labels, about the square root of their number: p(y | x)
        is that of y's cluster times that of y in it, for sums over fewer labels; 0 for none.
        Clusters are runs of labels in their order.
    l1, l2: penalties, >= 0, not divided by anything.
    sequences: "sents" (sentences where a Doc has them, else the Doc) or "docs".
    dtype: "float32" or "float64", how weights are stored.
    precision: "float64", or "float32" to train in half the memory (see `ChainLoss`).
    n_threads: of training; 0 = one a core.
    overwrite: whether annotation that is already set is replaced.
    threshold: entities or spans of a lower probability are left out.
    names: whether names of active tests are stored beside the model.
    """

    model: str = "chain"
    clusters: int = 0
    l1: float = 0.1
    l2: float = 0.3
    sequences: str = "sents"
    dtype: str = "float32"
    precision: str = "float64"
    n_threads: int = 0
    overwrite: bool = False
    threshold: float = 0.0
    names: bool = True

    @property
    def problem(self) -> dict[str, Any]:
        """What is minimised, and in which numbers: arguments of `Training` and of `Stream`."""
        names = "l1", "l2", "dtype", "precision", "clusters"
        return {"kind": self.model, **{name: getattr(self, name) for name in names}}

    def check(self, name: str, target: Target) -> None:
        """Check every setting.

        name: of the component; target: what it learns.
        RAISES: SparseCRFError that names the config key of a setting out of range.
        """
        if self.model not in KINDS:
            known = ", ".join(f'"{kind}"' for kind in KINDS)
            _refuse(name, "model", self.model, f"one of {known}")
        if self.clusters < 0:
            _refuse(name, "clusters", self.clusters, "0 (none) or a number of clusters of labels")
        check_clusters(self.model, self.clusters)
        for key in ("l1", "l2"):
            value = getattr(self, key)
            if not (math.isfinite(value) and value >= 0):
                _refuse(name, key, value, "a finite number that is not negative")
        if self.sequences not in ("sents", "docs"):
            _refuse(name, "sequences", self.sequences, '"sents" or "docs"')
        for key in ("dtype", "precision"):
            if getattr(self, key) not in ("float32", "float64"):
                _refuse(name, key, getattr(self, key), '"float32" or "float64"')
        if not 0.0 <= self.threshold <= 1.0:
            _refuse(name, "threshold", self.threshold, "a probability, from 0 to 1")
        if self.n_threads < 0:
            _refuse(name, "n_threads", self.n_threads, "0 (all cores) or a number of threads")
        if self.threshold and not isinstance(target, SpanTarget):
            raise SparseCRFError(Errors.SC504.format(name=name, value=self.threshold))


@dataclass(frozen=True)
class DecodingSettings:
    """Settings of decoding.

    method: "viterbi" (the most probable labels of a sequence) or "posterior" (the legal labels with
        the largest sum of marginals: of each token, what is most probable).
    forbidden: pairs [label, next label] that are never predicted, "" = boundary of a sequence.
    allowed: the only pairs that are predicted; empty: all but those that are forbidden.
    scores: whether the probability of each token's label is stored in the Doc, as
        `doc.user_data["NAME_scores"]`, [tokens] float32.
    """

    method: str = "viterbi"
    forbidden: tuple[Pair, ...] = ()
    allowed: tuple[Pair, ...] = ()
    scores: bool = False

    @classmethod
    def read(cls, name: str, block: Mapping[str, Any] | None) -> "DecodingSettings":
        """Read the block of component `name`, None for the defaults.

        RAISES: SparseCRFError that names a key that is not known or has a wrong value.
        """
        if block is None:
            return cls()
        known = [field.name for field in fields(cls)]
        unknown = [key for key in block if key not in known]
        if unknown:
            values = {"unknown": ", ".join(unknown), "known": ", ".join(known)}
            raise SparseCRFError(Errors.SC401.format(name=name, **values))
        method, scores = block.get("method", "viterbi"), block.get("scores", False)
        if method not in METHODS:
            expected = " or ".join(f'"{method}"' for method in METHODS)
            raise _refusal(name, "method", method, expected)
        if not isinstance(scores, bool):
            raise _refusal(name, "scores", scores, "true or false")
        forbidden = _read_pairs(name, "forbidden", block.get("forbidden", ()))
        allowed = _read_pairs(name, "allowed", block.get("allowed", ()))
        return cls(method, forbidden, allowed, scores)

    def legal(self, target: Target, labels: Sequence[str]) -> NDArray[np.bool_] | None:
        """Combine these settings with a target's scheme; see `legal_transitions`.

        RAISES: SparseCRFError for unknown labels, and where no sequence of some length is legal.
        """
        return legal_transitions(labels, self.forbidden, self.allowed, target.legal(labels))


class Setup(NamedTuple):
    """What a component consists of, but for what it has learnt.

    name: of the component; features: hashes the observation tests of Docs; target: the annotation
    that is learnt and written.
    """

    name: str
    features: Features
    target: Target
    solver: "BatchSolver"
    settings: Settings
    decoding: DecodingSettings
    learning: LearningSettings

    def legal(self, labels: Sequence[str]) -> NDArray[np.bool_] | None:
        """Which labels may follow which, see `DecodingSettings.legal`."""
        return self.decoding.legal(self.target, labels)


def _refuse(name: str, key: str, value: object, expected: str) -> None:
    message = Errors.SC205.format(name=name, key=key, value=value, expected=expected)
    raise SparseCRFError(message)


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
        raise _refusal(name, key, pairs, expected)
    return tuple((first, second) for first, second in pairs)


def _refusal(name: str, key: str, value: object, expected: str) -> SparseCRFError:
    return SparseCRFError(Errors.SC402.format(name=name, key=key, value=value, expected=expected))
