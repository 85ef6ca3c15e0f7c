"""Schemas of files: arrays and JSON, declared once and checked before use.

A kind of file has a table of fields. Their lengths and bounds are letters (`kernels.layout` has the
notation), which an array of that length or whoever reads the file gives a value. Kernels take much
of what is read for places in other arrays and do not look: what they rely on is in the tables.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from reprlib import repr
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import SparseCRFError

# Bytes of JSON, and those of them that are in no text: 65534 labels take a seventh of these.
MAX_JSON = 1 << 24
MAX_STRUCTURE = 1 << 20
# Numbers that are checked at once.
_PIECE = 1 << 20


class SchemaField(NamedTuple):
    """An array of a file.

    dtypes: that it may have, separated by blanks; shape: a length, or several; low, below: of whole
    numbers, what they are at least, and less than (a length); rises: each is more than the one
    before; cuts: they go from 0 to this length and never fall; sums: they are at least 1, and come
    to this length; finite: of floats. Lengths are a letter, or a letter and what is added: "S+1".
    """

    dtypes: str
    shape: str
    low: int = 0
    below: str = ""
    rises: bool = False
    cuts: str = ""
    sums: str = ""
    finite: bool = True


@contextmanager
def reported_as(
    message: str, errors: tuple[type[Exception], ...] = (ValueError,), **values: object
) -> Iterator[None]:
    """Raise what is wrong with a file as an error of the package.

    message: with a place for {reason}, and for the values, of which functions are called; errors:
    that are reported.
    """
    try:
        yield
    except SparseCRFError:
        raise
    except errors as error:
        values = {key: value() if callable(value) else value for key, value in values.items()}
        reason = str(error) or "it ends early"
        raise SparseCRFError(message.format(reason=reason, **values)) from error


def check(
    arrays: Mapping[str, NDArray[Any]],
    fields: Mapping[str, SchemaField],
    sizes: Mapping[str, int],
    release: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Check that arrays are those of a table of fields, in its order.

    sizes: letters that are known; release: called after each piece of an array.
    RETURNS: the sizes, with those of letters of arrays so far.
    RAISES: ValueError that names the array, and says what is wrong with it.
    """
    if list(arrays) != list(fields):
        raise ValueError(f"its arrays are {repr(list(arrays))}, not {', '.join(fields)}")
    known = dict(sizes)
    for name, field in fields.items():
        array = arrays[name]
        if array.dtype.str not in field.dtypes.split():
            raise ValueError(f"{name} has the dtype {array.dtype.str}")
        letters = field.shape.split()
        if array.ndim != len(letters):
            raise ValueError(f"{name} has {array.ndim} dimensions, not {len(letters)}")
        for letter, n in zip(letters, array.shape, strict=True):
            letter, _, more = letter.partition("+")
            expected = known.setdefault(letter, n - int(more or 0)) + int(more or 0)
            if n != expected or known[letter] < 0:
                raise ValueError(f"{name} has {n} entries, not {expected}")
    for name, field in fields.items():
        fault = _fault(arrays[name], field, known, release)
        if fault:
            raise ValueError(f"{name} {fault}")
    return known


def _fault(
    array: NDArray[Any], field: SchemaField, sizes: Mapping[str, int], release: Callable[[], None]
) -> str:
    """Return the error in the values of an array, or nothing."""
    values, total = array.reshape(-1), 0
    below = _length(field.below, sizes) if field.below else None
    for first in range(0, len(values), _PIECE):
        piece = values[first : first + _PIECE]
        if array.dtype.kind == "f":
            if field.finite and not np.isfinite(piece).all():
                return "are not all finite"
            continue
        before = values[max(first - 1, 0) : first + _PIECE]
        if below is not None and (piece >= below).any():
            return f"are not all below {below}"
        if array.dtype.kind == "i" and (piece < field.low).any():
            return f"are not all at least {field.low}"
        if field.rises and not (before[1:] > before[:-1]).all():
            return "do not ascend"
        if field.cuts and not (before[1:] >= before[:-1]).all():
            return "fall"
        if field.sums:
            total += int(piece.sum(dtype=np.int64)) if piece.all() else -(2**62)
        release()
    if field.sums and total != _length(field.sums, sizes):
        return f"do not come to {_length(field.sums, sizes)}, or are 0"
    if field.cuts and (values[0], values[-1]) != (0, _length(field.cuts, sizes)):
        return f"do not go from 0 to {_length(field.cuts, sizes)}"
    return ""


def _length(text: str, sizes: Mapping[str, int]) -> int:
    letter, _, more = text.partition("+")
    return sizes[letter] + int(more or 0)


# JSON


def parse(data: bytes) -> Any:
    """Read JSON of which each key is there once, and which takes little more memory than its text.

    RAISES: ValueError.
    """
    if len(data) > MAX_JSON:
        raise ValueError(f"its header cannot have {len(data)} bytes")
    # What is in no text may become objects that take many times the memory of their text.
    codes = np.frombuffer(data.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    in_text = np.cumsum(codes == ord('"'), dtype=np.uint8) & 1
    if len(codes) - np.count_nonzero(in_text) > MAX_STRUCTURE:
        raise ValueError("its header has too many entries")
    try:
        text = data.decode("utf8")
        return json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header cannot be read: {error}") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def check_json(found: Any, form: Any, place: str) -> None:
    """Check the form of JSON.

    form: a type; [form] of a list's entries; or {key: form}, with "?" behind keys that may be
    missing. Texts have no half characters, and whole numbers are no truth values.
    place: for messages. RAISES: ValueError.
    """
    if isinstance(form, dict):
        keys = {key.removesuffix("?") for key in form}
        needed = keys - {key.removesuffix("?") for key in form if key.endswith("?")}
        if not isinstance(found, dict) or not needed <= set(found) <= keys:
            names = sorted(found) if isinstance(found, dict) else found
            raise ValueError(f"{place} tells {repr(names)}, not {', '.join(form)}")
        for key, value in found.items():
            check_json(value, form.get(key, form.get(f"{key}?")), f"{place}: {key}")
    elif isinstance(form, list):
        if type(found) is not list:
            raise ValueError(f"{place} is {repr(found)}, not a list")
        for value in found:
            check_json(value, form[0], place)
    elif type(found) is not form or (form is str and _is_broken(found)):
        raise ValueError(f"{place} has {repr(found)}, which is no {_KINDS[form]}")


_KINDS = {str: "text", int: "whole number", bool: "truth value", dict: "object", list: "list"}


def _is_broken(text: str) -> bool:
    """Return whether a text cannot be written again, as it has half a character."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def check_distinct(found: Sequence[str], place: str) -> None:
    """Check that texts are there once. RAISES: ValueError."""
    if len(set(found)) < len(found):
        raise ValueError(f"{place} are not distinct")


def check_bounds(bounds: Sequence[int], n: int, place: str) -> None:
    """Check that bounds cut n things into parts none of which is empty. RAISES: ValueError."""
    ascend = all(a < b for a, b in pairwise(bounds))
    if not ascend or len(bounds) < 2 or (bounds[0], bounds[-1]) != (0, n):
        raise ValueError(f"{place} do not cut {n}")
