"""What users of python-crfsuite write: a dict of features for each token, in Python."""

from collections.abc import Sequence
from typing import Any

Item = dict[str, Any]


def _tagging_item(words: Sequence[str], i: int) -> Item:
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


def tagging_items(words: Sequence[str], tags: Sequence[str]) -> list[Item]:
    """Features of a sentence's words, of which `tags` has nothing to say."""
    return [_tagging_item(words, i) for i in range(len(words))]


def chunking_items(words: Sequence[str], tags: Sequence[str]) -> list[Item]:
    """Features of words and parts of speech: the 19 tests of CRF++'s template for chunks."""
    w = ["_B-2", "_B-1", *words, "_B+1", "_B+2"]
    t = ["_B-2", "_B-1", *tags, "_B+1", "_B+2"]
    return [_chunking_item(*w[i : i + 5], *t[i : i + 5]) for i in range(len(words))]


def _chunking_item(
    a: str, b: str, c: str, d: str, e: str, p: str, q: str, r: str, s: str, t: str
) -> Item:
    return {
        "w-2": a,
        "w-1": b,
        "w": c,
        "w+1": d,
        "w+2": e,
        "w-1|w": f"{b}|{c}",
        "w|w+1": f"{c}|{d}",
        "t-2": p,
        "t-1": q,
        "t": r,
        "t+1": s,
        "t+2": t,
        "t-2|t-1": f"{p}|{q}",
        "t-1|t": f"{q}|{r}",
        "t|t+1": f"{r}|{s}",
        "t+1|t+2": f"{s}|{t}",
        "t-2|t-1|t": f"{p}|{q}|{r}",
        "t-1|t|t+1": f"{q}|{r}|{s}",
        "t|t+1|t+2": f"{r}|{s}|{t}",
    }
