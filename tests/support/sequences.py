"""Sequences of features of the toy language."""

from typing import Any

from .toy import make_sentences

Sequences = list[list[dict[str, Any]]]


def features(words: list[str], i: int) -> dict[str, Any]:
    """Return features as users write them: strings, booleans and numbers of nearby words."""
    found: dict[str, Any] = {"bias": 1.0, "word": words[i], "end": words[i][-3:], "first": i == 0}
    if i > 0:
        found["-1:end"] = words[i - 1][-3:]
    return found


def make_xy(n: int = 60, seed: int = 1) -> tuple[Sequences, list[list[str]]]:
    sentences = make_sentences(n, seed)
    X = [[features(words, i) for i in range(len(words))] for words, _ in sentences]
    return X, [tags for _, tags in sentences]
