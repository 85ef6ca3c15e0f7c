"""Model files made by hand, with fitting digests, and changed at random where it may hurt."""

import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from spacy_sparsecrf.corpus.encoded import Observations
from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.model.model import CRFModel, WeightTable

Json = Any
JUNK: list[Json] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    7,
    2**31,
    2**63,
    2**64,
    10**30,
    -(2**63),
    0.5,
    1e308,
]
JUNK += [
    "",
    "a",
    "A",
    "Ü",
    "\ud800",
    "\0",
    "unigram.keys",
    "<u8",
    "<f8",
    "|O",
    "<f2",
    ">u2",
    "maxent",
]
JUNK += [[], {}, [0], [[]], {"a": 1}, ["a", "a"], [0, 2], ["A", "Ü", "B"]]
NUMBERS = [0, 1, -1, 2, 255, 65534, 65535, 65536, 2**31, 2**32 - 1, 2**63, 2**64 - 1, -(10**8)]
FLOATS = [0.0, -0.0, 1e-300, 1e308, -1e308, 3e38, np.nan, np.inf, -np.inf]
DTYPES = ["<u8", "<i8", "<u2", "<u4", "<f4", "<f8"]
# The largest sums of such weights are beyond all numbers.
QUIET = {"over": "ignore", "invalid": "ignore", "divide": "ignore", "under": "ignore"}


@dataclass
class Entry:
    """An array of a file: what the header tells of it, and what is there."""

    told: Json
    data: bytes
    padding: bytes

    @classmethod
    def of(cls, name: Json, array: np.ndarray) -> "Entry":
        told = {"name": name, "dtype": array.dtype.str, "length": len(array)}
        return cls(told, array.tobytes(), bytes(-array.nbytes % 8))


@dataclass
class File:
    """A model file in its parts."""

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


def taken_apart(data: bytes) -> File:
    """A file of `CRFModel.to_bytes` in its parts."""
    size = struct.unpack_from("<I", data, 12)[0]
    header = json.loads(data[48 : 48 + size])
    position, entries = 48 + size, []
    for told in header["arrays"]:
        n = np.dtype(told["dtype"]).itemsize * told["length"]
        entries.append(Entry(told, data[position : position + n], bytes(-n % 8)))
        position += n + -n % 8
    return File(header["meta"], entries)


def model_of(kind: str = "chain", dtype: str = "float32") -> CRFModel:
    """A small model with weights of tests, of pairs, and, if maxent, of clusters."""
    unigram = WeightTable(
        keys=np.array([3, 9, 2**63 + 1], np.uint64),
        indptr=np.array([0, 2, 3, 5], np.int64),
        previous=np.empty(0, np.uint16),
        labels=np.array([0, 1, 1, 0, 2], np.uint16),
        values=np.array([0.5, -1.25, 1 / 3, 2.0, -2.0], dtype),
    )
    if kind == "maxent":
        return CRFModel(["A", "Ü", "B"], dtype, unigram, kind=kind, bounds=(0, 1, 3))
    bigram = WeightTable(
        keys=np.array([7, 11], np.uint64),
        indptr=np.array([0, 2, 3], np.int64),
        previous=np.array([1, 3, 2], np.uint16),
        labels=np.array([0, 1, 2], np.uint16),
        values=np.array([2.0, -0.1, 0.7], dtype),
    )
    return CRFModel(["A", "Ü", "B"], dtype, unigram, bigram, kind)


def stacked(model: CRFModel) -> CRFModel:
    """The same in two stages."""
    own = model.unigram, model.bigram, model.kind, model.bounds
    return CRFModel(model.labels, model.dtype, *own, first=model)


MODELS = [model_of(), model_of(dtype="float64"), model_of("memm"), model_of("maxent")]
MODELS += [stacked(MODELS[0]), stacked(MODELS[-1])]


def observations(model: CRFModel) -> Observations:
    """Two sequences with all tests of a model, some of others, and a real-valued feature."""
    keys = [*model.unigram.keys[:6].tolist(), 5, 0]
    pairs = [*model.bigram.keys[:6].tolist(), 6, 0]
    hashes = np.zeros((9, 4), np.uint64)
    for n in range(9):
        hashes[n] = [keys[n % len(keys)], keys[n * 3 % len(keys)], pairs[n % len(pairs)], 7]
    return Observations(
        hashes,
        np.array([0, 4, 9]),
        np.array([0, 1], np.int32),
        np.array([2, 3], np.int32),
        values=np.full((9, 1), 0.5, np.float32),
        value_keys=np.array([keys[0]], np.uint64),
    )


def use(model: CRFModel) -> list[np.ndarray]:
    """Predict in several ways; what kernels write is in range."""
    seen, decoder = observations(model), Decoder(model)
    with np.errstate(**QUIET):  # type: ignore[call-overload]
        labels = decoder.viterbi(seen)
        marginals = decoder.marginals(seen)
    assert labels.shape == (9,) and ((labels >= 0) & (labels < len(model.labels))).all()
    assert marginals.shape == (9, len(model.labels))
    return [labels, marginals, *([] if model.first is None else use(model.first))]


class Mutator:
    """Changes files where their structure is, with digests that fit."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def mutated(self) -> bytes:
        """A model file with one to three faults, or what looks like them."""
        file = taken_apart(self.rng.choice(MODELS).to_bytes())
        changes = [self._meta, self._told, self._values, self._values, self._bytes, self._frame]
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            self.rng.choice(changes)(file)
        return file.to_bytes()

    def _meta(self, file: File) -> None:
        file.meta = self._other(file.meta)

    def _told(self, file: File) -> None:
        entry = self.rng.choice(file.entries)
        entry.told = self._other(entry.told)

    def _other(self, node: Json) -> Json:
        """JSON with one change somewhere."""
        if not isinstance(node, dict | list) or not node or self.rng.random() < 0.1:
            near = [node + 1, node - 1, node * 2**32] if type(node) is int else []
            return self.rng.choice(near + JUNK)
        if isinstance(node, list):
            i = self.rng.randrange(len(node))
            whole = [*node[:i], *node[i + 1 :]], [*node, node[i]], node[::-1], [*node, "new"]
            return self.rng.choice([[*node[:i], self._other(node[i]), *node[i + 1 :]], *whole])
        key = self.rng.choice(list(node))
        less = {name: value for name, value in node.items() if name != key}
        swapped = {**less, key: node[self.rng.choice(list(node))]}
        ways = [{**node, key: self._other(node[key])}] * 4 + [less, {**node, "new": 1}, swapped]
        return self.rng.choice(ways)

    def _values(self, file: File) -> None:
        """Other values, fewer, more, or of another dtype, of which the header tells."""
        entry = self.rng.choice(file.entries)
        told = entry.told if isinstance(entry.told, dict) else {}
        name, dtype = told.get("name"), told.get("dtype")
        if dtype not in DTYPES or len(entry.data) % np.dtype(dtype).itemsize:
            return
        array = np.frombuffer(entry.data, dtype).copy()
        if self.rng.random() < 0.25:
            dtype = self.rng.choice(DTYPES)
            with np.errstate(**QUIET):  # type: ignore[call-overload]
                array = array.astype(dtype)
        if len(array) and self.rng.random() < 0.6:
            few = FLOATS if array.dtype.kind == "f" else NUMBERS
            number = self.rng.choice([*few, self.rng.randrange(6)])
            with np.errstate(**QUIET):  # type: ignore[call-overload]
                wide = np.float64 if array.dtype.kind == "f" else np.uint64
                whole = number if wide is np.float64 else int(number) % 2**64
                array[self.rng.randrange(len(array))] = np.array([whole], wide).astype(array.dtype)[
                    0
                ]
        else:
            ways = [
                array[:-1],
                array[::-1],
                np.concatenate((array, array[-1:])),
                array[:0],
                array[1:],
            ]
            array = self.rng.choice(ways)
        file.entries[file.entries.index(entry)] = Entry.of(name, array)

    def _bytes(self, file: File) -> None:
        entry = self.rng.choice(file.entries)
        if entry.data:
            data = bytearray(entry.data)
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
            entry.data = bytes(data)

    def _frame(self, file: File) -> None:
        """What is around the arrays: order, padding, version, sizes, and text of the header."""
        way = self.rng.randrange(9)
        i, j = (self.rng.randrange(len(file.entries)) for _ in range(2))
        if way == 0:
            file.entries[i], file.entries[j] = file.entries[j], file.entries[i]
        elif way == 1:
            file.entries[i].padding = self.rng.randbytes(self.rng.randrange(9))
        elif way == 2:
            file.rest = self.rng.choice([b"\0", bytes(8), b"more", self.rng.randbytes(64)])
        elif way == 3:
            file.version = self.rng.choice([0, 2, 2**32 - 1])
        elif way == 4:
            file.longer = self.rng.choice([-8, 8, 1, 64, -64, 2**31, 2**32 - 8])
        elif way == 5:
            file.others = self.rng.choice([{"new": 1}, {"meta": {}}, {"arrays": []}])
        elif way == 6:
            del file.entries[i]
        elif way == 7 and len(file.entries) < 20:
            file.entries.insert(i, file.entries[j])
        else:
            old = self.rng.choice(['"', "{", "}", "[", ",", ":", '"length"', '"labels"', '"A"'])
            new = self.rng.choice(
                ["", old * 2, "{", "[", "\\", "NaN", "-Infinity", "\0", '"dtype"']
            )
            file.edit = lambda text: text.replace(old, new, self.rng.randrange(1, 3))
