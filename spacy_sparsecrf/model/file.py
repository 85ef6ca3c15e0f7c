"""The file format of a model: a digest, a JSON header, raw arrays. No pickle.

bytes 0-7    b"SPCRF" and padding
bytes 8-11   format version, uint32 little-endian
bytes 12-15  length of the header, uint32 little-endian
bytes 16-47  BLAKE2b digest (32 bytes) of everything that follows and of bytes 0-15
header       JSON, no key twice: "meta" and, for each array, its name, dtype and length
arrays       little-endian, in the header's order, each at a multiple of 8 bytes, zeros between them

The digest tells a damaged file, not one that was made to do harm: all that is read is checked.
Kernels take labels and tests from a model for indices: `check_meta` and `check_arrays` refuse
whatever is out of range.
"""

import hashlib
import json
import struct
from collections.abc import Sequence, Set
from itertools import pairwise
from reprlib import repr
from typing import Any, cast

import numpy as np
import srsly
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError

FORMAT_VERSION = 1
_MAGIC = b"SPCRF\0\0\0"
_PREFIX = struct.Struct("<8sII")
_DIGEST_SIZE = 32
# Bytes of a header, and those of them that are in no string: 65534 labels take a seventh of these.
MAX_HEADER = 1 << 24
MAX_STRUCTURE = 1 << 20
_DTYPES = ("<u8", "<i8", "<u2", "<u4", "<f4", "<f8")

TABLES = ("unigram", "bigram")
FIRST = "first."  # in front of the names of the tables of a first model
# The arrays of a table, in the order of a file, and their dtypes; values are as wide as is told.
PACKED = ("keys", "counts", "previous", "labels", "values")
_PACKED_DTYPES = {
    "keys": ("<u8",),
    "counts": ("<u2", "<u4"),
    "previous": ("<u2",),
    "labels": ("<u2",),
}
_VALUES = {"float32": ("<f4",), "float64": ("<f8",)}

Arrays = dict[str, NDArray[Any]]


def _digest(prefix: bytes, *parts: bytes | memoryview) -> bytes:
    found = hashlib.blake2b(prefix, digest_size=_DIGEST_SIZE)
    for part in parts:
        found.update(part)
    return found.digest()


def _padding(size: int) -> int:
    return -size % 8


def write(meta: dict[str, Any], arrays: Arrays) -> bytes:
    """Serialise JSON-able meta data and one-dimensional arrays."""
    listing = []
    blobs = []
    for name, array in arrays.items():
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        listing.append({"name": name, "dtype": little.dtype.str, "length": len(little)})
        blob = little.tobytes()
        blobs.append(blob + bytes(_padding(len(blob))))
    header = srsly.json_dumps({"meta": meta, "arrays": listing}).encode("utf8")
    header += b" " * _padding(len(header))
    if len(header) > MAX_HEADER:
        raise SparseCRFError(Errors.SC317.format(size=len(header), most=MAX_HEADER))
    prefix = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(header))
    body = header + b"".join(blobs)
    data: bytes = prefix + _digest(prefix, body) + body
    return data


def read(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Read what `write` wrote; the arrays are read-only views of the data.

    Memory is taken for the header alone, and only so much as it is long. What arrays there must be
    is for the caller to say.
    RAISES: SparseCRFError for other data, a newer format, a digest that does not fit, or anything
    that `write` would not have written.
    """
    start = _PREFIX.size + _DIGEST_SIZE
    if len(data) < start or not data.startswith(_MAGIC):
        raise SparseCRFError(Errors.SC312)
    _, version, header_size = _PREFIX.unpack_from(data)
    if version > FORMAT_VERSION:
        raise SparseCRFError(Errors.SC313.format(found=version, known=FORMAT_VERSION))
    body = memoryview(data).toreadonly()[start:]
    if _digest(data[: _PREFIX.size], body) != data[_PREFIX.size : start]:
        raise damaged("its digest does not fit its content")
    if version < FORMAT_VERSION:
        raise damaged(f"there is no format {version}")
    if header_size > min(len(body), MAX_HEADER) or _padding(header_size):
        raise damaged(f"its header cannot have {header_size} bytes")
    header = _parse(body[:header_size])
    return header["meta"], _cut(header["arrays"], body, header_size)


def damaged(reason: str) -> SparseCRFError:
    """The error of a file in which something is wrong."""
    return SparseCRFError(Errors.SC314.format(reason=reason))


def has_keys(found: Any, needed: Set[str], others: Set[str] = frozenset()) -> bool:
    """Whether something from JSON is an object with all the keys needed, and no unknown ones."""
    return isinstance(found, dict) and needed <= set(found) <= needed | others


def _parse(data: memoryview) -> dict[str, Any]:
    """Read the header: JSON of which each key is there once."""
    # What is in no string may become objects that take many times the memory of their text.
    codes = np.frombuffer(bytes(data).replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    in_text = np.cumsum(codes == ord('"'), dtype=np.uint8) & 1
    if len(codes) - np.count_nonzero(in_text) > MAX_STRUCTURE:
        raise damaged("its header has too many entries")
    try:
        text = bytes(data).decode("utf8")
        header = json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise damaged(f"its header cannot be read: {error}") from error
    if not has_keys(header, {"meta", "arrays"}) or not isinstance(header["meta"], dict):
        raise damaged("its header does not have the parts meta and arrays")
    return cast("dict[str, Any]", header)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _cut(listing: Any, body: memoryview, position: int) -> Arrays:
    """Cut the body from a position on into the arrays of the list; nothing may be left over."""
    if not isinstance(listing, list):
        raise damaged("its arrays are not a list")
    arrays: Arrays = {}
    for entry in listing:
        if not has_keys(entry, {"name", "dtype", "length"}) or not isinstance(entry["name"], str):
            raise damaged(f"{repr(entry)} is not the name, dtype and length of an array")
        name, dtype, length = repr(entry["name"]), entry["dtype"], entry["length"]
        if entry["name"] in arrays:
            raise damaged(f"{name} is there twice")
        if dtype not in _DTYPES:
            raise damaged(f"{name} has the dtype {repr(dtype)}")
        if type(length) is not int or length < 0:
            raise damaged(f"{name} has the length {repr(length)}")
        size = np.dtype(dtype).itemsize * length
        end = position + size + _padding(size)
        if end > len(body):
            raise damaged(f"{name} is cut off")
        if any(body[position + size : end]):
            raise damaged(f"there is something behind {name}")
        arrays[entry["name"]] = np.frombuffer(body, dtype, length, position)
        position = end
    if position < len(body):
        raise damaged(f"{len(body) - position} bytes are left over")
    return arrays


# What a model's file must hold: two tables of weights, and what is told of them


def check_meta(meta: dict[str, Any]) -> None:
    """Check labels and clusters; which kinds and dtypes there are, `CRFModel` knows.

    RAISES: SparseCRFError that names what is wrong.
    """
    # Files from before there were others have no kind, and no clusters.
    if not has_keys(meta, {"labels", "dtype"}, {"kind", "bounds"}):
        raise damaged(f"it tells {repr(sorted(meta))}, not labels, dtype, kind and bounds")
    labels, bounds = meta["labels"], meta.get("bounds", [])
    if not isinstance(labels, list) or not all(map(_is_text, labels)):
        raise damaged("its labels are not a list of texts")
    if len(set(labels)) < len(labels):
        raise damaged("it has a label twice")
    if not isinstance(bounds, list) or (bounds and not _are_bounds(bounds, len(labels))):
        raise damaged("the clusters are unsound")


def prefixes_of(arrays: Arrays) -> tuple[str, ...]:
    """What stands in front of the names of tables: of a first model, if there is one, and last "".

    arrays: by name, of `check_arrays`, or not checked yet.
    """
    return (FIRST, "") if len(arrays) > len(TABLES) * len(PACKED) else ("",)


def check_arrays(arrays: Arrays, dtype: str, n_labels: int, n_outcomes: int) -> None:
    """Check the tables of weights; after that, everything in them can be taken for an index.

    dtype: of values; n_outcomes: labels and clusters of labels, which unigram weights are of.
    RAISES: SparseCRFError that names what is wrong.
    """
    tables = [prefix + table for prefix in reversed(prefixes_of(arrays)) for table in TABLES]
    expected = [f"{table}.{name}" for table in tables for name in PACKED]
    if list(arrays) != expected:
        raise damaged(f"its arrays are {repr(list(arrays))}, not {', '.join(expected)}")
    for table in tables:
        is_unigram = table.endswith(TABLES[0])
        parts = {name: arrays[f"{table}.{name}"] for name in PACKED}
        for name, array in parts.items():
            if array.dtype.str not in _PACKED_DTYPES.get(name, _VALUES[dtype]):
                raise damaged(f"{table}.{name} has the dtype {array.dtype.str}")
        n = len(parts["values"])
        sizes = {"counts": len(parts["keys"]), "labels": n, "previous": n}
        if is_unigram:
            sizes["previous"] = 0
        for name, size in sizes.items():
            if len(parts[name]) != size:
                raise damaged(f"{table}.{name} has {len(parts[name])} entries, not {size}")
        fault = _fault(parts, n_labels, n_outcomes if is_unigram else n_labels)
        if fault:
            raise damaged(f"{table}.{fault}")


def _fault(parts: Arrays, n_labels: int, n_outcomes: int) -> str:
    """What is wrong with the values of a table, or nothing."""
    keys, counts = parts["keys"], parts["counts"]
    if not (keys[1:] > keys[:-1]).all():
        return "keys do not ascend"
    if not counts.all() or int(counts.sum(dtype=np.int64)) != len(parts["values"]):
        return "counts are not those of its weights"
    if not (parts["labels"] < n_outcomes).all():
        return "labels are not all among those of the model"
    if not (parts["previous"] <= n_labels).all():
        return "previous labels are not all among those of the model"
    return "" if np.isfinite(parts["values"]).all() else "values are not all finite"


def _is_text(label: Any) -> bool:
    """Whether something is a text that can be written again: without half a character."""
    return isinstance(label, str) and not any("\ud800" <= char <= "\udfff" for char in label)


def _are_bounds(bounds: Sequence[Any], n_labels: int) -> bool:
    """Whether clusters have labels, and all labels a cluster."""
    whole = all(type(bound) is int for bound in bounds)
    ascend = whole and all(a < b for a, b in pairwise(bounds))
    return ascend and len(bounds) > 1 and (bounds[0], bounds[-1]) == (0, n_labels)
