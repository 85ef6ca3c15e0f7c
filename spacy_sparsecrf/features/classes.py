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

from ..errors import Errors, SparseCRFError

_FORMAT = 1
_BITS = frozenset("01")


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
        # Several tests read the class of a word one after the other.
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

        kept: by number of bits, 0 for whole classes, the values that tests need.
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
    if not 0 <= n_lower <= len(hashes) or len(codes) != len(hashes):
        raise ValueError("numbers of words do not fit each other")
    for part in (hashes[:n_lower], hashes[n_lower:]):
        if (part[1:] <= part[:-1]).any():
            raise ValueError("hashes of words are not ascending")
    if codes.max(initial=0) >= len(classes):
        raise ValueError("a word has a class that is not there")
    if classes[0] != "" or "" in classes[1:] or len(set(classes)) != len(classes):
        raise ValueError("classes are empty or there twice")
    if are_paths and not all(_BITS.issuperset(name) for name in classes):
        raise ValueError("a path is not of bits")


# Storage


def pack(lists: Mapping[str, WordClasses]) -> bytes:
    """Write word classes: a line of JSON, and the arrays that it tells of, in its order."""
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
    """Read what `pack` wrote.

    RAISES: SparseCRFError for anything else.
    """
    try:
        at = data.index(b"\n") + 1
        known = json.loads(data[:at])
        if known["format"] != _FORMAT:
            raise ValueError(f"format {known['format']!r} is not known")
        lists = {}
        for name, own in known["lists"].items():
            lists[name], at = _unpack(own, data, at)
        if at != len(data):
            raise ValueError("it is not as long as it says")
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise SparseCRFError(Errors.SC148.format(reason=error)) from error
    return lists


def _unpack(head: Mapping[str, Any], data: bytes, at: int) -> tuple[WordClasses, int]:
    """Read the classes that begin at a byte. RETURNS: them, and the byte behind them."""
    n, n_lower, size = head["n_words"], head["n_lower"], head["code_bytes"]
    classes, are_paths = head["classes"], head["are_paths"]
    if not all(type(number) is int and number >= 0 for number in (n, n_lower, size)):
        raise ValueError("a number of words is none")
    if size not in (1, 2, 4) or type(are_paths) is not bool:
        raise ValueError("the kind of classes is not known")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise ValueError("classes are no texts")
    end = at + (8 + size) * n
    if end > len(data):
        raise ValueError("it is cut off")
    # Copies are aligned, as what stands behind a line of text is not.
    hashes = np.frombuffer(data, "<u8", n, at).astype(np.uint64)
    codes = np.frombuffer(data, f"<u{size}", n, at + 8 * n).astype(f"u{size}")
    return WordClasses(hashes, codes, classes, n_lower, are_paths), end


def values_by_list(
    parts: Iterable[tuple[str, Any]], reads: Mapping[str, tuple[str, int]]
) -> dict[str, dict[int, set[str]]]:
    """The values of word classes that tests read, by list and by number of bits.

    parts: tests as they are written in names, and the values that they read; reads: list and
    number of bits of each test that reads one.
    """
    found: dict[str, dict[int, set[str]]] = {name: {} for name, _ in reads.values()}
    for test, value in parts:
        if test in reads and isinstance(value, str):
            name, bits = reads[test]
            found[name].setdefault(bits, set()).add(value)
    return found
