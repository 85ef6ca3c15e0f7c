"""Word classes, such as Brown clusters: the class of a word, found by the word's hash.

A class is a path of bits in a tree of classes, or a whole number. Classes take 8 bytes a word for
its hash, and as few as number them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id

from ..errors import Errors
from ..schema import SchemaField, check, check_distinct, check_json, parse, reported_as

_FORMAT = 1
_BITS = frozenset("01")
# What can be read again, see `schema.MAX_STRUCTURE`.
_MOST_CLASSES = 1 << 17
_WORDS = {
    "lower": SchemaField("<u8", "L", rises=True),
    "others": SchemaField("<u8", "M", rises=True),
    "codes": SchemaField("|u1 <u2 <u4", "W", below="C"),
}
_HEAD = {"n_words": int, "n_lower": int, "are_paths": bool, "code_bytes": int, "classes": [str]}


class WordClasses:
    """The classes of words.

    A word that is not known has the class of its lower-case form. So the words that are their own
    lower-case forms are apart from the others, each part sorted.

    hashes: [W] uint64, of the words as spaCy hashes strings: of the first `n_lower` words, which
        are in lower case, ascending, and of the others, ascending.
    codes: [W] unsigned integers < C, the class of each word.
    classes: [C] texts, paths of bits or whole numbers; the first is "", which is no class.
    are_paths: whether classes are paths.
    RAISES: ValueError that says what is wrong with them.
    """

    def __init__(
        self,
        hashes: NDArray[np.uint64],
        codes: NDArray[Any],
        classes: Sequence[str],
        n_lower: int,
        are_paths: bool,
    ) -> None:
        _check(hashes, codes, classes, n_lower, are_paths)
        self.hashes, self.codes, self.n_lower = hashes, codes, n_lower
        self.classes = tuple(classes)
        self.are_paths = are_paths
        # Several features read the class of a word one after the other.
        self._last = ("", 0)

    def __len__(self) -> int:
        return len(self.hashes)

    @classmethod
    def of(cls, words: Mapping[str, str], are_paths: bool) -> "WordClasses":
        """Lay classes out. words: the class of each word.

        Words that have the class of their lower-case forms are left out.
        """
        lower: dict[str, str] = {}
        others: dict[str, str] = {}
        for word, name in words.items():
            low = word.lower()
            if word == low:
                lower[word] = name
            elif words.get(low) != name:
                others[word] = name
        classes = ["", *sorted({*lower.values(), *others.values()})]
        code = {name: i for i, name in enumerate(classes)}
        dtype = np.min_scalar_type(len(classes) - 1)
        hashes, codes = [], []
        for part in (lower, others):
            own = np.array([*map(get_string_id, part)], dtype=np.uint64)
            own, first = np.unique(own, return_index=True)
            hashes.append(own)
            codes.append(np.array([*map(code.get, part.values())], dtype=dtype)[first])
        both = np.concatenate(hashes), np.concatenate(codes)
        return cls(*both, classes, len(hashes[0]), are_paths)

    def find(self, word: str) -> int:
        """The code of a word's class, 0 where it has none."""
        last, code = self._last
        if last != word:
            code = self._find(word)
            self._last = word, code
        return code

    def _find(self, word: str) -> int:
        lower = word.lower()
        if word != lower:
            i = self._position(word, self.n_lower, len(self.hashes))
            if i >= 0:
                return int(self.codes[i])
        i = self._position(lower, 0, self.n_lower)
        return int(self.codes[i]) if i >= 0 else 0

    def _position(self, word: str, first: int, last: int) -> int:
        """The position of a word among those from `first` to `last`, -1 where it is not there."""
        part = self.hashes[first:last]
        wanted = np.uint64(get_string_id(word))
        i = int(part.searchsorted(wanted))
        return first + i if i < len(part) and part[i] == wanted else -1

    def pruned(self, kept: Mapping[int, set[str]]) -> "WordClasses":
        """Forget the classes of which no value is kept.

        kept: by number of bits, 0 for whole classes, the values that features need.
        RETURNS: classes that give each word a class with the same values among those kept.
        """
        lives = [
            any((name[:bits] if bits else name) in values for bits, values in kept.items())
            for name in self.classes
        ]
        lives[0] = False
        alive = np.array(lives, dtype=np.bool_)
        numbers = np.where(alive, np.cumsum(alive), 0)
        dtype = np.min_scalar_type(int(alive.sum()))
        codes = numbers[self.codes].astype(dtype)
        # Without them, other words would have the classes of their lower-case forms: they stay.
        stay = codes != 0
        stay[self.n_lower :] = True
        classes = ["", *(name for name, kept in zip(self.classes, lives, strict=True) if kept)]
        n_lower = int(stay[: self.n_lower].sum())
        return WordClasses(self.hashes[stay], codes[stay], classes, n_lower, self.are_paths)


class ClassReader:
    """The class of a word, as a value: "" for none.

    bits: how many of the path's first bits are read; 0 for the whole class.
    """

    def __init__(self, classes: WordClasses, bits: int) -> None:
        self._classes = classes
        self._values = [name[:bits] if bits else name for name in classes.classes]

    def __call__(self, word: str) -> str:
        """Read the class of a word."""
        return self._values[self._classes.find(word)]


def _check(
    hashes: NDArray[np.uint64],
    codes: NDArray[Any],
    classes: Sequence[str],
    n_lower: int,
    are_paths: bool,
) -> None:
    """Check what lookups rely on. RAISES: ValueError."""
    parts = {"lower": hashes[:n_lower], "others": hashes[n_lower:], "codes": codes}
    sizes = {"L": n_lower, "M": len(hashes) - n_lower, "W": len(hashes), "C": len(classes)}
    check(parts, _WORDS, sizes)
    check_distinct(classes, "classes")
    if not classes or classes[0] != "" or len(classes) > _MOST_CLASSES:
        raise ValueError(f"the first class is not empty, or there are more than {_MOST_CLASSES}")
    if are_paths and not all(_BITS.issuperset(name) for name in classes):
        raise ValueError("a path is not of bits")


# Storage


def pack(lists: Mapping[str, WordClasses]) -> bytes:
    """Write word classes: a line of JSON, and the arrays that it describes, in its order."""
    heads, arrays = {}, []
    for name, own in sorted(lists.items()):
        heads[name] = {
            "n_words": len(own),
            "n_lower": own.n_lower,
            "are_paths": own.are_paths,
            "code_bytes": own.codes.dtype.itemsize,
            "classes": own.classes,
        }
        little = own.codes.dtype.newbyteorder("<")
        arrays += [own.hashes.astype("<u8").tobytes(), own.codes.astype(little).tobytes()]
    head = json.dumps({"format": _FORMAT, "lists": heads}, ensure_ascii=True)
    return head.encode() + b"\n" + b"".join(arrays)


def unpack(data: bytes) -> dict[str, WordClasses]:
    """Read what `pack` wrote. RAISES: SparseCRFError for anything else."""
    with reported_as(Errors.SC148):
        at = data.index(b"\n") + 1
        head = parse(data[:at])
        check_json(head, {"format": int, "lists": dict}, "it")
        if head["format"] != _FORMAT:
            raise ValueError(f"format {head['format']} is not known")
        lists = {}
        for name, own in head["lists"].items():
            lists[name], at = _unpack(own, data, at)
        if at != len(data):
            raise ValueError("it is not as long as it says")
    return lists


def _unpack(head: Any, data: bytes, at: int) -> tuple[WordClasses, int]:
    """Read the classes that begin at a byte. RETURNS: them, and the byte behind them."""
    check_json(head, _HEAD, "a list")
    n, size = head["n_words"], head["code_bytes"]
    if n < 0 or size not in (1, 2, 4):
        raise ValueError("the kind of classes is not known")
    end = at + (8 + size) * n
    if end > len(data):
        raise ValueError("it is cut off")
    # Copies are aligned, as what stands behind a line of text is not.
    hashes = np.frombuffer(data, "<u8", n, at).astype(np.uint64)
    codes = np.frombuffer(data, f"<u{size}", n, at + 8 * n).astype(f"u{size}")
    return WordClasses(hashes, codes, head["classes"], head["n_lower"], head["are_paths"]), end


def values_by_list(
    parts: Iterable[tuple[str, Any]], reads: Mapping[str, tuple[str, int]]
) -> dict[str, dict[int, set[str]]]:
    """The values of word classes that features read, by list and by number of bits.

    parts: attributes as they are written in names, and the values that they read; reads: list and
    number of bits of each attribute that reads one.
    """
    found: dict[str, dict[int, set[str]]] = {name: {} for name, _ in reads.values()}
    for attribute, value in parts:
        if attribute in reads and isinstance(value, str):
            name, bits = reads[attribute]
            found[name].setdefault(bits, set()).add(value)
    return found
