"""Sequences of features of the made-up language."""

from typing import Any

from ...toy import make_sentences

Sequences = list[list[dict[str, Any]]]


def features(words: list[str], i: int) -> dict[str, Any]:
    """What users write: strings, truth values and numbers of a word and of those beside it."""
    found: dict[str, Any] = {"bias": 1.0, "word": words[i], "end": words[i][-3:], "first": i == 0}
    if i > 0:
        found["-1:end"] = words[i - 1][-3:]
    return found


def make_xy(n: int = 60, seed: int = 1) -> tuple[Sequences, list[list[str]]]:
    sentences = make_sentences(n, seed)
    X = [[features(words, i) for i in range(len(words))] for words, _ in sentences]
    return X, [tags for _, tags in sentences]
