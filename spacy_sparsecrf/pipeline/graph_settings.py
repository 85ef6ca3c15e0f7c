"""Settings of model = "graph": edges between tokens of a Doc, and approximate inference.

    edges = ["chain", "same(lower, if=is_title)", "link(_.head)", "rows"]

    chain                    adjacent tokens, with the b: templates of a chain
    same(ATTR)               tokens with the same value of an attribute; `if=ATTR`: only tokens for
                             which another attribute is true; `most=N`: with at most the N nearest
                             previous tokens (default 1); `far=N`: at most N tokens apart
    link(_.NAME)             token._.NAME is the position in the Doc of the other token, a list of
                             positions, or None
    rows, columns            tokens with `_.row` and `_.column`: adjacent tokens in a row, or in a
                             column

Both tokens belong to the same sequence; with sequences = "docs", to the same Doc.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Errors, SparseCRFError
from ..features.attributes import ANNOTATION, WORD

CHAIN = "chain"
METHODS = ("lbp", "mean_field", "pseudo_likelihood")
_SCHEDULES = ("sweep", "parallel")
_FORM = re.compile(r"(chain|rows|columns)|(same|link)\(([^()]*)\)")
_ATTRIBUTE = re.compile(r"_\.\w+|\w+")
_NUMBERS = ("most", "far")


@dataclass(frozen=True)
class Edge:
    """A type of edge. text: as in the config; the rest as above, "" and 0 if not given."""

    text: str
    form: str
    attribute: str = ""
    condition: str = ""
    most: int = 1
    far: int = 0


@dataclass(frozen=True, kw_only=True)
class Inference:
    """The approximation of log Z and marginals of graphs.

    method: "lbp", loopy belief propagation, which is exact in forests; "mean_field";
        "pseudo_likelihood".
    schedule: order of messages: "sweep", forward and backward by node, or "parallel", all at once.
    damping: share of the old message that is kept, 0 <= damping < 1.
    limit: maximum of iterations; graphs that have not converged by then raise warning SCW370.
    tolerance: inference has converged if no message, or mean-field belief, changes by more.
    RAISES: SparseCRFError for a value that is unknown or out of range.
    """

    method: str = "lbp"
    schedule: str = "sweep"
    damping: float = 0.0
    limit: int = 200
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        for key, valid, expected in (
            ("method", self.method in METHODS, f"one of {', '.join(METHODS)}"),
            ("schedule", self.schedule in _SCHEDULES, f"one of {', '.join(_SCHEDULES)}"),
            ("damping", 0 <= self.damping < 1, "at least 0 and below 1"),
            ("limit", self.limit >= 1, "at least 1"),
            ("tolerance", self.tolerance >= 0, "at least 0"),
        ):
            if not valid:
                value = getattr(self, key)
                raise SparseCRFError(Errors.SC373.format(key=key, value=value, expected=expected))


def parse_edges(name: str, texts: Sequence[str]) -> tuple[Edge, ...]:
    """Read the setting `edges` of component `name`. RAISES: SparseCRFError."""
    return tuple(_parse_edge(name, text) for text in texts)


def _parse_edge(name: str, text: Any) -> Edge:
    found = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise SparseCRFError(Errors.SC233.format(name=name, edge=text))
    form, arguments = found[1] or found[2], [part.strip() for part in (found[3] or "").split(",")]
    settings: dict[str, Any] = {"attribute": arguments[0]}
    for argument in arguments[1:]:
        key, _, value = argument.partition("=")
        if form != "same":
            settings["condition"] = "?"
        elif key in _NUMBERS and value.isdecimal() and int(value) > 0:
            settings[key] = int(value)
        else:
            settings["condition"] = value if key == "if" else "?"
    attributes = [settings["attribute"], settings.get("condition", "")]
    known = all(map(_is_known, filter(None, attributes)))
    fits = bool(attributes[0]) == (found[2] is not None)
    if not (known and fits) or (form == "link" and not attributes[0].startswith("_.")):
        raise SparseCRFError(Errors.SC233.format(name=name, edge=text))
    return Edge(text, form, **settings)


def _is_known(attribute: str) -> bool:
    is_own = attribute in WORD or (attribute in ANNOTATION and attribute != "glued")
    return is_own or (attribute.startswith("_.") and bool(_ATTRIBUTE.fullmatch(attribute)))
