"""CRFsuite: a label and attributes a line, of which one attribute tells the word."""

import re
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .lines import Row, Source, read_lines, sentences

_FIELD = re.compile(r"((?:\\.|[^\\:])*)(?::(.*))?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def read_crfsuite(path: Path, attribute: str = "", label: str = "tag") -> Source:
    """Read the labels of a CRFsuite file, and of its attributes those that are words.

    attribute: the name of those, as "w[0]" for w[0]=the; label: what the labels are. A colon and a
    weight behind an attribute are dropped; in names and values, a backslash takes the meaning from
    the colon or backslash behind it.
    RAISES: SparseCRFError, when read, for a token without such an attribute.
    """

    def split(number: int, line: str) -> Row:
        gold, *fields = map(_unescape, line.split("\t"))
        for field in fields:
            if attribute and field.startswith(f"{attribute}="):
                return Row(number, [field.removeprefix(f"{attribute}="), gold])
        known = ", ".join(field.partition("=")[0] for field in fields) or "no attributes"
        values = {"path": path, "line": number, "wanted": attribute or "NAME"}
        raise SparseCRFError(Errors.SC617.format(**values, known=known))

    return Source(path, ("orth", label), sentences(read_lines(path), split))


def _unescape(field: str) -> str:
    """The name of an attribute, without weight and backslashes."""
    match = _FIELD.match(field)
    return _ESCAPED.sub(r"\1", match[1] if match else field)
