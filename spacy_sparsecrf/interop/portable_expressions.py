"""Regular expressions that Python and JavaScript (flag u) read alike."""

import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

# The module is private, but its syntax trees are the same in all versions.
_PARSER: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
EVERY = "".join(map(chr, range(sys.maxunicode + 1)))
_SPECIAL = re.compile(r"[\^$\\.*+?()\[\]{}|/]")
_SIGNS = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}
_SIGNS |= {name.replace("Y_", "Y_NOT_"): sign.upper() for name, sign in _SIGNS.items()}
_POSITIONS = {
    "AT_BEGINNING": "^",
    "AT_BEGINNING_STRING": "^",
    # Without (?!\n), Python's $ is also before a line break at the end.
    "AT_END": r"(?=\n?$(?!\n))",
    "AT_END_STRING": r"$(?!\n)",
}
_OF_LINES = {"AT_BEGINNING": r"(?<![^\n])", "AT_END": r"(?![^\n])"}
_WORD_END = "(?:(?<={0})(?!{0})|(?<!{0})(?={0}))"
_CLASSES = ("LITERAL", "NOT_LITERAL", "IN", "ANY")


def portable_expression(text: str, flags: int = 0) -> str:
    """Write an expression without names and flags, with its case spelled out.

    RAISES: ValueError for references to groups.
    """
    parsed = _PARSER.parse(text, flags)
    return _Writer().written(parsed, parsed.state.flags)


class _Writer:
    """Writes syntax trees of `re`."""

    def __init__(self) -> None:
        self._n_groups = 0

    def written(self, nodes: Any, flags: int) -> str:
        """Return nodes that follow each other."""
        return "".join([self._node(str(op), value, flags) for op, value in nodes])

    def _node(self, op: str, value: Any, flags: int) -> str:
        if op in _CLASSES:
            return _characters(op, value, flags)
        if op == "AT":
            return _position(str(value), flags)
        if op == "BRANCH":
            return f"(?:{'|'.join([self.written(x, flags) for x in value[1]])})"
        if op == "SUBPATTERN":
            _, added, removed, nodes = value
            return f"(?:{self.written(nodes, (flags | added) & ~removed)})"
        if op in ("ASSERT", "ASSERT_NOT"):
            direction, nodes = value
            sign = ("<" if direction < 0 else "") + ("=" if op == "ASSERT" else "!")
            return f"(?{sign}{self.written(nodes, flags)})"
        if op in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeated(value, flags) + ("?" if op == "MIN_REPEAT" else "")
        if op in ("ATOMIC_GROUP", "POSSESSIVE_REPEAT"):
            # What follows a lookahead does not change what its group matched.
            self._n_groups += 1
            end = f"))\\{self._n_groups})"
            nodes = value if op == "ATOMIC_GROUP" else [("MAX_REPEAT", value)]
            return f"(?:(?=({self.written(nodes, flags)}{end}"
        if op == "FAILURE":
            return "(?!)"
        raise ValueError(op)

    def _repeated(self, value: Any, flags: int) -> str:
        least, most, nodes = value
        text = self.written(nodes, flags)
        if [str(op) in _CLASSES for op, _ in nodes] != [True]:
            text = f"(?:{text})"
        bounds = f"{{{least},{'' if most is _PARSER.MAXREPEAT else most}}}"
        return text + {"{0,}": "*", "{1,}": "+", "{0,1}": "?"}.get(bounds, bounds)


def _position(name: str, flags: int) -> str:
    """Return the expression of a position."""
    if "BOUNDARY" in name:
        end = _WORD_END.format(_characters("CATEGORY", "CATEGORY_WORD", flags))
        return f"(?!{end})" if "NON" in name else end
    return (_OF_LINES if flags & re.MULTILINE else {}).get(name) or _POSITIONS[name]


def _characters(op: str, value: Any, flags: int) -> str:
    """Return the expression of a character."""
    if op == "ANY":
        return _spelled(".", flags & re.DOTALL)
    nodes = [(str(name), x) for name, x in (value if op == "IN" else [(op, value)])]
    is_negative = nodes[0][0] in ("NEGATE", "NOT_LITERAL")
    signs = "".join(_SIGNS[str(x)] for name, x in nodes if name == "CATEGORY")
    ranges = [(x, x) for name, x in nodes if name.endswith("LITERAL")]
    ranges += [x for name, x in nodes if name == "RANGE"]
    if flags & re.IGNORECASE or signs:
        codes = "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges)
        return _spelled(f"[{'^' * is_negative}{codes}{signs}]", flags & (re.IGNORECASE | re.ASCII))
    return _class(ranges, is_negative)


@cache
def _spelled(text: str, flags: int) -> str:
    """Return the class of the characters that an expression matches."""
    spans = [match.span() for match in re.finditer(f"{text}+", EVERY, flags)]
    ranges = [(start, end - 1) for start, end in spans]
    ends = [0, *(code for span in spans for code in span), len(EVERY)]
    others = [(a, b - 1) for a, b in zip(ends[::2], ends[1::2], strict=True) if a < b]
    if 0 < len(others) < len(ranges):
        return _class(others, is_negative=True)
    return _class(ranges, is_negative=False)


def _class(ranges: Sequence[tuple[int, int]], is_negative: bool) -> str:
    """Return a class of characters. Texts have no surrogates, which JSON could not write."""
    parts = []
    top = -1
    for a, b in sorted(ranges):
        lowest = max(a, top + 1, 0xE000 if 0xD800 <= a < 0xE000 else 0)
        highest = 0xD7FF if 0xD800 <= b < 0xE000 else b
        if lowest <= highest:
            ends = [_escaped(code).replace("-", r"\-") for code in (lowest, highest)]
            parts.append(("-" if highest > lowest + 1 else "").join(ends[: 1 + highest - lowest]))
            top = highest
    text = "".join(parts)
    is_single = not is_negative and top == min(ranges)[0]
    return _escaped(top) if is_single else f"[{'^' * is_negative}{text}]"


def _escaped(code: int) -> str:
    return _SPECIAL.sub(r"\\\g<0>", chr(code))
