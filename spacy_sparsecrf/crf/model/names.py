r"""Readable names of features: their syntax, and the file that stores them.

    name    := "always" | part ("|" part)* | pattern
    part    := attribute "=" value
    attribute := as in a template: lower[-1]
    value   := text | number | "^" distance | "$" distance
    pattern := text ("{" text "}" text)*

`always` is the feature that reads no attribute. `^2` is the second position before the sequence,
`$1` the first position after it; with `boundaries`, the largest distance includes all positions
farther away. Features of another program's patterns are written as in that program, with braces
around the values of macros: u01:{the}/{cat}. A backslash escapes the next character; \t, \n and \r
are a tab and line ends, \u001b is a character of `errors.UNSAFE`. A backslash also precedes a text
that looks like a distance or a number, except for numbers of `cluster` and `word_labels`, whose
values are always texts: cluster("brown",4)[0]=0110. A name determines what is hashed, and is unique
to its feature.
"""

import json
import re
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import UNSAFE, SparseCRFWarning, Warnings
from ...schema import SchemaField, check
from ..corpus.numbering import find_ascending

ALWAYS = "always"
PATTERN_KINDS = ("u", "b", "*")  # first characters of a pattern

_CONTROLS = {"\t": "t", "\n": "n", "\r": "r"}
_PLAIN = {letter: char for char, letter in _CONTROLS.items()}
_SAFE = UNSAFE | {char: f"\\{_CONTROLS.get(char, char)}" for char in "\\\t\n\r"}
_IN_FIELDS = str.maketrans(_SAFE)
_IN_NAMES = str.maketrans({**_SAFE, "|": "\\|", "=": "\\="})
_IN_PATTERNS = str.maketrans({**_SAFE, **{char: f"\\{char}" for char in "|={}"}})
_ESCAPED = re.compile(r"\\(u(?!d[89a-f])[0-9a-f]{4}|.?)", re.DOTALL)
# Runs of plain characters are matched at once, because words may be very long.
_SIDE = r"((?=[^|=])[^\\|=]*(?:\\.[^\\|=]*)*)"
_PART = re.compile(rf"{_SIDE}={_SIDE}(\||$)", re.DOTALL)
_PIECE = re.compile(r"([^\\|={}]*(?:\\.[^\\|={}]*)*)([{}]|\Z)", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_DISTANCE = re.compile(r"([$^])([1-9][0-9]{0,9})")
# Limits of a decompressed file: ratio to its size, or bytes if that is more.
MOST_TIMES = 100
LEAST_LIMIT = 1 << 24
_HASH = re.compile(r"0x[0-9a-f]{16}")


class Outside(NamedTuple):
    """Value of a position outside the sequence; distance: < 0 before it, > 0 after it."""

    distance: int


Value: TypeAlias = str | int | Outside
Part: TypeAlias = tuple[str, Value]


def escape(text: str) -> str:
    """Escape the tabs, line ends, unsafe characters and backslashes of a text."""
    return text.translate(_IN_FIELDS)


def unescape(text: str) -> str:
    """Undo `escape`. RAISES: ValueError if nothing follows the last backslash."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    char = match[1]
    if not char:
        raise ValueError("nothing follows the last backslash")
    return chr(int(char[1:], 16)) if len(char) > 1 else _PLAIN.get(char, char)


def write_name(parts: Iterable[Part]) -> str:
    """Return the name of a feature. parts: attributes of its template, and their values."""
    pairs = (f"{t.translate(_IN_NAMES)}={write_value(value, _has_texts(t))}" for t, value in parts)
    return "|".join(pairs) or ALWAYS


def _has_texts(attribute: str) -> bool:
    """Return whether the values of an attribute are always texts, even if they are digits."""
    return attribute.startswith(("cluster(", "word_labels["))


def write_value(value: Value, is_text: bool = False) -> str:
    """Write a value in the syntax of names of template features.

    is_text: whether values are always texts, so that digits are never read as a number.
    """
    if isinstance(value, Outside):
        return f"{'^' if value.distance < 0 else '$'}{abs(value.distance)}"
    if isinstance(value, int):
        return str(int(value if -(2**63) <= value < 2**64 else value % 2**64))
    text = value.translate(_IN_NAMES)
    is_number = not is_text and _NUMBER.fullmatch(value)
    return f"\\{text}" if is_number or _DISTANCE.fullmatch(value) else text


def read_name(name: str) -> list[Part]:
    """Parse the name of a template feature. RAISES: ValueError for a malformed name."""
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
    """Return the name of a pattern feature.

    literals: the texts before, between and after its macros; values: the values of its macros.
    """
    pieces = [write_shown(text) for text in literals]
    shown = [f"{{{write_shown(text)}}}" for text in values]
    return "".join(x + y for x, y in zip(pieces, [*shown, ""], strict=True))


def write_shown(text: str) -> str:
    """Escape a text for the name of a pattern feature."""
    return text.translate(_IN_PATTERNS)


def read_pattern_name(name: str) -> tuple[list[str], list[str]]:
    """Parse the name of a pattern feature into literals and values.

    RAISES: ValueError for a malformed name.
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
    """Return the text that is hashed for a pattern, without the values of its macros."""
    return json.dumps(literals, ensure_ascii=False)


class NamedFeature(NamedTuple):
    """A parsed name.

    key: canonical text of the template or pattern, which is hashed; values: values that it reads;
    text: the template or pattern, for messages.
    """

    key: str
    values: Sequence[Value]
    text: str


def read_feature(name: str) -> NamedFeature:
    """Parse the name of a template or pattern feature. RAISES: ValueError for a malformed name."""
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
    """Return the attributes and values in the name of a template feature; empty for other names."""
    try:
        return read_name(name)
    except ValueError:
        return []


def read_hash(text: str) -> int | None:
    """Parse the hash that `Names` gives a feature without a name; None for other texts."""
    return int(text, 16) if _HASH.fullmatch(text) else None


class Names:
    """Names of features by hash; stored names are parsed at first use.

    data: output of `to_bytes`: gzip-compressed text, a hash and a name per line.
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
        """Return the name of a feature, or its hash if it has no name."""
        (at,) = self._find(np.array([key], np.uint64))
        return str(self._texts[at]) if at >= 0 else f"0x{key:016x}"

    def add(self, names: Mapping[int, str]) -> None:
        """Add names of features, by hash."""
        known, new = self._known(), np.fromiter(names, np.uint64, len(names))
        texts = np.fromiter(names.values(), object, len(names))
        self._keys, first = np.unique(np.concatenate((new, known)), return_index=True)
        self._texts = np.concatenate((texts, self._texts))[first]

    def by_hash(self) -> dict[int, str]:
        """Return all names by hash."""
        return dict(zip(self._known().tolist(), self._texts.tolist(), strict=True))

    def missing(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the keys [n] that have no name."""
        return keys[self._find(keys) < 0]

    def _find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the positions of keys [n] among the named features, -1 for nameless features."""
        return find_ascending(self._known(), keys)

    def to_bytes(self, *keys: NDArray[np.uint64]) -> bytes:
        """Serialise the names of the given features, ascending by hash; b"" without any name.

        The same names give the same bytes.
        """
        wanted = self._find(np.unique(np.concatenate(keys)))
        wanted = wanted[wanted >= 0]
        if not len(wanted):
            return b""
        shown = self._keys[wanted].astype(">u8").tobytes().hex("\n", 8).split()
        lines = map("{}\t{}\n".format, shown, self._texts[wanted].tolist())
        # Higher levels take up to eight times as long and save only a tenth of the size.
        text = "".join(lines).encode("utf8")
        packed = _gzip(text, 2)
        return packed if len(text) <= _most(packed) else _gzip(text, 0)

    def _known(self) -> NDArray[np.uint64]:
        """Return the hashes of named features, ascending; parse stored names first."""
        # Several threads may parse the data at once, with the same result. The data is cleared
        # last, so that no thread sees it cleared before the names are set.
        if data := self._data:
            # Names are not part of the model: if they are unreadable, only names are lost.
            try:
                self._keys, self._texts = _read_names(data)
            except (zlib.error, ValueError) as error:
                message = Warnings.SCW601.format(reason=error)
                warnings.warn(message, SparseCRFWarning, stacklevel=3)
            finally:
                self._data = b""
        return self._keys


def _gzip(text: bytes, level: int) -> bytes:
    packed = zlib.compressobj(level, wbits=16 + zlib.MAX_WBITS)
    return packed.compress(text) + packed.flush()


def _most(packed: bytes) -> int:
    """Return the longest text to which data is decompressed, in bytes."""
    return max(MOST_TIMES * len(packed), LEAST_LIMIT)


def _read_names(data: bytes) -> tuple[NDArray[np.uint64], NDArray[np.object_]]:
    """Parse hashes [O] and names [O]. RAISES: ValueError or zlib.error for other data."""
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    unpacked = stream.decompress(data, _most(data))
    if not stream.eof or stream.unused_data:
        raise ValueError("it is cut off, too long, or something is behind it")
    lines = unpacked.decode("utf8").removesuffix("\n").split("\n")
    if any(line[16:17] != "\t" for line in lines):
        raise ValueError("a line is no hash and name")
    shown = "".join(line[:16] for line in lines)
    keys = np.frombuffer(bytes.fromhex(shown), ">u8").astype(np.uint64)
    check({"hashes": keys}, {"hashes": SchemaField("<u8", "O", rises=True)}, {"O": len(lines)})
    return keys, np.fromiter((line[17:] for line in lines), object, len(lines))
