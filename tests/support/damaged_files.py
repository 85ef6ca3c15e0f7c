"""Files of each format, parsed into parts and reassembled with matching digests."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

Json = Any


@dataclass
class Entry:
    """An array of a file: its header entry, and its data."""

    told: Json
    data: bytes
    padding: bytes

    @classmethod
    def of(cls, name: Json, array: np.ndarray) -> "Entry":
        """Create an entry with the header of an array."""
        told = {"name": name, "dtype": array.dtype.str, "length": len(array)}
        return cls(told, array.tobytes(), bytes(-array.nbytes % 8))


@dataclass
class File:
    """The parts of a model file."""

    meta: Json
    entries: list[Entry]
    others: Json = field(default_factory=dict)
    magic: bytes = b"SPCRF\0\0\0"
    version: int = 1
    longer: int = 0
    rest: bytes = b""
    edit: Callable[[str], str] = str

    def __getitem__(self, name: str) -> Entry:
        return next(entry for entry in self.entries if entry.told["name"] == name)

    def put(self, name: str, array: np.ndarray) -> None:
        """Replace an array."""
        self.entries[self.entries.index(self[name])] = Entry.of(name, array)

    def to_bytes(self) -> bytes:
        """Return the file with a matching digest."""
        listing = [entry.told for entry in self.entries]
        text = self.edit(json.dumps({"meta": self.meta, "arrays": listing, **self.others}))
        header = text.encode("utf8", "surrogatepass")
        header += b" " * (-len(header) % 8)
        size = (len(header) + self.longer) % 2**32
        body = header + b"".join(entry.data + entry.padding for entry in self.entries) + self.rest
        return sealed(self.magic + struct.pack("<II", self.version % 2**32, size), body)


def sealed(prefix: bytes, body: bytes) -> bytes:
    """Return a file with a matching digest."""
    return prefix + blake2b(prefix + body, digest_size=32).digest() + body


def taken_apart(data: bytes) -> File:
    """Parse a model file into its parts."""
    size = struct.unpack_from("<I", data, 12)[0]
    header = json.loads(data[48 : 48 + size])
    position, entries = 48 + size, []
    for told in header["arrays"]:
        n = np.dtype(told["dtype"]).itemsize * told["length"]
        entries.append(Entry(told, data[position : position + n], bytes(-n % 8)))
        position += n + -n % 8
    return File(header["meta"], entries)


class ClassesFile(File):
    """The parts of a `clusters` file: a line of JSON, then arrays without padding."""

    @classmethod
    def of(cls, data: bytes) -> "ClassesFile":
        """Parse a file into its parts."""
        line, _, rest = data.partition(b"\n")
        meta, entries, at = json.loads(line), [], 0
        for own in meta["lists"].values():
            for name, size in (("hashes", 8), ("codes", own["code_bytes"])):
                array = np.frombuffer(rest, f"<u{size}", own["n_words"], at)
                entries.append(Entry.of(name, array))
                at += array.nbytes
        return cls(meta, entries)

    def to_bytes(self) -> bytes:
        """Return the file."""
        meta = {**self.meta, **self.others} if isinstance(self.meta, dict) else self.meta
        head = self.edit(json.dumps(meta))
        data = b"".join(entry.data for entry in self.entries)
        return head.encode("utf8", "surrogatepass") + b"\n" + data + self.rest


Change = Callable[[Any], object]


def array(name: str, values: list[float], dtype: str) -> Change:
    """Replace the values of an array."""
    return lambda file: file.put(name, np.array(values, dtype))


def meta(**values: object) -> Change:
    """Change the header's description of the model."""
    return lambda file: file.meta.update(values)


def text(old: str, new: str) -> Change:
    """Replace text in the header."""

    def change(file: Any) -> None:
        file.edit = lambda header: header.replace(old, new, 1)

    return change


def frame(**values: object) -> Change:
    """Change the frame around the parts of a file."""
    return lambda file: vars(file).update(values)
