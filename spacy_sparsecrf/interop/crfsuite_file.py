"""The binary model files of CRFsuite, read in place and written.

    header            "lCRF", size, "FOMC", version, 3 counts, 5 offsets of what follows
    FEAT              for each weight: 0 (of an attribute) or 1 (of a label pair), its number or the
                      label before, the label, the weight
    CQDB, CQDB        names of labels and of attributes
    LFRF, AFRF        for each label and attribute, the numbers of its weights

All numbers are little-endian and have 32 bits, weights are float64. A CQDB has 256 hash tables from
names to numbers, and an array from numbers to names, which end with a zero byte.
Reading needs the standard library alone: a process that labels a few texts loads nothing else.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import Errors, SparseCRFError

if TYPE_CHECKING:
    from ..crf.corpus.numbering import Floats, Longs

MAGIC = b"lCRF"
_VERSION, _BYTE_ORDER = 100, 0x62445371
_HEADER = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4sII")  # name, size, number
_WEIGHT = struct.Struct("<IIId")
_ROW = [("kind", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")]
_STRINGS = struct.Struct("<4s5I")  # name, size, 0, byte order, number, offset of the array
_NUMBER, _PAIR = struct.Struct("<I"), struct.Struct("<II")
_HEAD = re.compile(rb"\0.{8}", re.DOTALL)  # the end of a name, and the pair before the next one
_N_TABLES = 256
_LOW = 0xFFFFFFFF
FEW_LABELS = 1000  # whose pairs always fit in memory
LARGEST = 3.4028234663852886e38  # of float32, so that sums of weights are finite
_AHEAD, _AT_ONCE, _MOST_AHEAD = 1 << 7, 1 << 13, 1 << 17  # names: of a look-up, and of models
_MIX, _FINAL = (4, 6, 8, 16, 19, 4), (14, 11, 25, 16, 4, 14, 24)  # turns of the hash
_DAMAGE = (ValueError, LookupError, struct.error)


class ExternalWeights(NamedTuple):
    """Weights of features with labels, or with pairs of labels.

    features: [n] int64; previous, labels: [n] int64, -1 for no label before; values: [n] float64.
    """

    features: "Longs"
    previous: "Longs"
    labels: "Longs"
    values: "Floats"

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, float]]) -> "ExternalWeights":
        """Return weights that are given as feature, label before or -1, label and value."""
        import numpy as np

        ids = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3)
        return cls(ids[:, 0], ids[:, 1], ids[:, 2], np.array([row[3] for row in rows], np.float64))


def _damage(path: object, reason: Exception) -> SparseCRFError:
    """Return an error about damaged data."""
    return SparseCRFError(Errors.SC631.format(path=path, program="CRFsuite", reason=reason))


@contextmanager
def _reading(path: object) -> Iterator[None]:
    """Report damage that the body finds. path: of the model, for messages."""
    try:
        yield
    except SparseCRFError:
        raise
    except _DAMAGE as error:
        raise _damage(path, error) from error


class CrfsuiteModel:
    """A model in CRFsuite's format, read on demand.

    data: the file; path: for messages. RAISES: SparseCRFError, also later, for damaged data.
    Attributes: labels: in order; n_attributes: their number; numbers: of attributes by name, from
    1; 0 of unknown ones.
    """

    def __init__(self, data: bytes, path: object = "the model") -> None:
        self.data, self.path = data, path
        with _reading(path):
            magic, size, *_ = header = _HEADER.unpack_from(data)
            if magic != MAGIC or size != len(data):
                raise ValueError(f"it has {len(data)} bytes")
            *_, self._weights_at, labels, attributes, self._of_labels, self._of_attributes = header
            self._names, self.labels = _Names(data, attributes), [*_Names(data, labels)]
            self.n_attributes = self._names.n
            self.numbers = _Numbers(self._names, path)
            check_labels(self.labels, len(data), path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the data, which is read in place."""
        return CrfsuiteModel, (self.data, self.path)

    def states(self, number: int) -> dict[int, float]:
        """Return the weights of an attribute by label."""
        try:
            return self._of(0, self._of_attributes, number - 1)
        except _DAMAGE as error:  # a hot path, so without the context
            raise _damage(self.path, error) from error

    def all_states(self) -> ExternalWeights:
        """Return the weights of all attributes with labels, in the order of attributes."""
        import numpy as np

        with _reading(self.path):
            # Numbers of 32 bits at each byte.
            words = np.ndarray(len(self.data) - 3, "<u4", self.data, strides=(1,))
            n = self.n_attributes
            places = words[self._of_attributes + _CHUNK.size + 4 * np.arange(n)].astype(np.int64)
            counts = words[places].astype(np.int64)
            if counts.sum() > len(self.data):
                raise ValueError("attributes share references")
            skipped = places + 4 - 4 * (np.cumsum(counts) - counts)
            ids = words[np.repeat(skipped, counts) + 4 * np.arange(counts.sum())]
            begin = self._weights_at + _CHUNK.size
            rows = np.ndarray((len(words) + 3 - begin) // _WEIGHT.size, _ROW, self.data, begin)[ids]
            sources, labels, values = rows["source"], rows["label"].astype(np.int64), rows["weight"]
            numbers = np.repeat(np.arange(n), counts)
            is_wrong = (rows["kind"] != 0) | (sources != numbers) | (labels >= len(self.labels))
            for is_damaged, reason in (
                (is_wrong, "of another number"),
                (~(np.abs(values) <= LARGEST), "not finite in 32 bits"),
            ):
                if is_damaged.any():
                    raise ValueError(f"weight {ids[is_damaged.argmax()]} is {reason}")
            return ExternalWeights(numbers, np.full(len(ids), -1), labels, values.copy())

    def transitions(self) -> list[tuple[int, int, float]]:
        """Return the label before, the label and the weight of each transition, ascending."""
        with _reading(self.path):
            return [
                (previous, label, weight)
                for previous in range(len(self.labels))
                for label, weight in sorted(self._of(1, self._of_labels, previous).items())
            ]

    def entries(self) -> Iterator[tuple[int, int, int, float]]:
        """Yield the non-zero weights; see `TrainedWeights.entries`."""
        for number in range(1, self.n_attributes + 1):
            yield from (
                (number, -1, y, weight) for y, weight in self.states(number).items() if weight
            )
        yield from ((0, *transition) for transition in self.transitions() if transition[2])

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self.data)

    @property
    def attributes(self) -> list[str]:
        """The attributes, by number from 1."""
        with _reading(self.path):
            return [*self._names]

    def _of(self, kind: int, references: int, number: int) -> dict[int, float]:
        """Return weights of a label or attribute by label. RAISES: ValueError or struct.error."""
        data, n_labels = self.data, len(self.labels)
        weights: dict[int, float] = {}
        (at,) = _NUMBER.unpack_from(data, references + _CHUNK.size + 4 * number)
        (n,) = _NUMBER.unpack_from(data, at)
        begin, read = self._weights_at + _CHUNK.size, _WEIGHT.unpack_from
        for k in struct.unpack_from(f"<{n}I", data, at + _NUMBER.size):
            stored_kind, source, label, weight = read(data, begin + k * _WEIGHT.size)
            if stored_kind != kind or source != number or label >= n_labels:
                raise ValueError(f"weight {k} is not of number {number}")
            if not -LARGEST <= weight <= LARGEST:
                raise ValueError(f"weight {k} is not finite in 32 bits")
            weights[label] = weights.get(label, 0.0) + weight
        return weights


class _Numbers(dict[str, int]):
    """Numbers of names from 1; see `CrfsuiteModel`. path: for messages.

    Soon all names of a model that is not large are there: to look one up in the file takes as long
    as to read many.
    """

    def __init__(self, names: "_Names", path: object) -> None:
        super().__init__()
        self._names, self._path = names, path
        self._n_read = 0

    def __missing__(self, name: str) -> int:
        n = self._names.n
        if len(self) == n:
            return 0
        try:
            number = self._names.find(name) + 1
            if self._n_read < n <= _MOST_AHEAD:
                begin = self._n_read
                self._n_read = n if n <= _AT_ONCE else begin + _AHEAD
                names = self._names.read(begin, self._n_read)
                self.update(zip(names, range(begin + 1, n + 1), strict=False))
        except _DAMAGE as error:
            raise _damage(self._path, error) from error
        return number


class _Names:
    """Names of a CQDB, iterated by number. RAISES: ValueError, LookupError or struct.error."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        name, _, _, order, self.n, self._places = _STRINGS.unpack_from(data, at)
        if name != b"CQDB" or order != _BYTE_ORDER:
            raise ValueError("it has no names")

    def find(self, name: str) -> int:
        """Return the number of a name by its hash, or -1."""
        key = encoded(name) + b"\0"
        code = hash_of(key)
        at, n = self._pair(_STRINGS.size + 8 * (code % _N_TABLES))
        for k in range(n):
            stored_code, record = self._pair(at + 8 * (((code >> 8) + k) % n))
            if not record:
                break
            if stored_code == code and self._key(record) == key:
                number = self._pair(record)[0]
                if number >= self.n:
                    raise ValueError(f"name {number} is there, but only {self.n} names are")
                return number
        return -1

    def read(self, begin: int, end: int) -> list[str]:
        """Return the names of some numbers, if each is stored where the one before ends."""
        n = min(end, self.n) - begin
        places = struct.unpack_from(f"<{n}I", self._data, self._at + self._places + 4 * begin)
        first, last = places[0], places[-1]
        stop = last + _PAIR.size + self._pair(last)[1]
        keys = _HEAD.split(b"\0" + self._data[self._at + first : self._at + stop])
        _, *names, _ = b"\0".join(keys).decode("utf8", "surrogateescape").split("\0")
        return names if len(names) == n else []

    def __iter__(self) -> Iterator[str]:
        left = len(self._data)
        for record in struct.unpack_from(f"<{self.n}I", self._data, self._at + self._places):
            begin = self._at + record + _PAIR.size
            key = self._data[begin : begin + _PAIR.unpack_from(self._data, begin - _PAIR.size)[1]]
            # Names may share bytes, in number of times as long as the file.
            left -= len(key)
            if left < 0:
                raise ValueError("its names are longer than the file")
            if not key or key.find(0) < len(key) - 1:
                raise ValueError("a name does not end with its zero byte")
            yield key[:-1].decode("utf8", "surrogateescape")

    def _pair(self, offset: int) -> tuple[int, int]:
        pair: tuple[int, int] = _PAIR.unpack_from(self._data, self._at + offset)
        return pair

    def _key(self, record: int) -> bytes:
        begin = self._at + record + _PAIR.size
        return self._data[begin : begin + self._pair(record)[1]]


def check_labels(labels: Sequence[str], n_bytes: int, path: object) -> None:
    """Check the labels of a file, before anything is allocated for their pairs.

    n_bytes: size of the file; path: for messages.
    RAISES: ValueError for none, and for empty or repeated ones; SparseCRFError if their pairs take
        too much memory.
    """
    if not labels:
        raise ValueError("it has no labels")
    if "" in labels or len({*labels}) < len(labels):
        raise ValueError("a label is empty, or is there twice")
    if len(labels) > FEW_LABELS:
        from ..crf.memory import check_labels_fit  # imports pathlib, as slow as labelling

        check_labels_fit(len(labels), str(path), n_bytes)


def encoded(text: str) -> bytes:
    """Return the bytes of a name; what is no UTF-8 was read as lone surrogates (PEP 383)."""
    try:
        return text.encode("utf8", "surrogateescape")
    except UnicodeEncodeError:  # of no name that was read
        return text.encode("utf8", "surrogatepass")


def hash_of(key: bytes) -> int:
    """Return the hash of a key by Bob Jenkins' `hashlittle` (lookup3, 2006), for initval 0."""
    a = b = c = 0xDEADBEEF + len(key)
    words = struct.unpack(f"<{-(-len(key) // 12) * 3}I", key + bytes(-len(key) % 12))
    for i in range(0, len(words), 3):
        a, b, c = a + words[i] & _LOW, b + words[i + 1] & _LOW, c + words[i + 2] & _LOW
        for n in _MIX if i + 3 < len(words) else ():
            a, b, c = b, c + b & _LOW, a - c & _LOW ^ (c << n & _LOW | c >> 32 - n)
    for n in _FINAL:
        a, b, c = b, (c ^ b) - (b << n & _LOW | b >> 32 - n) & _LOW, a
    return b


# Writing


def write_crfsuite(
    labels: Sequence[str], attributes: Sequence[str], weights: ExternalWeights
) -> bytes:
    """Return a model in CRFsuite's format.

    weights: of attributes by index; of label pairs if the index is the number of attributes.
    RAISES: SparseCRFError for a name with a zero byte, and for over 4 GB.
    """
    import numpy as np

    features, previous, targets, values = weights
    is_pair = features == len(attributes)
    table = np.zeros(len(values), "<u4, <u4, <u4, <f8")
    sources = np.where(is_pair, previous, features)
    table["f0"], table["f1"], table["f2"], table["f3"] = is_pair, sources, targets, values
    body = bytearray(_HEADER.size) + _CHUNK.pack(b"FEAT", _CHUNK.size + table.nbytes, len(table))
    body += table.tobytes()
    places = [_HEADER.size]
    for names in (labels, attributes):
        places.append(len(body))
        body += _write_names(names)
    # The last two places of labels, for the beginning and the end, are not used.
    for name, of, n, unused in ((b"LFRF", 1, len(labels), 2), (b"AFRF", 0, len(attributes), 0)):
        body += bytes(-len(body) % 4)
        places.append(len(body))
        numbers = np.flatnonzero(is_pair == of)
        sources_of_kind = sources[numbers]
        order = numbers[np.argsort(sources_of_kind, kind="stable")].astype("<u4")
        ends = np.searchsorted(np.sort(sources_of_kind), np.arange(n + 1)).tolist()
        body += _write_references(name, len(body), order=order, ends=ends, unused=unused)
    # CRFsuite never sets the number of weights in the header.
    header = _HEADER.pack(
        MAGIC, len(body), b"FOMC", _VERSION, 0, len(labels), len(attributes), *places
    )
    body[: len(header)] = header
    return bytes(body)


def _write_references(name: bytes, at: int, order: Any, ends: Sequence[int], unused: int) -> bytes:
    """Return references at a place of a file.

    order: numbers of weights by source, which end at `ends`; unused: number of places left empty.
    """
    n = len(ends) - 1 + unused
    body, places = bytearray(), []
    begin = at + _CHUNK.size + 4 * n
    for i, j in pairwise(ends):
        places.append(begin + len(body))
        body += struct.pack("<I", j - i) + order[i:j].tobytes()
    places += [0] * unused
    return _CHUNK.pack(name, begin - at + len(body), n) + struct.pack(f"<{n}I", *places) + body


def _write_names(names: Sequence[str]) -> bytes:
    """Return a CQDB. RAISES: SparseCRFError for a name with a zero byte."""
    records, places, tables = bytearray(), [], [list[tuple[int, int]]() for _ in range(_N_TABLES)]
    begin = _STRINGS.size + _N_TABLES * _PAIR.size
    for number, name in enumerate(names):
        key = encoded(name) + b"\0"
        if key.index(0) < len(key) - 1:
            raise SparseCRFError(Errors.SC821.format(name=name))
        places.append(begin + len(records))
        code = hash_of(key)
        tables[code % _N_TABLES].append((code, places[-1]))
        records += _PAIR.pack(number, len(key)) + key
    listed, slots = bytearray(), bytearray()
    for table in tables:
        filled = [(0, 0)] * (2 * len(table))
        for code, record in table:
            k = (code >> 8) % len(filled)
            while filled[k][1]:
                k = (k + 1) % len(filled)
            filled[k] = code, record
        listed += _PAIR.pack(begin + len(records) + len(slots) if table else 0, len(filled))
        slots += b"".join(_PAIR.pack(code, record) for code, record in filled)
    at = begin + len(records) + len(slots)
    array = struct.pack(f"<{len(places)}I", *places)
    head = _STRINGS.pack(b"CQDB", at + len(array), 0, _BYTE_ORDER, len(names), at if names else 0)
    return head + bytes(listed + records + slots) + array
