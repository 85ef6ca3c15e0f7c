"""Ambiguity classes: the labels of a word in the training data, read by `word_labels`.

A word has the labels of at least SHARE of its tokens, in alphabetical order, such as "NN/VB". Case
and the values of digits are ignored. A training token reads the labels of its word in the other
folds of the corpus, so that its own label does not leak into its features.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from spacy.strings import StringStore

from ...crf.corpus.numbering import Hashes, Ints, Longs
from .attributes.words import seen
from .classes import ClassReader, WordClasses

FOLDS = 5
RUNS = 10  # of consecutive Docs in each fold: neighbouring Docs are similar
SHARE = 0.05  # of a word's tokens


_DIGIT = re.compile(r"\d")


def form_of(word: str) -> str:
    """Return the form by which words are compared."""
    return (text if (text := seen(word)).isalpha() else _DIGIT.sub("0", text)).lower()


class WordLabelReader(ClassReader):
    """Reader of the labels of a word."""

    def __init__(self, labels: WordClasses) -> None:
        super().__init__(labels, 0)

    def __call__(self, word: str) -> str:
        """Return the labels of a word."""
        return super().__call__(form_of(word)) if len(self._values) > 1 else ""


class WordTokens(NamedTuple):
    """Tokens of Docs with the same vocab.

    orths: [N] uint64, word ids; strings: the strings of the ids; ends: [D] int64, end of each Doc,
    in tokens; offsets: [S + 1] int64, of sequences.
    """

    orths: Hashes
    strings: StringStore
    ends: Longs
    offsets: Longs


class WordCounts(NamedTuple):
    """Numbers of tokens of words with each label, in each fold.

    forms: of words; names: of labels; cells: [C] int64, distinct pairs of a word and a label, word
    * number of labels + label; counts: [C, FOLDS] int64.
    """

    forms: list[str]
    names: Sequence[str]
    cells: Longs
    counts: Longs


class WordLabelTable(NamedTuple):
    """The labels of words.

    words: row of each form; texts: labels, of which the first is empty; read: [W, FOLDS + 1] int32,
    position in texts of a word's labels outside each fold, and, last, in all folds.
    """

    words: dict[str, int]
    texts: list[str]
    read: Ints

    @property
    def classes(self) -> WordClasses:
        """The labels of words in all folds, as classes."""
        pairs = zip(self.words, self.read[:, FOLDS].tolist(), strict=True)
        # Forms that change when lower-cased again, such as the Turkish I with a dot, are never
        # found.
        labels = {form: self.texts[i] for form, i in pairs if i and form == form.lower()}
        return WordClasses.of(labels, are_paths=False)

    def of_tokens(self, parts: Sequence[WordTokens], folds: Longs) -> Longs:
        """Return the position in texts that each token reads, [N], from the other folds.

        parts: tokens that have been counted; folds: [N], see `folds_of`.
        """
        forms, numbers = _numbered(parts)
        rows = np.array([self.words[form] for form in forms], np.int64)
        return self.read[rows[numbers], folds].astype(np.int64)


def sizes_of(parts: Sequence[WordTokens]) -> Longs:
    """Return the numbers of Docs and of sequences: [2] int64."""
    return np.array([sum(len(part.ends) for part in parts), sum(len(p.offsets) - 1 for p in parts)])


def folds_of(parts: Sequence[WordTokens], before: Longs, whole: Longs) -> Longs:
    """Return the fold [N] of each token: runs of Docs, or of sequences if there are few Docs.

    before, whole: sizes [2] of the corpus before the parts, and of the whole corpus.
    """
    few = int(whole[0] < RUNS * FOLDS)
    lengths = [np.diff(part.offsets) if few else np.diff(part.ends, prepend=0) for part in parts]
    of_all = np.concatenate([np.zeros(0, np.int64), *lengths])
    units = np.arange(before[few], before[few] + len(of_all))
    return np.repeat(folds_of_runs(units, int(whole[few]), FOLDS), of_all)


def folds_of_docs(parts: Sequence[WordTokens], n_folds: int) -> tuple[int, Longs]:
    """Return the number of Docs with tokens, and the fold [N] of each token: runs of Docs."""
    lengths = np.concatenate([np.diff(part.ends, prepend=0) for part in parts])
    lengths = lengths[lengths > 0]
    n = len(lengths)
    return n, np.repeat(folds_of_runs(np.arange(n), n, n_folds), lengths)


def folds_of_runs(docs: Longs, n: int, n_folds: int) -> Longs:
    """Return the folds of some of n Docs: [D] int64. Each fold has at most RUNS runs of Docs."""
    n_runs = min(n, RUNS * n_folds)
    return docs * n_runs // max(n, 1) % n_folds


def count_word_labels(
    parts: Sequence[WordTokens], labels: Ints, names: Sequence[str], folds: Longs
) -> WordCounts:
    """Count the labels of words.

    labels: [N], of all tokens, positions in names; below 0 if missing; folds: [N].
    """
    forms, words = _numbered(parts)
    labelled = labels >= 0
    pairs = words[labelled] * max(1, len(names)) + labels[labelled]
    cells, cell = np.unique(pairs, return_inverse=True)
    counts = np.zeros((len(cells), FOLDS), np.int64)
    np.add.at(counts, (cell, folds[labelled]), 1)
    return WordCounts(forms, names, cells, counts)


def merged_counts(parts: Sequence[WordCounts]) -> WordCounts:
    """Add the counts of several parts of a corpus; names are then in alphabetical order."""
    names = sorted({name for part in parts for name in part.names})
    ranks = {name: i for i, name in enumerate(names)}
    words: dict[str, int] = {}
    cells, counts = [np.zeros(0, np.int64)], [np.zeros((0, FOLDS), np.int64)]
    for part in parts:
        word, label = np.divmod(part.cells, max(1, len(part.names)))
        rows = [words.setdefault(form, len(words)) for form in part.forms]
        rank = np.array([ranks[name] for name in part.names], np.int64)
        cells.append(np.array(rows, np.int64)[word] * len(names) + rank[label])
        counts.append(part.counts)
    distinct, cell = np.unique(np.concatenate(cells), return_inverse=True)
    total = np.zeros((len(distinct), FOLDS), np.int64)
    np.add.at(total, cell, np.concatenate(counts))
    return WordCounts([*words], names, distinct, total)


def learn_word_labels(parts: Sequence[WordCounts]) -> WordLabelTable:
    """Find the labels of words outside each fold, and in all folds, from counts of all parts."""
    forms, names, cells, counts = merged_counts(parts)
    # The last column leaves out no fold.
    counts = np.pad(counts, ((0, 0), (0, 1)))
    left = counts.sum(axis=1, keepdims=True) - counts
    word, label = np.divmod(cells, max(1, len(names)))
    firsts = np.flatnonzero(np.diff(word, prepend=-1))
    totals = np.add.reduceat(left, firsts) if len(cells) else left
    totals = totals[np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(cells)))]
    fold, frequent = np.nonzero(((left > 0) & (left >= SHARE * totals)).T)
    word = word[frequent]
    labels = label[frequent].tolist()
    begins = np.flatnonzero(np.diff(fold * len(forms) + word, prepend=-1))
    sets = [tuple(labels[i:j]) for i, j in pairwise([*begins.tolist(), len(labels)])]
    named = {of_word: "/".join(names[i] for i in of_word) for of_word in {*sets}}
    texts = ["", *sorted({*named.values()})]
    position = {text: i for i, text in enumerate(texts)}
    read = np.zeros((len(forms), FOLDS + 1), np.int32)
    read[word[begins], fold[begins]] = [position[named[of_word]] for of_word in sets]
    return WordLabelTable({form: i for i, form in enumerate(forms)}, texts, read)


def _numbered(parts: Sequence[WordTokens]) -> tuple[list[str], Longs]:
    """Return the distinct forms of words, and the number [N] of each token's form."""
    numbers: dict[str, int] = {}
    of_orth: dict[int, int] = {}
    of_tokens = [np.zeros(0, np.int64)]
    for part in parts:
        orths, of_token = np.unique(part.orths, return_inverse=True)
        for orth in orths.tolist():
            if orth not in of_orth:
                of_orth[orth] = numbers.setdefault(form_of(part.strings[orth]), len(numbers))
        of_distinct = [*map(of_orth.__getitem__, orths.tolist())]
        of_tokens.append(np.array(of_distinct, dtype=np.int64)[of_token])
    return list(numbers), np.concatenate(of_tokens)
