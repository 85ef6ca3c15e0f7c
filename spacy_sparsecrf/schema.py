"""Schemas of files: arrays and JSON, declared once and checked before use.

Each file type has a table of fields. Lengths and bounds are letters (see `crf.kernels.layout` for
the notation). A letter gets its value from the caller or from the first array of that length.
Kernels use many of these values as indices without bounds checks, so the tables state all they rely
on.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from reprlib import repr
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import SparseCRFError

# Limits: bytes of JSON, and bytes outside of strings, of which 65534 labels take a seventh.
MAX_JSON = 1 << 24
MAX_STRUCTURE = 1 << 20
# Numbers checked at a time.
_PIECE = 1 << 20
# JSON can contain one half of a surrogate pair, which is not valid text.
HALF = re.compile("[\ud800-\udfff]")


class SchemaField(NamedTuple):
    """An array of a file, of unsigned integers or of finite floats.

    dtypes: permitted dtypes, separated by blanks; length: its letter; below: all integers are below
    this length; rises: strictly ascending; sums: all at least 1, adding up to this length.
    """

    dtypes: str
    length: str
    below: str = ""
    rises: bool = False
    sums: str = ""


@contextmanager
def reported_as(
    message: str, errors: tuple[type[Exception], ...] = (ValueError,), **values: object
) -> Iterator[None]:
    """Convert errors of the body to SparseCRFError; any SparseCRFError passes unchanged.

    message: with fields {reason} and the names of values; values: a function is replaced by its
    result; errors: the exceptions to convert.
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
    arrays: Mapping[str, NDArray[Any]], fields: Mapping[str, SchemaField], sizes: Mapping[str, int]
) -> None:
    """Check that arrays match a table of fields, in its order.

    sizes: values of letters known before. RAISES: ValueError with the array's name and the fault.
    """
    if list(arrays) != list(fields):
        raise ValueError(f"its arrays are {repr(list(arrays))}, not {', '.join(fields)}")
    sizes_by_letter = dict(sizes)
    for name, field in fields.items():
        array = arrays[name]
        if array.dtype.str not in field.dtypes.split():
            raise ValueError(f"{name} has the dtype {array.dtype.str}")
        if len(array) != (expected := sizes_by_letter.setdefault(field.length, len(array))):
            raise ValueError(f"{name} has {len(array)} entries, not {expected}")
    for name, field in fields.items():
        fault = _fault(arrays[name], field, sizes_by_letter)
        if fault:
            raise ValueError(f"{name} {fault}")


def _fault(array: NDArray[Any], field: SchemaField, sizes: Mapping[str, int]) -> str:
    """Return the first fault in the values of an array, or ""."""
    total, below = 0, sizes[field.below] if field.below else None
    for begin in range(0, len(array), _PIECE):
        piece = array[begin : begin + _PIECE]
        if array.dtype.kind == "f":
            if not np.isfinite(piece).all():
                return "are not all finite"
            continue
        with_previous = array[max(begin - 1, 0) : begin + _PIECE]
        if below is not None and (piece >= below).any():
            return f"are not all below {below}"
        if field.rises and not (with_previous[1:] > with_previous[:-1]).all():
            return "do not ascend"
        if field.sums:
            total += int(piece.sum(dtype=np.int64)) if piece.all() else -(2**62)
    if field.sums and total != sizes[field.sums]:
        return f"do not come to {sizes[field.sums]}, or are 0"
    return ""


# JSON


def parse(data: bytes, most: int = MAX_JSON) -> Any:
    """Parse JSON of at most so many bytes.

    RAISES: ValueError for invalid JSON, repeated keys, or more than the limits above.
    """
    if len(data) > most:
        raise ValueError(f"it cannot have {len(data)} bytes of JSON")
    # Bytes outside of strings may become objects that take many times their memory.
    codes = np.frombuffer(data.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    in_text = np.cumsum(codes == ord('"'), dtype=np.uint8) & 1
    if len(codes) - np.count_nonzero(in_text) > MAX_STRUCTURE:
        raise ValueError("its JSON has too many entries")
    try:
        text = data.decode("utf8")
        return json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its JSON cannot be read: {error}") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    merged = dict(pairs)
    if len(merged) < len(pairs):
        raise ValueError("a key is there twice")
    return merged


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def check_json(found: Any, form: Any, place: str) -> None:
    """Check that parsed JSON has the given form.

    form: a type; [form] for a list with entries of this form; {key: form} for an object, or
    {str: form} for an object with any keys. Strings must not have lone surrogates; bool does not
    count as int. place: for messages.
    RAISES: ValueError.
    """
    if isinstance(form, dict) and str in form:
        check_json(found, dict, place)
        for key, value in found.items():
            check_json(value, form[str], f"{place}: {repr(key)}")
    elif isinstance(form, dict):
        if not isinstance(found, dict) or set(found) != set(form):
            names = sorted({*found} ^ {*form}) if isinstance(found, dict) else found
            raise ValueError(f"{place} tells other keys than {', '.join(form)}: {repr(names)}")
        for key, value in found.items():
            check_json(value, form[key], f"{place}: {key}")
    elif isinstance(form, list):
        if type(found) is not list:
            raise ValueError(f"{place} is {repr(found)}, not a list")
        for value in found:
            check_json(value, form[0], place)
    elif type(found) is not form or (form is str and HALF.search(found)):
        raise ValueError(f"{place} has {repr(found)}, which is no {_KINDS.get(form, form)}")


_KINDS = {str: "text", int: "whole number", bool: "truth value", dict: "object", float: "decimal"}


def check_distinct(found: Sequence[str], place: str) -> None:
    """Check that strings are distinct. RAISES: ValueError."""
    if len(set(found)) < len(found):
        raise ValueError(f"{place} are not distinct")
