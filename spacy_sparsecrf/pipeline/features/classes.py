"""Word classes, such as Brown clusters, found by the hash of a word.

A class is a path of bits in a tree of classes, or a whole number. Each word takes 8 bytes for its
hash, and 1, 2 or 4 bytes for its class.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
from spacy.strings import get_string_id

from ...crf.corpus.numbering import Array, Hashes
from ...errors import Errors
from ...schema import SchemaField, check, check_distinct, check_json, parse, reported_as

_FORMAT = 1
_BITS = frozenset("01")
# Limit that keeps files readable, see `schema.MAX_STRUCTURE`.
_MOST_CLASSES = 1 << 17
_WORDS = {
    "lower": SchemaField("<u8", "L", rises=True),
    "others": SchemaField("<u8", "M", rises=True),
    "codes": SchemaField("|u1 <u2 <u4", "W", below="C"),
}
_HEAD = {"n_words": int, "n_lower": int, "are_paths": bool, "code_bytes": int, "classes": [str]}


class WordClasses:
    """The classes of words.

    An unknown word has the class of its lower-case form. For this lookup, words in lower case are
    stored before all other words, and both parts are sorted.

    hashes: [W] uint64, spaCy's string hashes: first of `n_lower` words in lower case, ascending,
        then of all other words, ascending.
    codes: [W] unsigned integers < C, the class of each word.
    classes: [C] texts, paths of bits or whole numbers; the first is "", which is no class.
    are_paths: whether classes are paths.
    RAISES: ValueError that names the fault.
    """

    def __init__(
        self, hashes: Hashes, codes: Array, classes: Sequence[str], n_lower: int, are_paths: bool
    ) -> None:
        parts = {"lower": hashes[:n_lower], "others": hashes[n_lower:], "codes": codes}
        sizes = {"L": n_lower, "M": len(hashes) - n_lower, "W": len(hashes), "C": len(classes)}
        check(parts, _WORDS, sizes)
        check_distinct(classes, "classes")
        if not classes or classes[0] != "" or len(classes) > _MOST_CLASSES:
            raise ValueError(f"the first class is not empty, or there are over {_MOST_CLASSES}")
        if are_paths and not all(_BITS.issuperset(name) for name in classes):
            raise ValueError("a path is not of bits")
        self.hashes, self.codes, self.n_lower = hashes, codes, n_lower
        self.classes = tuple(classes)
        self.are_paths = are_paths

    def __len__(self) -> int:
        return len(self.hashes)

    @classmethod
    def of(cls, words: Mapping[str, str], are_paths: bool) -> "WordClasses":
        """Build the arrays. words: the class of each word.

        Words with the same class as their lower-case form are omitted.
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
            ids = np.array([*map(get_string_id, part)], dtype=np.uint64)
            distinct, positions = np.unique(ids, return_index=True)
            hashes.append(distinct)
            codes.append(np.array([*map(code.get, part.values())], dtype=dtype)[positions])
        return cls(
            np.concatenate(hashes),
            np.concatenate(codes),
            classes=classes,
            n_lower=len(hashes[0]),
            are_paths=are_paths,
        )

    def find(self, word: str) -> int:
        """Return the code of a word's class, 0 if it has no class."""
        parts = (word, self.n_lower, len(self)), (word.lower(), 0, self.n_lower)
        for text, begin, end in parts:
            wanted = np.uint64(get_string_id(text))
            i = begin + int(self.hashes[begin:end].searchsorted(wanted))
            if i < end and self.hashes[i] == wanted:
                return int(self.codes[i])
        return 0

    def joined(self, other: "WordClasses") -> "WordClasses":
        """Add the words of other classes that are missing; both have words in lower case only."""
        new = ~np.isin(other.hashes, self.hashes)
        classes = [*dict.fromkeys((*self.classes, *other.classes))]
        number = {name: i for i, name in enumerate(classes)}
        theirs = np.array([number[name] for name in other.classes])[other.codes[new]]
        hashes = np.concatenate((self.hashes, other.hashes[new]))
        codes = np.concatenate((self.codes, theirs)).astype(np.min_scalar_type(len(classes) - 1))
        order = np.argsort(hashes)
        return WordClasses(
            hashes[order],
            codes[order],
            classes=classes,
            n_lower=len(hashes),
            are_paths=self.are_paths,
        )

    def pruned(self, kept: Mapping[int, set[str]]) -> "WordClasses":
        """Remove the classes without any value in `kept`.

        kept: the values that features need, by number of bits, 0 for whole classes.
        RETURNS: word classes, in which each word has the same values among the kept values.
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
        # Keep all words with capitals: without entries, their lower-case forms would be found.
        stay = codes != 0
        stay[self.n_lower :] = True
        classes = ["", *compress(self.classes, lives)]
        n_lower = int(stay[: self.n_lower].sum())
        return WordClasses(
            self.hashes[stay],
            codes[stay],
            classes=classes,
            n_lower=n_lower,
            are_paths=self.are_paths,
        )


class ClassReader:
    """Reader of the class of a word, "" for no class.

    bits: number of leading bits of the path to read; 0 for the whole class.
    """

    def __init__(self, classes: WordClasses, bits: int) -> None:
        self._classes = classes
        self._values = [name[:bits] if bits else name for name in classes.classes]

    def __call__(self, word: str) -> str:
        """Return the class of a word."""
        return self._values[self._classes.find(word)]


# Storage


def pack(lists: Mapping[str, WordClasses]) -> bytes:
    """Serialise word classes: a line of JSON, then the arrays that it describes, in that order."""
    heads, arrays = {}, []
    for name, words in sorted(lists.items()):
        heads[name] = {
            "n_words": len(words),
            "n_lower": words.n_lower,
            "are_paths": words.are_paths,
            "code_bytes": words.codes.dtype.itemsize,
            "classes": words.classes,
        }
        little = words.codes.dtype.newbyteorder("<")
        arrays += [words.hashes.astype("<u8").tobytes(), words.codes.astype(little).tobytes()]
    head = json.dumps({"format": _FORMAT, "lists": heads}, ensure_ascii=True)
    return head.encode() + b"\n" + b"".join(arrays)


def unpack(data: bytes) -> dict[str, WordClasses]:
    """Read the output of `pack`. RAISES: SparseCRFError for other data."""
    lists = {}
    with reported_as(Errors.SC148):
        at = data.index(b"\n") + 1
        head = parse(data[:at])
        check_json(head, {"format": int, "lists": dict}, "it")
        if head["format"] != _FORMAT:
            raise ValueError(f"format {head['format']} is not known")
        for name, described in head["lists"].items():
            check_json(described, _HEAD, "a list")
            n = described["n_words"]
            size = described["code_bytes"]
            if n < 0 or size not in (1, 2, 4):
                raise ValueError("the kind of classes is not known")
            begin, at = at, at + (8 + size) * n
            if at > len(data):
                raise ValueError("it is cut off")
            # Copy, because arrays behind a line of text are not aligned.
            hashes = np.frombuffer(data, "<u8", n, begin).astype(np.uint64)
            codes = np.frombuffer(data, f"<u{size}", n, begin + 8 * n).astype(f"u{size}")
            lists[name] = WordClasses(
                hashes,
                codes,
                classes=described["classes"],
                n_lower=described["n_lower"],
                are_paths=described["are_paths"],
            )
        if at != len(data):
            raise ValueError("it is not as long as it says")
    return lists
