"""Inputs of all kinds as bytes, which a fuzzer guided by coverage keeps and changes.

The first byte is the number of the sound input in whose place the others are used.
"""

import base64
import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from .files import ClassesFile, NamesFile, sealed_again, taken_apart
from .fuzz import ALL
from .texts import Text

CORPUS = Path(__file__).with_name("corpus.jsonl")
TARGETS = ["model", "names", "checkpoint", "clusters", "templates", "patterns", "columns", "conllu"]
TARGETS += ["tables", "json", "brat", "dump", "class files", "imported"]
_PLAIN_CHANGES = 0.4  # share of changes of bytes and not of what they stand for


class Raw(NamedTuple):
    """The bytes of a file, in the place of its parts."""

    data: bytes
    note: str

    def to_bytes(self) -> bytes:
        """The file."""
        return self.data


class Inputs:
    """Inputs of a kind, by its name."""

    def __init__(self, name: str) -> None:
        self.kind = ALL[name]
        self.sound = self.kind.sound()
        self.mutator = self.kind.mutator(self.sound, 0)

    def first(self) -> list[bytes]:
        """The sound inputs."""
        return [bytes([i]) + each.to_bytes() for i, each in enumerate(self.sound)]

    def of(self, data: bytes) -> tuple[Any, Any]:
        """What bytes are used as, and the sound one."""
        sound = self.sound[data[0] % len(self.sound) if data else 0]
        if isinstance(sound, Text):
            return Text(_decoded(data[1:]), sound.note), sound
        return Raw(data[1:], sound.note), sound

    def drawn(self, seed: int) -> bytes:
        """A change of a sound input, as the fuzzer makes them that nothing guides."""
        self.mutator.sound, self.mutator.rng = self.sound, random.Random(seed)
        file, sound = self.mutator.mutated()
        number = next(i for i, each in enumerate(self.sound) if each is sound)
        return bytes([number]) + file.to_bytes()

    def changed(self, data: bytes, seed: int, change: Callable[[bytes], bytes]) -> bytes:
        """A change of any input. change: of bytes that have no structure."""
        rng = self.mutator.rng = random.Random(seed)
        file, sound = self.of(data)
        if rng.random() < _PLAIN_CHANGES:
            body = change(data[1:])
            is_sealed = isinstance(file, Raw) and type(sound) not in (ClassesFile, NamesFile)
            return data[:1] + (sealed_again(body) if is_sealed else body)
        if isinstance(file, Raw):
            read = getattr(type(sound), "of", taken_apart)
            try:
                file = read(file.data)
            except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError):
                file = deepcopy(sound)
        self.mutator.sound = [file]
        return data[:1] + self.mutator.mutated()[0].to_bytes()


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin1")


def kept() -> Iterator[tuple[str, bytes]]:
    """Inputs that reached something new, each with the name of its kind."""
    for line in CORPUS.read_text(encoding="utf8").splitlines():
        name, data = json.loads(line)
        yield name, base64.b85decode(data)


def keep(name: str, found: list[bytes]) -> None:
    """Put inputs of a kind in the place of those that are kept."""
    rows = [row for row in kept() if row[0] != name] if CORPUS.exists() else []
    rows += [(name, data) for data in found]
    lines = [json.dumps([own, base64.b85encode(data).decode()]) for own, data in sorted(rows)]
    CORPUS.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
