"""A program as users of python-crfsuite write it: tokens from a file, string features, a model.

    python -m bench.user_program KIND DATA MODEL C1 C2 ITERATIONS

A line of the file is a token with tab-separated word, extra column and label; an empty line ends
a sentence. The extra column is 1 if a space follows for tags, the part of speech for chunks, and
ignored for entities. Features are the same as our default templates.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

Rows = list[list[str]]
Item = dict[str, Any]
# A function from words and tags to dict features.
Recipe = Callable[[Sequence[str], Sequence[str]], list[Item]]
_PAD = 3


class Kind(str, Enum):
    """Kind of the labels."""

    TAGS = "tags"
    CHUNKS = "chunks"
    ENTITIES = "entities"


def read(path: Path) -> Iterator[Rows]:
    """Yield the sentences of a file."""
    rows: Rows = []
    with path.open(encoding="utf8") as file:
        for line in file:
            if line == "\n":
                yield rows
                rows = []
            else:
                rows.append(line.rstrip("\n").split("\t"))


@cache
def shape(word: str) -> str:
    """Return the shape: X, x and d for letters and digits, runs cut to four characters."""
    letters = (
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1{4,}", r"\1\1\1\1", "".join(letters))


@cache
def short_shape(word: str) -> str:
    """Return the shape with runs cut to one character."""
    return re.sub(r"(.)\1+", r"\1", shape(word))


def padded(values: list[str]) -> list[str]:
    """Return values of the tokens, padded with values for positions before and after them."""
    return ["<3", "<2", "<1", *values, ">1", ">2", ">3"]


def of_word(word: str, longest: int) -> list[str]:
    """Return the word, its edges and its shape."""
    found = ["bias", "w=" + word, "l=" + word.lower(), "s=" + shape(word)]
    for n in range(1, longest + 1):
        found += [f"p{n}=" + word[:n], f"e{n}=" + word[-n:]]
    if word.istitle():
        found.append("title")
    if word.isupper():
        found.append("upper")
    if any(c.isupper() for c in word):
        found.append("some upper")
    if any(c.isdigit() for c in word):
        found.append("digit")
    if "-" in word:
        found.append("hyphen")
    if not any(c.isalnum() for c in word):
        found.append("punct")
    return found


def tag_features(rows: Rows) -> list[list[str]]:
    """Return string features of words for part-of-speech tagging."""
    words = [row[0] for row in rows]
    low, shapes = padded([w.lower() for w in words]), padded([shape(w) for w in words])
    ends = padded([w[-3:] for w in words])
    glued = padded(["" if row[1] == "1" else "glued" for row in rows])
    found = []
    for i, word in enumerate(words, _PAD):
        a, b, c, d, e = low[i - 2 : i + 3]
        own = of_word(word, 4)
        own += ["s-1=" + shapes[i - 1], "s+1=" + shapes[i + 1]]
        own += ["e-1=" + ends[i - 1], "e+1=" + ends[i + 1]]
        own += [f"l-2={a}", f"l-1={b}", f"l+1={d}", f"l+2={e}", f"l-1+1={b}|{d}"]
        own += [f"l-2-1={a}|{b}", f"l-1+0={b}|{c}", f"l+0+1={c}|{d}", f"l+1+2={d}|{e}"]
        if word.replace(",", "").replace(".", "").isdigit():
            own.append("number")
        if glued[i - 1]:
            own += [f"g-1={glued[i - 1]}", f"g-1l={glued[i - 1]}|{c}"]
        if glued[i]:
            own += ["g", "g|l=" + c, "g|e=" + ends[i]]
        if glued[i - 1] and glued[i]:
            own.append(f"g-1g={glued[i - 1]}")
        found.append(own)
    return found


def entity_features(rows: Rows) -> list[list[str]]:
    """Return string features of words for named entities."""
    words = [row[0] for row in rows]
    w, low = padded(words), padded([word.lower() for word in words])
    shapes, short = padded([shape(x) for x in words]), padded([short_shape(x) for x in words])
    title = padded(["T" if word.istitle() else "" for word in words])
    found = []
    for i, word in enumerate(words, _PAD):
        z, a, b, c, d, e, f = low[i - 3 : i + 4]
        p, q, r = short[i - 1 : i + 2]
        own = of_word(word, 5)
        own += [f"l-3={z}", f"l+3={f}", "w-1=" + w[i - 1], "w+1=" + w[i + 1]]
        own += [f"l-2={a}", f"l-1={b}", f"l+1={d}", f"l+2={e}"]
        own += [f"s{j}=" + shapes[i + j] for j in (-2, -1, 1, 2)]
        for j in (-1, 1):
            own += [f"e2{j}=" + w[i + j][-2:], f"e3{j}=" + w[i + j][-3:], f"p3{j}=" + w[i + j][:3]]
        own += [f"l-1+0={b}|{c}", f"l+0+1={c}|{d}", f"l-2-1={a}|{b}"]
        own += [f"l+1+2={d}|{e}", f"l-1+1={b}|{d}", f"h-1+0={p}|{q}", f"h+0+1={q}|{r}"]
        own += [f"h-1+0+1={p}|{q}|{r}", f"l-1h={b}|{q}", f"hl+1={q}|{d}", f"l-1hl+1={b}|{q}|{d}"]
        own += [f"l-2-1h={a}|{b}|{q}", f"hl+1+2={q}|{d}|{e}"]
        for j, k in ((-1, 0), (0, 1), (-2, 0), (-1, 1), (0, 2)):
            if all(title[i + j : i + k + 1]):
                own.append(f"t{j}{k}=" + "|".join(title[i + j : i + k + 1]))
        found.append(own)
    return found


def chunk_features(rows: Rows) -> list[list[str]]:
    """Return string features of words and their parts of speech for chunking."""
    words = [row[0] for row in rows]
    low, tags = padded([word.lower() for word in words]), padded([row[1] for row in rows])
    found = []
    for i, word in enumerate(words, _PAD):
        a, b, c, d, e = low[i - 2 : i + 3]
        p, q, r, s, t = tags[i - 2 : i + 3]
        own = ["bias", "e2=" + word[-2:], "e3=" + word[-3:], "s=" + shape(word)]
        own += [f"l-2={a}", f"l-1={b}", f"l={c}", f"l+1={d}", f"l+2={e}"]
        own += [f"l-1+0={b}|{c}", f"l+0+1={c}|{d}"]
        own += [f"t-2={p}", f"t-1={q}", f"t={r}", f"t+1={s}", f"t+2={t}"]
        own += [f"t-2-1={p}|{q}", f"t-1+0={q}|{r}", f"t+0+1={r}|{s}", f"t+1+2={s}|{t}"]
        own += [f"t-2-1+0={p}|{q}|{r}", f"t-1+0+1={q}|{r}|{s}", f"t+0+1+2={r}|{s}|{t}"]
        own += [f"lt={c}|{r}", f"l-1t={b}|{r}", f"tl+1={r}|{d}"]
        found.append(own)
    return found


FEATURES: dict[Kind, Callable[[Rows], list[list[str]]]] = {
    Kind.TAGS: tag_features,
    Kind.CHUNKS: chunk_features,
    Kind.ENTITIES: entity_features,
}


# Dict features


def _tagging_item(words: Sequence[str], i: int) -> Item:
    """Return features of a token: form, affixes, shape, and features of its neighbours."""
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
    """Return features of a sentence's words; `tags` is ignored."""
    return [_tagging_item(words, i) for i in range(len(words))]


def chunking_items(words: Sequence[str], tags: Sequence[str]) -> list[Item]:
    """Return features of words and tags: the 19 features of CRF++'s chunking template."""
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


RECIPES: dict[str, Recipe] = {"conll2000": chunking_items, "ud": tagging_items}


def label(kind: Kind, data: Path, model: Path) -> list[list[str]]:
    """Return the labels of each sentence."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    return [tagger.tag(FEATURES[kind](rows)) for rows in read(data)]


def main(
    kind: Kind,
    data: Annotated[Path, typer.Argument(help="File of tokens")],
    model: Annotated[Path, typer.Argument(help="Model file")],
    c1: float,
    c2: float,
    iterations: int,
) -> None:
    """Train a model."""
    import pycrfsuite

    trainer: Any = pycrfsuite.Trainer(verbose=True)
    features = FEATURES[kind]
    for rows in read(data):
        trainer.append(features(rows), [row[-1] for row in rows])
    penalties = {"c1": c1, "c2": c2, "max_iterations": iterations}
    trainer.set_params({**penalties, "feature.possible_transitions": True})
    trainer.train(str(model))


if __name__ == "__main__":
    typer.run(main)
