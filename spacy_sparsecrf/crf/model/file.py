"""The file format of a model: a digest, a JSON header, raw arrays. No pickle.

bytes 0-7    b"SPCRF" and padding
bytes 8-11   format version, uint32 little-endian
bytes 12-15  length of the header, uint32 little-endian
bytes 16-47  BLAKE2b digest (32 bytes) of everything that follows and of bytes 0-15
header       JSON, no key twice: "meta" and, for each array, its name, dtype and length
arrays       little-endian, in the header's order, each at a multiple of 8 bytes, zeros between them

The digest detects damage, not malicious files: `schema` validates everything that is read.
"""

import hashlib
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import srsly
from numpy.typing import NDArray

from ... import schema
from ...errors import Errors, SparseCRFError

FORMAT_VERSION = 1
_MAGIC = b"SPCRF\0\0\0"
_PREFIX = struct.Struct("<8sII")
_DIGEST_SIZE = 32
_START = _PREFIX.size + _DIGEST_SIZE
_DTYPES = ("<u8", "<i8", "<u2", "<u4", "<f4", "<f8")
_HEADER = {"meta": dict, "arrays": [{"name": str, "dtype": str, "length": int}]}

META = {"labels": [str], "dtype": str, "kind": str, "bounds": [int]}
CFG = "cfg"  # key of the digest of the `cfg` that the model was saved with, if there was one
TABLES = ("unigram", "bigram")
FIRST = "first."  # prefix of the table names of a first-stage model
# The arrays of a table, in file order. Unigram weights belong to outcomes: the Y labels, then the
# clusters of labels.
PACKED = ("keys", "counts", "previous", "labels", "values")
_WEIGHTS = {
    "unigram.keys": schema.SchemaField("<u8", "O", rises=True),
    "unigram.counts": schema.SchemaField("<u2 <u4", "O", sums="K"),
    "unigram.previous": schema.SchemaField("<u2", "none"),
    "unigram.labels": schema.SchemaField("<u2", "K", below="outcomes"),
    "unigram.values": schema.SchemaField("", "K"),
    "bigram.keys": schema.SchemaField("<u8", "P", rises=True),
    "bigram.counts": schema.SchemaField("<u2 <u4", "P", sums="L"),
    "bigram.previous": schema.SchemaField("<u2", "L", below="Y+1"),
    "bigram.labels": schema.SchemaField("<u2", "L", below="Y"),
    "bigram.values": schema.SchemaField("", "L"),
}
_VALUES = {"float32": "<f4", "float64": "<f8"}

Arrays = dict[str, NDArray[Any]]


def _digest(prefix: bytes, *parts: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(prefix, digest_size=_DIGEST_SIZE)
    for part in parts:
        digest.update(part)
    return digest.digest()


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
    if len(header) > schema.MAX_JSON:
        raise SparseCRFError(Errors.SC317.format(size=len(header), most=schema.MAX_JSON))
    prefix = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(header))
    body = header + b"".join(blobs)
    data: bytes = prefix + _digest(prefix, body) + body
    return data


def read(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Read the output of `write`; the arrays are read-only views of the data.

    Only the header is copied to memory, in proportion to its length. The caller must check which
    arrays are present.
    RAISES: SparseCRFError for data of another or a newer format; ValueError if the digest does not
    match, or for data that `write` does not produce.
    """
    if len(data) < _START or not data.startswith(_MAGIC):
        raise SparseCRFError(Errors.SC312)
    _, version, header_size = _PREFIX.unpack_from(data)
    if version > FORMAT_VERSION:
        raise SparseCRFError(Errors.SC313.format(found=version, known=FORMAT_VERSION))
    body = memoryview(data).toreadonly()[_START:]
    if _digest(data[: _PREFIX.size], body) != data[_PREFIX.size : _START]:
        raise ValueError("its digest does not fit its content")
    if version != FORMAT_VERSION:
        raise ValueError(f"there is no format {version}")
    if header_size > min(len(body), schema.MAX_JSON) or _padding(header_size):
        raise ValueError(f"its header cannot have {header_size} bytes")
    header = schema.parse(bytes(body[:header_size]))
    schema.check_json(header, _HEADER, "its header")
    return header["meta"], _cut(header["arrays"], body, header_size)


def _cut(listing: list[Any], body: memoryview, position: int) -> Arrays:
    """Split the body, from a position on, into the listed arrays; no bytes may be left over."""
    arrays: Arrays = {}
    for entry in listing:
        name, dtype, length = entry["name"], entry["dtype"], entry["length"]
        shown = repr(name[:50])
        if name in arrays:
            raise ValueError(f"{shown} is there twice")
        if dtype not in _DTYPES:
            raise ValueError(f"{shown} has the dtype {dtype[:50]!r}")
        if length < 0:
            raise ValueError(f"{shown} has the length {length}")
        size = np.dtype(dtype).itemsize * length
        end = position + size + _padding(size)
        if end > len(body):
            raise ValueError(f"{shown} is cut off")
        if any(body[position + size : end]):
            raise ValueError(f"there is something behind {shown}")
        arrays[name] = np.frombuffer(body, dtype, length, position)
        position = end
    if position < len(body):
        raise ValueError(f"{len(body) - position} bytes are left over")
    return arrays


# Required content of a model file: two tables of weights, and meta data


def check_meta(meta: dict[str, Any]) -> None:
    """Check labels and clusters; `CRFModel` checks kind and dtype.

    RAISES: ValueError that names the fault.
    """
    schema.check_json(meta, META | ({CFG: str} if CFG in meta else {}), "it")
    schema.check_distinct(meta["labels"], "its labels")
    if bounds := meta["bounds"]:
        ascend, n = all(a < b for a, b in pairwise(bounds)), len(meta["labels"])
        if not ascend or len(bounds) < 2 or (bounds[0], bounds[-1]) != (0, n):
            raise ValueError(f"bounds of clusters do not cut {n}")


def prefixes_of(arrays: Arrays) -> tuple[str, ...]:
    """Return the prefixes of table names: FIRST, if there is a first-stage model, then "".

    arrays: by name, before or after `check_arrays`.
    """
    return (FIRST, "") if len(arrays) > len(TABLES) * len(PACKED) else ("",)


def check_arrays(arrays: Arrays, dtype: str, n_labels: int, n_outcomes: int) -> None:
    """Check the tables of weights, so that their values are safe to use as indices.

    dtype: of values; n_outcomes: number of labels and clusters, the outcomes of unigram weights.
    RAISES: ValueError that names the fault.
    """
    listed, n = [*arrays.items()], len(_WEIGHTS)
    sizes = {"Y": n_labels, "Y+1": n_labels + 1, "outcomes": n_outcomes, "none": 0}
    for prefix in prefixes_of(arrays):
        fields = {
            prefix + name: field if field.dtypes else field._replace(dtypes=_VALUES[dtype])
            for name, field in _WEIGHTS.items()
        }
        # The tables of a first-stage model come last.
        part = listed[n:] if prefix else listed[:n]
        schema.check(dict(part), fields, sizes)
