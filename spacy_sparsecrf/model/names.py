r"""Readable names of features: how they are written, and the file that keeps them.

    name    := "always" | part ("|" part)* | pattern
    part    := attribute "=" value
    attribute := as in a template: lower[-1]
    value   := text | number | "^" distance | "$" distance
    pattern := text ("{" text "}" text)*

`always` is the feature that reads nothing; `^2` stands for a token that would be the second before
the sequence, `$1` for the first behind it (or, with `boundaries`, for all that are farther away
too). What a pattern of another program becomes is written as there, but with braces around what its
macros stand for: u01:{the}/{cat}. A backslash takes the meaning from the character after it: \t, \n
and \r are a tab and ends of lines, and a text that could be taken for a number or for a distance
has a backslash in front, the former but in features of word classes, whose values are always texts:
cluster("brown",4)[0]=0110. So a name says what is hashed, and nothing else has that name.
"""

import json
import re
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..corpus.numbering import find_ascending
from ..errors import SparseCRFWarning, Warnings
from ..schema import SchemaField, check

ALWAYS = "always"
PATTERN_KINDS = ("u", "b", "*")  # one of them begins a pattern

_CONTROLS = {"\t": "t", "\n": "n", "\r": "r"}
_PLAIN = {letter: char for char, letter in _CONTROLS.items()}
_SAFE = {char: f"\\{_CONTROLS.get(char, char)}" for char in "\\\t\n\r"}
_IN_FIELDS = str.maketrans(_SAFE)
_IN_NAMES = str.maketrans({**_SAFE, "|": "\\|", "=": "\\="})
_IN_PATTERNS = str.maketrans({**_SAFE, **{char: f"\\{char}" for char in "|={}"}})
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
# Runs of plain characters are found at once: words may be very long.
_SIDE = r"((?=[^|=])[^\\|=]*(?:\\.[^\\|=]*)*)"
_PART = re.compile(rf"{_SIDE}={_SIDE}(\||$)", re.DOTALL)
_PIECE = re.compile(r"([^\\|={}]*(?:\\.[^\\|={}]*)*)([{}]|\Z)", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_DISTANCE = re.compile(r"([$^])([1-9][0-9]{0,9})")
# Unpacked, a file of names may take so many times its bytes, or these.
_MOST_TIMES = 100
_LEAST_LIMIT = 1 << 24
# Lines that are written at a time.
_WRITTEN = 1 << 14
_HASH = re.compile(r"0x[0-9a-f]{16}")


class Outside(NamedTuple):
    """The value of a token outside the sequence: distance < 0 before its first, > 0 behind its
    last token.
    """

    distance: int


Value: TypeAlias = str | int | Outside
Part: TypeAlias = tuple[str, Value]


def escape(text: str) -> str:
    """Write a text so that it has neither tabs nor ends of lines; `unescape` reads it."""
    return text.translate(_IN_FIELDS)


def unescape(text: str) -> str:
    """Read what `escape` wrote. RAISES: ValueError if nothing follows the last backslash."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    char = match[1]
    if not char:
        raise ValueError("nothing follows the last backslash")
    return _PLAIN.get(char, char)


def write_name(parts: Iterable[Part]) -> str:
    """Name a feature. parts: its template's attributes, and their values."""
    pairs = (f"{t.translate(_IN_NAMES)}={write_value(value, _has_texts(t))}" for t, value in parts)
    return "|".join(pairs) or ALWAYS


def _has_texts(attribute: str) -> bool:
    """Return whether a feature reads texts only, also of digits."""
    return attribute.startswith("cluster(")


def write_value(value: Value, is_text: bool = False) -> str:
    """Write a value as it stands in the names of features of templates.

    is_text: whether the feature reads texts only, so that digits are not taken for a number.
    """
    if isinstance(value, Outside):
        return f"{'^' if value.distance < 0 else '$'}{abs(value.distance)}"
    if isinstance(value, int):
        return str(int(value if -(2**63) <= value < 2**64 else value % 2**64))
    text = value.translate(_IN_NAMES)
    is_number = not is_text and _NUMBER.fullmatch(value)
    return f"\\{text}" if is_number or _DISTANCE.fullmatch(value) else text


def read_name(name: str) -> list[Part]:
    """Read the name of a feature. RAISES: ValueError for what is none."""
    if name == ALWAYS:
        return []
    parts = []
    at, more = 0, "|"
    while more:
        match = _PART.match(name, at)
        if match is None:
            raise ValueError(f"expected attribute=value at character {at + 1}")
        attribute, value, more = match.groups()
        plain = unescape(attribute)
        parts.append((plain, _read(value, _has_texts(plain))))
        at = match.end()
    return parts


def _read(text: str, is_text: bool = False) -> Value:
    if not is_text and _NUMBER.fullmatch(text):
        number = int(text)
        if not -(2**63) <= number < 2**64:
            raise ValueError(f"{text} is not a number of 64 bits")
        return number
    distance = _DISTANCE.fullmatch(text)
    if distance:
        return Outside(int(distance[2]) * (-1 if distance[1] == "^" else 1))
    return unescape(text)


def write_pattern_name(literals: Sequence[str], values: Sequence[str]) -> str:
    """Name a feature of a pattern.

    literals: the texts before, between and behind its macros; values: what these stand for.
    """
    pieces = [write_shown(text) for text in literals]
    shown = [f"{{{write_shown(text)}}}" for text in values]
    return "".join(x + y for x, y in zip(pieces, [*shown, ""], strict=True))


def write_shown(text: str) -> str:
    """Write a text as it stands in the names of features of patterns."""
    return text.translate(_IN_PATTERNS)


def read_pattern_name(name: str) -> tuple[list[str], list[str]]:
    """Read what `write_pattern_name` wrote: literals and values.

    RAISES: ValueError for what is no such name.
    """
    pieces: list[str] = []
    at, brace = 0, "{"
    while brace:
        match = _PIECE.match(name, at)
        brace = match[2] if match else "none"
        if match is None or brace not in ("", "{}"[len(pieces) % 2]):
            raise ValueError(f"expected the text of a pattern at character {at + 1}")
        pieces.append(unescape(match[1]))
        at = match.end()
    if len(pieces) % 2 == 0:
        raise ValueError("the last brace is not closed")
    return pieces[::2], pieces[1::2]


def pattern_key(literals: Sequence[str]) -> str:
    """Return the text that hashes of a pattern's features depend on, without the values."""
    return json.dumps(literals, ensure_ascii=False)


class NamedFeature(NamedTuple):
    """The contents of a name.

    key: canonical text of the template or pattern, which is hashed; values: that it reads; text:
    of the template or pattern, for messages.
    """

    key: str
    values: Sequence[Value]
    text: str


def read_feature(name: str) -> NamedFeature:
    """Read the name of a feature of a template or pattern. RAISES: ValueError for what is none."""
    try:
        parts = read_name(name)
    except ValueError:
        if name[:1] not in PATTERN_KINDS:
            raise
        literals, shown = read_pattern_name(name)
        return NamedFeature(pattern_key(literals), shown, "{}".join(literals))
    template = "|".join(attribute for attribute, _ in parts)
    return NamedFeature(template, [value for _, value in parts], template)


def read_feature_parts(name: str) -> list[Part]:
    """The features of templates and their values in a name; none for other names."""
    try:
        return read_name(name)
    except ValueError:
        return []


def write_hash(key: int) -> str:
    """Write the hash of a feature that has no name."""
    return f"0x{key:016x}"


def read_hash(text: str) -> int | None:
    """Read what `write_hash` wrote; None where it is something else."""
    return int(text, 16) if _HASH.fullmatch(text) else None


class Names:
    """Names of features by their hash; a file of them is read when the first is wanted.

    data: of `to_bytes`: text compressed by gzip, a hash and a name a line.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._data = data
        self._keys = np.empty(0, np.uint64)  # ascending
        self._texts = np.empty(0, object)

    def __len__(self) -> int:
        return len(self._known())

    def __contains__(self, key: int) -> bool:
        return len(self.missing(np.array([key], np.uint64))) == 0

    def __getitem__(self, key: int) -> str:
        """The name of a feature, or else its hash."""
        (at,) = self._find(np.array([key], np.uint64))
        return str(self._texts[at]) if at >= 0 else write_hash(key)

    def add(self, names: Mapping[int, str]) -> None:
        """Add names of features, by hash."""
        known, new = self._known(), np.fromiter(names, np.uint64, len(names))
        texts = np.fromiter(names.values(), object, len(names))
        self._keys, first = np.unique(np.concatenate((new, known)), return_index=True)
        self._texts = np.concatenate((texts, self._texts))[first]

    def by_hash(self) -> dict[int, str]:
        """All names, by the hashes of their features."""
        return dict(zip(self._known().tolist(), self._texts.tolist(), strict=True))

    def missing(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the keys [n] that have no name."""
        return keys[self._find(keys) < 0]

    def _find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Positions of keys [n] among those that have names, -1 where they have none."""
        return find_ascending(self._known(), keys)

    def to_bytes(self, *keys: NDArray[np.uint64]) -> bytes:
        """Write the names of some features, in the order of their hashes; b"" if none has one.

        The same names give the same bytes.
        """
        wanted = self._find(np.unique(np.concatenate(keys)))
        wanted = wanted[wanted >= 0]
        if not len(wanted):
            return b""
        # Higher levels take up to eight times as long, for a tenth less.
        packed = zlib.compressobj(2, wbits=16 + zlib.MAX_WBITS)
        found = [
            packed.compress(self._lines(wanted[first : first + _WRITTEN]))
            for first in range(0, len(wanted), _WRITTEN)
        ]
        return b"".join([*found, packed.flush()])

    def _lines(self, at: NDArray[np.int64]) -> bytes:
        """Return the lines of the names at these positions [n]."""
        shown = self._keys[at].astype(">u8").tobytes().hex("\n", 8).split()
        lines = map("\t".join, zip(shown, self._texts[at].tolist(), strict=True))
        return ("\n".join(lines) + "\n").encode("utf8")

    def _known(self) -> NDArray[np.uint64]:
        """The hashes of features that have names, ascending."""
        # Threads may read the data at once, to the same end; it goes last, so that no thread
        # that finds it gone finds no names.
        if data := self._data:
            # Names are no part of the model: nothing is lost but them if they cannot be read.
            try:
                self._keys, self._texts = _read_names(data)
            except (zlib.error, ValueError) as error:
                message = Warnings.SCW601.format(reason=error)
                warnings.warn(message, SparseCRFWarning, stacklevel=3)
            finally:
                self._data = b""
        return self._keys


def _read_names(data: bytes) -> tuple[NDArray[np.uint64], NDArray[np.object_]]:
    """Hashes [O] and names [O] of a file. RAISES: ValueError or zlib.error for any other."""
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    unpacked = stream.decompress(data, max(_MOST_TIMES * len(data), _LEAST_LIMIT))
    if not stream.eof or stream.unused_data:
        raise ValueError("it is cut off, too long, or something is behind it")
    lines = unpacked.decode("utf8").removesuffix("\n").split("\n")
    if any(line[16:17] != "\t" for line in lines):
        raise ValueError("a line is no hash and name")
    shown = "".join(line[:16] for line in lines)
    keys = np.frombuffer(bytes.fromhex(shown), ">u8").astype(np.uint64)
    check({"hashes": keys}, {"hashes": SchemaField("<u8", "O", rises=True)}, {"O": len(lines)})
    return keys, np.fromiter((line[17:] for line in lines), object, len(lines))
