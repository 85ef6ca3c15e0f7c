"""Ambiguity classes: the labels of a word in the training data, read by `word_labels`.

A word has the labels of at least SHARE of its tokens, in alphabetical order, such as "NN/VB". Case
and the values of digits are ignored. A training token reads the labels of its word in the other
folds of the corpus, so that its own label does not leak into its features.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from ..corpus.readings import Hashes, Longs
from .classes import ClassReader, WordClasses

FOLDS = 5
RUNS = 10  # of consecutive Docs in each fold: neighbouring Docs are similar
SHARE = 0.05  # of a word's tokens


_DIGIT = re.compile(r"\d")


def form_of(word: str) -> str:
    """Return the form by which words are compared."""
    return _DIGIT.sub("0", word).lower()


class WordLabelReader(ClassReader):
    """Reader of the labels of a word."""

    def __init__(self, labels: WordClasses) -> None:
        super().__init__(labels, 0)

    def __call__(self, word: str) -> str:
        """Return the labels of a word."""
        return super().__call__(form_of(word))


class WordTokens(NamedTuple):
    """Tokens of Docs with the same vocab.

    orths: [N] uint64, word ids; strings: the strings of the ids; ends: [D] int64, end of each Doc,
    in tokens; offsets: [S + 1] int64, of sequences.
    """

    orths: Hashes
    strings: StringStore
    ends: Longs
    offsets: Longs


def learn_word_labels(
    parts: Sequence[WordTokens], labels: NDArray[np.int32], names: Sequence[str]
) -> tuple[WordClasses, list[str], Longs]:
    """Find the labels of words, and for each token the labels of its word in the other folds.

    labels: [N], of all tokens, positions in names; below 0 if missing.
    RETURNS: the labels of each word as a class; texts, of which the first is empty; and [N], the
        position in texts of the value that each token reads.
    """
    words, numbers = _numbered(parts)
    folds = _folds(parts)
    is_known = labels >= 0
    found = _labels_of(numbers[is_known], labels[is_known], folds[is_known], names)
    everywhere = {words[word]: text for (word, fold), text in found.items() if fold == FOLDS}
    texts = ["", *sorted({*found.values()})]
    position = {text: i for i, text in enumerate(texts)}
    cells, of_token = np.unique(numbers * FOLDS + folds, return_inverse=True)
    read = (found.get(divmod(cell, FOLDS), "") for cell in cells.tolist())
    of_cell = np.array([position[text] for text in read], dtype=np.int64)
    # Forms that change when lower-cased again, such as the Turkish I with a dot, are never found.
    own = {word: text for word, text in everywhere.items() if word == word.lower()}
    return WordClasses.of(own, are_paths=False), texts, of_cell[of_token]


def _numbered(parts: Sequence[WordTokens]) -> tuple[list[str], Longs]:
    """Return the distinct forms of words, and the number [N] of each token's form."""
    numbers: dict[str, int] = {}
    found = [np.zeros(0, np.int64)]
    for part in parts:
        orths, of_token = np.unique(part.orths, return_inverse=True)
        forms = [form_of(part.strings[orth]) for orth in orths.tolist()]
        of_orth = [numbers.setdefault(form, len(numbers)) for form in forms]
        found.append(np.array(of_orth, dtype=np.int64)[of_token])
    return list(numbers), np.concatenate(found)


def _folds(parts: Sequence[WordTokens]) -> Longs:
    """Return the fold [N] of each token: runs of Docs, or of sequences if there are few Docs."""
    n_docs = sum(len(part.ends) for part in parts)
    if n_docs < RUNS * FOLDS:
        lengths = [np.diff(part.offsets) for part in parts]
    else:
        lengths = [np.diff(part.ends, prepend=0) for part in parts]
    lengths_of_all = np.concatenate([np.zeros(0, np.int64), *lengths])
    n = len(lengths_of_all)
    return np.repeat(folds_of_runs(n, FOLDS), lengths_of_all)


def folds_of_runs(n: int, n_folds: int) -> Longs:
    """Return the fold of each of n Docs: [n] int64. Each fold has at most RUNS runs of Docs."""
    n_runs = min(n, RUNS * n_folds)
    return np.arange(n) * n_runs // max(n, 1) % n_folds


def _labels_of(
    words: Longs, labels: NDArray[np.int32], folds: Longs, names: Sequence[str]
) -> dict[tuple[int, int], str]:
    """Return the labels of words [n] outside each fold; fold FOLDS has the labels of all tokens.

    RETURNS: names of labels by word and fold, for words with any label left.
    """
    n_labels = max(1, len(names))
    order = np.argsort(np.argsort(np.array(names, dtype=object), kind="stable"))
    ranks = order[labels] if len(labels) else np.zeros(0, np.int64)
    cells, cell = np.unique(words * n_labels + ranks, return_inverse=True)
    counts = np.zeros((len(cells), FOLDS + 1), np.int64)
    np.add.at(counts, (cell, folds), 1)
    left = counts.sum(axis=1, keepdims=True) - counts
    word = cells // n_labels
    firsts = np.flatnonzero(np.diff(word, prepend=-1))
    totals = np.add.reduceat(left, firsts) if len(cells) else left
    totals = totals[np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(cells)))]
    kept_fold, kept = np.nonzero(((left > 0) & (left >= SHARE * totals)).T)
    ranked = sorted(names)
    read = zip(
        kept_fold.tolist(), word[kept].tolist(), (cells[kept] % n_labels).tolist(), strict=True
    )
    return {
        (of_word, fold): "/".join(ranked[label] for *_, label in group)
        for (fold, of_word), group in groupby(read, key=itemgetter(0, 1))
    }
