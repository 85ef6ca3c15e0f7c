"""Stored inputs of each type, found by fuzzing, are refused with a code, or used.

A row of `corpus.jsonl` is a type and an input, compressed; its first byte is the index of the sound
input that the other bytes replace.
"""

import base64
import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spacy_sparsecrf.errors import SparseCRFError

from .converted import CONVERTED_KINDS
from .kinds import KINDS
from .texts import USER_KINDS, WORDS, Text, Tokens, use_docs

CORPUS = Path(__file__).with_name("corpus.jsonl")
ALL = KINDS | USER_KINDS | CONVERTED_KINDS
# Blanks, marks, other alphabets, combined characters and numbers, as words of a Doc.
DIFFICULT = [" ", "\t", "\n", "\0", "\\", '"', "\u2028", "\u0085", "\x1c", "\ufeff", "\u200d"]
DIFFICULT += ["\u0301", "\u202e", "İ", "ǅ", "ﬃ", "٣", "Ⅷ", "½", "漢字", "שלום", "😀", "\U0010ffff"]
DIFFICULT += ["1e308", "nan", "9" * 20, "B-X", "-DOCSTART-", "\u00a0", "a" * 100_000]


def stored() -> dict[str, list[bytes]]:
    """Return the inputs by type."""
    found: dict[str, list[bytes]] = {}
    for name, data in map(json.loads, CORPUS.read_text(encoding="utf8").splitlines()):
        found.setdefault(name, []).append(zlib.decompress(base64.b85decode(data)))
    return found


def decoded(data: bytes) -> str:
    """Decode UTF-8 with lone surrogates, or else Latin-1."""
    try:
        return data.decode("utf8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin1")


def outcome(name: str, sound: list[Any], data: bytes) -> str:
    """Return "used" or "refused", or the text of an exception without a code."""
    original, body = sound[data[0] % len(sound) if data else 0], data[1:]
    file: Any = SimpleNamespace(note=original.note, to_bytes=lambda: body)
    if isinstance(original, Text):
        file = Text(decoded(body), original.note)
    try:
        ALL[name].use(file, original)
    except SparseCRFError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}, of {data!r}"[:500]
    return "used"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", stored())
def test_stored_inputs_are_used_or_refused_with_a_code(name: str) -> None:
    sound = ALL[name].sound()
    for each in sound:
        ALL[name].use(each, each)
    found = [outcome(name, sound, data) for data in stored()[name]]
    assert [text for text in found if text not in ("used", "refused")] == []


@pytest.mark.filterwarnings("ignore:.*SCW")
@pytest.mark.parametrize("start", [True, False, None])
@pytest.mark.parametrize(
    "words", [[], WORDS, DIFFICULT, DIFFICULT[::-1], [" "], [" ", "\n", "\u3000"], ["x"] * 2_000]
)
def test_docs_of_any_characters_are_annotated(words: list[str], start: bool | None) -> None:
    n = len(words)
    tokens = Tokens(words, [i % 3 > 0 for i in range(n)], [start] * n)
    use_docs(tokens, tokens)
