"""Words whose letters are labelled with the phonemes they emit."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import spacy
from align import Aligner, make_batches
from phonemes import strip_stress, to_label
from spacy.tokens import Doc, DocBin
from tqdm import tqdm


class Entry(NamedTuple):
    """A word and its pronunciation."""

    word: str
    phonemes: tuple[str, ...]


class Labelled(NamedTuple):
    """A word and the label of each of its letters."""

    word: str
    labels: tuple[str, ...]


def label_letters(entries: Sequence[Entry], n_iterations: int) -> list[Labelled]:
    """Align letters and phonemes, without regard to stress, and label each letter.

    n_iterations: EM iterations, shown as a progress bar.
    """
    plain = [strip_stress(entry.phonemes) for entry in entries]
    phoneme_ids = _number(phoneme for phonemes in plain for phoneme in phonemes)
    letter_ids = _number(letter for entry in entries for letter in entry.word)
    batches = make_batches(
        [[letter_ids[letter] for letter in entry.word] for entry in entries],
        [[phoneme_ids[phoneme] for phoneme in phonemes] for phonemes in plain],
    )
    aligner = Aligner(len(letter_ids), len(phoneme_ids))
    with tqdm(range(n_iterations), desc="Aligning", unit="iteration") as iterations:
        for _ in iterations:
            iterations.set_postfix_str(f"log-likelihood {aligner.step(batches):,.0f}")
    labelled = [Labelled("", ())] * len(entries)
    for batch in batches:
        for row, ids in zip(batch.rows, aligner.best(batch), strict=True):
            sizes = [len(aligner.chunk(label)) for label in ids]
            labelled[row] = Labelled(entries[row].word, _cut(entries[row].phonemes, sizes))
    return labelled


def _number(values: Iterable[str]) -> dict[str, int]:
    return {value: number for number, value in enumerate(sorted(set(values)))}


def _cut(phonemes: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    labels, start = [], 0
    for size in sizes:
        labels.append(to_label(phonemes[start : start + size]))
        start += size
    return tuple(labels)


def drop_rare(words: Sequence[Labelled], min_count: int) -> list[Labelled]:
    """Drop the words in which some letter has a label that it has less than `min_count` times."""
    counts = Counter(pair for word, labels in words for pair in zip(word, labels, strict=True))
    return [
        entry
        for entry in words
        if min(counts[pair] for pair in zip(entry.word, entry.labels, strict=True)) >= min_count
    ]


def write_docs(words: Iterable[Labelled], path: Path) -> None:
    """Write one Doc a word.

    A space follows each letter: spacy.Corpus.v1 tokenises the text again, and letters that
    stand close together would come back as one token.
    """
    vocab = spacy.blank("en").vocab
    docs = (
        Doc(vocab, words=list(word), spaces=[True] * len(word), tags=list(labels))
        for word, labels in words
    )
    DocBin(attrs=["TAG"], docs=docs).to_disk(path)
