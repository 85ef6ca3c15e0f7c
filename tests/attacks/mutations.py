"""Structural mutations of files: numbers, dtypes, lengths, keys, order, text."""

import random
from copy import deepcopy

import numpy as np

from .files import Entry, File, Json

JUNK: list[Json] = [None, True, False, 0, 1, -1, 7, 2**31, 2**63, 2**64, 10**30, -(2**63)]
JUNK += [0.5, 1e308, "", "a", "A", "Ü", "\ud800", "\0", "unigram.keys", "<u8", "<f8", "|O", "<f2"]
JUNK += [">u2", "maxent"]
JUNK += [[], {}, [0], [[]], {"a": 1}, ["a", "a"], [0, 2], ["A", "Ü", "B"]]
NUMBERS = [0, 1, -1, 2, 255, 65534, 65535, 65536, 2**31, 2**32 - 1, 2**63, 2**64 - 1, -(10**8)]
FLOATS = [0.0, -0.0, 1e-300, 1e308, -1e308, 3e38, np.nan, np.inf, -np.inf]
DTYPES = ["<u8", "<i8", "<u2", "<u4", "<f4", "<f8"]
# Sums of the largest of these weights overflow.
QUIET = {"over": "ignore", "invalid": "ignore", "divide": "ignore", "under": "ignore"}


class Mutator:
    """Mutates the structure of files, and keeps digests valid."""

    def __init__(self, sound: list[File], seed: int) -> None:
        self.sound = sound
        self.rng = random.Random(seed)

    def mutated(self) -> tuple[File, File]:
        """Return a file with one to three possible faults, and its sound original."""
        sound = self.rng.choice(self.sound)
        file = deepcopy(sound)
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            if file.entries:
                getattr(self, f"_{self.rng.choice(file.changes)}")(file)
        return file, sound

    def _meta(self, file: File) -> None:
        file.meta = self.other(file.meta)

    def _told(self, file: File) -> None:
        entry = self.rng.choice(file.entries)
        entry.told = self.other(entry.told)

    def other(self, node: Json) -> Json:
        """Return JSON with one change."""
        if not isinstance(node, dict | list) or not node or self.rng.random() < 0.1:
            near = [node + 1, node - 1, node * 2**32] if type(node) is int else []
            return self.rng.choice(near + JUNK)
        if isinstance(node, list):
            i = self.rng.randrange(len(node))
            whole = [*node[:i], *node[i + 1 :]], [*node, node[i]], node[::-1], [*node, "new"]
            return self.rng.choice([[*node[:i], self.other(node[i]), *node[i + 1 :]], *whole])
        key = self.rng.choice(list(node))
        less = {name: value for name, value in node.items() if name != key}
        swapped = {**less, key: node[self.rng.choice(list(node))]}
        ways = [{**node, key: self.other(node[key])}] * 4 + [less, {**node, "new": 1}, swapped]
        return self.rng.choice(ways)

    def _values(self, file: File) -> None:
        """Change values, their number, or their dtype, consistently with the header."""
        entry = self.rng.choice(file.entries)
        told = entry.told if isinstance(entry.told, dict) else {}
        name, dtype = told.get("name"), told.get("dtype")
        if dtype not in DTYPES or len(entry.data) % np.dtype(dtype).itemsize:
            return
        array = np.frombuffer(entry.data, dtype).copy()
        if self.rng.random() < 0.25:
            dtype = self.rng.choice(DTYPES)
            with np.errstate(all="ignore"):
                array = array.astype(dtype)
        if len(array) and self.rng.random() < 0.6:
            few = FLOATS if array.dtype.kind == "f" else NUMBERS
            number = self.rng.choice([*few, self.rng.randrange(6)])
            with np.errstate(all="ignore"):
                wide = np.float64 if array.dtype.kind == "f" else np.uint64
                whole = number if wide is np.float64 else int(number) % 2**64
                array[self.rng.randrange(len(array))] = np.array([whole], wide).astype(array.dtype)[
                    0
                ]
        else:
            longer = np.concatenate((array, array[-1:]))
            array = self.rng.choice([array[:-1], array[::-1], longer, array[:0], array[1:]])
        file.entries[file.entries.index(entry)] = Entry.of(name, array)

    def _bytes(self, file: File) -> None:
        entry = self.rng.choice(file.entries)
        if entry.data:
            data = bytearray(entry.data)
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
            entry.data = bytes(data)

    def _frame(self, file: File) -> None:
        """Change the frame of the arrays: order, padding, version, sizes, and header text."""
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
