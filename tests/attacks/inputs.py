"""Inputs of all types as bytes, for a coverage-guided fuzzer.

The first byte is the index of the sound input that the remaining bytes replace.
"""

import base64
import json
import random
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, TypeAlias

from .files import File, sealed_again, taken_apart
from .fuzz import ALL, attempt
from .texts import Text

CORPUS = Path(__file__).with_name("corpus.jsonl")
TARGETS = ["model", "names", "checkpoint", "clusters", "templates", "patterns", "columns", "conllu"]
TARGETS += ["tables", "json", "brat", "dump", "class files", "imported"]
_PLAIN_CHANGES = 0.4  # share of mutations of raw bytes, not of their content

_Branch: TypeAlias = tuple[str, int, int]  # file, line before, line


class Inputs:
    """Inputs of a type, by its name."""

    def __init__(self, name: str) -> None:
        self.kind = ALL[name]
        self.sound = self.kind.sound()
        self.mutator = self.kind.mutator(self.sound, 0)

    def first(self) -> list[bytes]:
        """Return the sound inputs."""
        return [bytes([i]) + each.to_bytes() for i, each in enumerate(self.sound)]

    def of(self, data: bytes) -> tuple[Any, Any]:
        """Return the text or unparsed file that bytes encode, and the sound input."""
        sound, body = self.sound[data[0] % len(self.sound) if data else 0], data[1:]
        if isinstance(sound, Text):
            return Text(_decoded(body), sound.note), sound
        return SimpleNamespace(note=sound.note, to_bytes=lambda: body), sound

    def drawn(self, seed: int) -> bytes:
        """Return a mutation of a sound input, as in unguided fuzzing."""
        self.mutator.sound, self.mutator.rng = self.sound, random.Random(seed)
        file, sound = self.mutator.mutated()
        number = next(i for i, each in enumerate(self.sound) if each is sound)
        return bytes([number]) + file.to_bytes()

    def changed(self, data: bytes, seed: int, change: Callable[[bytes], bytes]) -> bytes:
        """Return a mutation of any input. change: mutates raw bytes."""
        rng = self.mutator.rng = random.Random(seed)
        number = data[:1] or b"\0"
        file, sound = self.of(data)
        if rng.random() < _PLAIN_CHANGES:
            body = change(data[1:])
            return number + (sealed_again(body) if type(sound) is File else body)
        try:
            if not isinstance(sound, Text):
                file = getattr(type(sound), "of", taken_apart)(data[1:])
            self.mutator.sound = [file]
            return number + self.mutator.mutated()[0].to_bytes()
        except Exception:  # The input may be impossible to parse.
            return self.drawn(seed)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin1")


def kept(name: str) -> list[bytes]:
    """Return the stored inputs of a type, each of which reaches a branch that others do not."""
    rows = map(json.loads, CORPUS.read_text(encoding="utf8").splitlines())
    return [zlib.decompress(base64.b85decode(data)) for own, data in rows if own == name]


def keep(name: str, found: Iterable[bytes]) -> None:
    """Replace the stored inputs of a type, leaving out inputs that reach no new branch."""
    inputs, seen = Inputs(name), set[_Branch]()
    for data in inputs.first():
        seen |= reached(inputs, data)
    lines = [x for x in CORPUS.read_text(encoding="utf8").splitlines() if json.loads(x)[0] != name]
    for data in sorted(found, key=len):
        branches = reached(inputs, data)
        if not branches <= seen:
            seen |= branches
            packed = base64.b85encode(zlib.compress(data, 9)).decode()
            lines.append(json.dumps([name, packed]))
    CORPUS.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf8")


def reached(inputs: Inputs, data: bytes) -> set[_Branch]:
    """Return the lines of the package that an input executes, each with the preceding line."""
    found, last = set[_Branch](), dict[FrameType, int]()

    def follow(frame: FrameType, event: str, argument: object) -> Any:
        if "spacy_sparsecrf" not in frame.f_code.co_filename:
            return None
        found.add((frame.f_code.co_filename, last.get(frame, 0), frame.f_lineno))
        last[frame] = frame.f_lineno
        return follow

    sys.settrace(follow)
    try:
        attempt(inputs.kind, *inputs.of(data))
    finally:
        sys.settrace(None)
    return found
