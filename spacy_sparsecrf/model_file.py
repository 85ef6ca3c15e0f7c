"""The file format of a model: a digest, a JSON header, raw arrays. No pickle.

bytes 0-7    b"SPCRF" and padding
bytes 8-11   format version, uint32 little-endian
bytes 12-15  length of the header, uint32 little-endian
bytes 16-47  BLAKE2b digest (32 bytes) of everything that follows and of bytes 0-15
header       JSON: "meta" and, for each array, its name, dtype and length
arrays       little-endian, in the header's order, each at a multiple of 8 bytes
"""

import hashlib
import struct
from typing import Any

import numpy as np
import srsly
from numpy.typing import NDArray

from .errors import Errors, SparseCRFError

FORMAT_VERSION = 1
_MAGIC = b"SPCRF\0\0\0"
_PREFIX = struct.Struct("<8sII")
_DIGEST_SIZE = 32
_DTYPES = ("<u8", "<i8", "<u2", "<u4", "<f4", "<f8")

Arrays = dict[str, NDArray[Any]]


def _digest(prefix: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(prefix + body, digest_size=_DIGEST_SIZE).digest()


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
    prefix = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(header))
    body = header + b"".join(blobs)
    data: bytes = prefix + _digest(prefix, body) + body
    return data


def read(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Read what `write` wrote; the arrays are read-only views of the data.

    RAISES: SparseCRFError for other data, a newer format, or a digest that does not fit.
    """
    start = _PREFIX.size + _DIGEST_SIZE
    if len(data) < start or not data.startswith(_MAGIC):
        raise SparseCRFError(Errors.SC312)
    _, version, header_size = _PREFIX.unpack_from(data)
    if version > FORMAT_VERSION:
        raise SparseCRFError(Errors.SC313.format(found=version, known=FORMAT_VERSION))
    body = data[start:]
    if _digest(data[: _PREFIX.size], body) != data[_PREFIX.size : start]:
        raise SparseCRFError(Errors.SC314.format(reason="its digest does not fit its content"))
    header = srsly.json_loads(body[:header_size].decode("utf8"))
    arrays: Arrays = {}
    position = header_size
    for entry in header["arrays"]:
        if entry["dtype"] not in _DTYPES:
            raise SparseCRFError(Errors.SC314.format(reason=f"dtype {entry['dtype']!r}"))
        dtype = np.dtype(entry["dtype"])
        size = dtype.itemsize * entry["length"]
        if entry["length"] < 0 or position + size > len(body):
            raise SparseCRFError(Errors.SC314.format(reason=f"{entry['name']} is cut off"))
        arrays[entry["name"]] = np.frombuffer(body, dtype, entry["length"], position)
        position += size + _padding(size)
    return header["meta"], arrays
