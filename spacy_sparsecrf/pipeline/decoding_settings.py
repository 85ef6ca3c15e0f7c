"""The block [components.NAME.decoding]: how labels are found, and what is stored with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import legal_transitions
from ..errors import Errors, SparseCRFError

if TYPE_CHECKING:
    from ..targets.base import Target

METHODS = ("viterbi", "posterior")
Pair = tuple[str, str]


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
        forbidden = _pairs(name, "forbidden", block.get("forbidden", ()))
        allowed = _pairs(name, "allowed", block.get("allowed", ()))
        return cls(method, forbidden, allowed, scores)

    def legal(self, target: "Target", labels: Sequence[str]) -> NDArray[np.bool_] | None:
        """Combine these settings with a target's scheme; see `legal_transitions`.

        RAISES: SparseCRFError for unknown labels, and where no sequence of some length is legal.
        """
        return legal_transitions(labels, self.forbidden, self.allowed, target.legal(labels))


def _pairs(name: str, key: str, pairs: Any) -> tuple[Pair, ...]:
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
