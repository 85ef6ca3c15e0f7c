"""Files of each kind, taken apart and put together again, with digests that fit."""

import gzip
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

Json = Any
_IN_NAMES = frozenset("_abcdefghijklmnopqrstuvwxyz")


@dataclass
class Entry:
    """An array of a file: what the header tells of it, and what is there."""

    told: Json
    data: bytes
    padding: bytes

    @classmethod
    def of(cls, name: Json, array: np.ndarray) -> "Entry":
        """An array that is told of as it is."""
        told = {"name": name, "dtype": array.dtype.str, "length": len(array)}
        return cls(told, array.tobytes(), bytes(-array.nbytes % 8))


@dataclass
class File:
    """A file of a model or a checkpoint in its parts; what of them is changed; a note."""

    changes: ClassVar[tuple[str, ...]] = ("meta", "told", "values", "values", "bytes", "frame")

    meta: Json
    entries: list[Entry]
    others: Json = field(default_factory=dict)
    magic: bytes = b"SPCRF\0\0\0"
    version: int = 1
    longer: int = 0
    rest: bytes = b""
    edit: Callable[[str], str] = str
    note: str = ""

    def __getitem__(self, name: str) -> Entry:
        return next(entry for entry in self.entries if entry.told["name"] == name)

    def put(self, name: str, array: np.ndarray) -> None:
        """Put another array in the place of one."""
        self.entries[self.entries.index(self[name])] = Entry.of(name, array)

    def to_bytes(self) -> bytes:
        """The file, with a digest that fits."""
        listing = [entry.told for entry in self.entries]
        text = self.edit(json.dumps({"meta": self.meta, "arrays": listing, **self.others}))
        header = text.encode("utf8", "surrogatepass")
        header += b" " * (-len(header) % 8)
        size = (len(header) + self.longer) % 2**32
        body = header + b"".join(entry.data + entry.padding for entry in self.entries) + self.rest
        return sealed(self.magic + struct.pack("<II", self.version % 2**32, size), body)


def sealed(prefix: bytes, body: bytes) -> bytes:
    """A file with a digest that fits."""
    return prefix + blake2b(prefix + body, digest_size=32).digest() + body


def sealed_again(data: bytes) -> bytes:
    """A file that was changed somewhere, with a digest that fits."""
    return sealed(data[:16], data[48:])


def taken_apart(data: bytes) -> File:
    """A file of `CRFModel.to_bytes`, or a checkpoint, in its parts."""
    size = struct.unpack_from("<I", data, 12)[0]
    header = json.loads(data[48 : 48 + size])
    position, entries = 48 + size, []
    for told in header["arrays"]:
        n = np.dtype(told["dtype"]).itemsize * told["length"]
        entries.append(Entry(told, data[position : position + n], bytes(-n % 8)))
        position += n + -n % 8
    return File(header["meta"], entries)


class ClassesFile(File):
    """A file `clusters` in its parts: a line of JSON, and arrays without anything between them."""

    changes = ("meta", "meta", "values", "bytes", "frame")

    @classmethod
    def of(cls, data: bytes) -> "ClassesFile":
        """A file in its parts."""
        line, _, rest = data.partition(b"\n")
        meta, entries, at = json.loads(line), [], 0
        for own in meta["lists"].values():
            for name, size in (("hashes", 8), ("codes", own["code_bytes"])):
                array = np.frombuffer(rest, f"<u{size}", own["n_words"], at)
                entries.append(Entry.of(name, array))
                at += array.nbytes
        return cls(meta, entries)

    def to_bytes(self) -> bytes:
        """The file."""
        meta = {**self.meta, **self.others} if isinstance(self.meta, dict) else self.meta
        head = self.edit(json.dumps(meta))
        data = b"".join(entry.data for entry in self.entries)
        return head.encode("utf8", "surrogatepass") + b"\n" + data + self.rest


class NamesFile(File):
    """A file `names` in its parts: lines, each the data of an entry."""

    changes = ("bytes", "frame")

    @classmethod
    def of(cls, data: bytes) -> "NamesFile":
        """A file in its parts."""
        lines = enumerate(gzip.decompress(data).splitlines(True))
        return cls({}, [Entry({"name": i}, line, b"") for i, line in lines])

    def to_bytes(self) -> bytes:
        """The file."""
        text = b"".join(entry.data + entry.padding for entry in self.entries)
        lines = self.edit(text.decode("latin1")).encode("latin1")
        data = gzip.compress(lines, 1, mtime=0)
        return data[: len(data) + min(self.longer, 0)] + self.rest


class CorpusFiles(File):
    """The files of a corpus in their parts: JSON, and a .npy file for each entry."""

    def to_files(self) -> dict[str, bytes]:
        """The files by name."""
        files = {"corpus.json": self.edit(json.dumps(self.meta)).encode("utf8", "surrogatepass")}
        for entry in self.entries:
            told = entry.told if isinstance(entry.told, dict) else {}
            head = _npy_head(told.get("dtype"), told.get("length"))
            size = struct.pack("<H", (len(head) - 10 + self.longer) % 2**16)
            name = "".join(filter(_IN_NAMES.__contains__, str(told.get("name"))))[:50]
            files[f"{name}.npy"] = head[:8] + size + head[10:] + entry.data + self.rest
        return files


def _npy_head(dtype: Json, length: Json) -> bytes:
    """The beginning of a .npy file, or what looks like one."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': ({length!r},), }}"
    head = text.encode("latin1", "replace")
    head += b" " * (117 - len(head)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head) % 2**16) + head
