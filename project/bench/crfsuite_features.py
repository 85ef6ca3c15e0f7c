"""What users of python-crfsuite write: a dict of features for each token, in Python."""

from collections.abc import Sequence
from typing import Any

Item = dict[str, Any]


def item(words: Sequence[str], i: int) -> Item:
    """Features of a token: its string, its ends and its looks, and some of its neighbours'."""
    word = words[i]
    found: Item = {
        "bias": 1.0,
        "lower": word.lower(),
        "suffix3": word[-3:],
        "suffix2": word[-2:],
        "prefix2": word[:2],
        "isupper": word.isupper(),
        "istitle": word.istitle(),
        "isdigit": word.isdigit(),
    }
    if i > 0:
        found |= _neighbour("-1", words[i - 1])
    else:
        found["begin"] = True
    if i + 1 < len(words):
        found |= _neighbour("+1", words[i + 1])
    else:
        found["end"] = True
    return found


def _neighbour(name: str, word: str) -> Item:
    return {
        f"{name}lower": word.lower(),
        f"{name}isupper": word.isupper(),
        f"{name}istitle": word.istitle(),
    }


def items(words: Sequence[str]) -> list[Item]:
    """Features of a sentence."""
    return [item(words, i) for i in range(len(words))]
