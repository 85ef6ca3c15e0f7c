"""Letter-to-phoneme alignment by expectation maximisation.

A letter emits zero, one or two phonemes, independently of its neighbours given the letter:
P(phonemes | letters) = sum over alignments of prod_i p(label_i | letter_i), where a label is
the chunk of phonemes that letter i emits. Words with the same number of letters are aligned
together, as arrays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Initial share of each type of label (none, one, two phonemes). Two phonemes start low: a letter
# that emits two (x = K+S) still learns them, while equal shares would let neighbouring letters
# swap phonemes.
INITIAL_SHARES = (0.20, 0.79, 0.01)
ROWS_PER_BATCH = 8192


@dataclass(frozen=True)
class Batch:
    """Words of one length, and their phonemes.

    rows: [B] int64, positions of the words in the input.
    letters: [B, n] int64, letter ids.
    phonemes: [B, m] int64, phoneme ids, padded with 0.
    lengths: [B] int64, number of phonemes of each word.
    """

    rows: NDArray[np.int64]
    letters: NDArray[np.int64]
    phonemes: NDArray[np.int64]
    lengths: NDArray[np.int64]


def make_batches(
    words: Sequence[Sequence[int]], pronunciations: Sequence[Sequence[int]]
) -> list[Batch]:
    """Group words by their number of letters.

    words: letter ids of each word; at least one.
    pronunciations: phoneme ids of each word; at most two per letter.
    Raises ValueError for a word without a possible alignment.
    """
    groups: dict[int, list[int]] = {}
    for row, (word, phonemes) in enumerate(zip(words, pronunciations, strict=True)):
        if not 0 < len(phonemes) <= 2 * len(word):
            raise ValueError(f"Word {row}: {len(phonemes)} phonemes for {len(word)} letters.")
        groups.setdefault(len(word), []).append(row)
    return [
        _make_batch(rows[start : start + ROWS_PER_BATCH], words, pronunciations)
        for _, rows in sorted(groups.items())
        for start in range(0, len(rows), ROWS_PER_BATCH)
    ]


def _make_batch(
    rows: Sequence[int], words: Sequence[Sequence[int]], pronunciations: Sequence[Sequence[int]]
) -> Batch:
    lengths = np.array([len(pronunciations[row]) for row in rows], dtype=np.int64)
    phonemes = np.zeros((len(rows), max(2, lengths.max())), dtype=np.int64)
    for i, row in enumerate(rows):
        phonemes[i, : lengths[i]] = pronunciations[row]
    letters = np.array([words[row] for row in rows], dtype=np.int64)
    return Batch(np.array(rows, dtype=np.int64), letters, phonemes, lengths)


class Aligner:
    """The table p(label | letter), learnt by EM, and the best alignments.

    Labels of K phonemes are numbered 0 (none), 1 + p (one) and 1 + K + p K + q (two).
    """

    def __init__(self, n_letters: int, n_phonemes: int) -> None:
        self.n_phonemes = n_phonemes
        sizes = (1, n_phonemes, n_phonemes**2)
        row = [np.full(n, share / n) for n, share in zip(sizes, INITIAL_SHARES, strict=True)]
        self.table: NDArray[np.float64] = np.tile(np.concatenate(row), (n_letters, 1))

    def chunk(self, label: int) -> tuple[int, ...]:
        """Return the phoneme ids of a label."""
        if label == 0:
            return ()
        if label <= self.n_phonemes:
            return (label - 1,)
        return divmod(label - 1 - self.n_phonemes, self.n_phonemes)

    def step(self, batches: Sequence[Batch]) -> float:
        """Run one EM iteration.

        RETURNS: log-likelihood in nats under the table before the iteration.
        """
        counts = np.zeros_like(self.table)
        log_likelihood = sum(self._expect(batch, counts) for batch in batches)
        totals = counts.sum(axis=1, keepdims=True)
        # A letter that never occurs keeps its row.
        self.table = np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), self.table)
        return log_likelihood

    def best(self, batch: Batch) -> NDArray[np.int64]:
        """Find the most probable alignment of each word.

        RETURNS: [B, n] int64, label of each letter.
        """
        n_words, n_letters = batch.letters.shape
        score = _start(batch)
        pointers = []
        for labels, emission in self._emissions(batch):
            scores = np.stack(_arrivals(score, emission))
            pointers.append((labels, scores.argmax(axis=0)))
            score = scores.max(axis=0)
        result = np.zeros((n_words, n_letters), dtype=np.int64)
        words, column = np.arange(n_words), batch.lengths.copy()
        for i in range(n_letters - 1, -1, -1):
            labels, kind = pointers[i][0], pointers[i][1][words, column]
            column -= kind
            single = labels[1][words, np.minimum(column, labels[1].shape[1] - 1)]
            double = labels[2][words, np.minimum(column, labels[2].shape[1] - 1)]
            result[:, i] = np.choose(kind, (0, single, double))
        return result

    def _expect(self, batch: Batch, counts: NDArray[np.float64]) -> float:
        """Add a batch's expected label counts to `counts`; return its log-likelihood."""
        steps = list(self._emissions(batch))
        alphas = [_start(batch)]
        for _, emission in steps:
            alphas.append(np.sum(_arrivals(alphas[-1], emission), axis=0))
        words = np.arange(len(batch.rows))
        likelihood = alphas[-1][words, batch.lengths]
        beta = np.zeros_like(alphas[-1])
        beta[words, batch.lengths] = 1.0 / likelihood
        width = self.table.shape[1]
        for i in range(len(steps) - 1, -1, -1):
            labels, emission = steps[i]
            before = np.zeros_like(beta)
            for kind in range(3):
                end = beta.shape[1] - kind
                through = emission[kind] * beta[:, kind:]
                before[:, :end] += through
                cells = np.broadcast_to(batch.letters[:, [i]] * width + labels[kind], through.shape)
                posterior = through * alphas[i][:, :end]
                flat = np.bincount(cells.ravel(), posterior.ravel(), minlength=counts.size)
                counts += flat.reshape(counts.shape)
            beta = before
        return float(np.log(likelihood).sum())

    def _emissions(
        self, batch: Batch
    ) -> Iterator[tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]]:
        """Yield for each letter the labels of the three types that start at each phoneme
        ([B, 1], [B, m], [B, m - 1] int64), and their probabilities.
        """
        single = 1 + batch.phonemes
        double = 1 + self.n_phonemes * single[:, :-1] + batch.phonemes[:, 1:]
        labels = [np.zeros((len(batch.rows), 1), dtype=np.int64), single, double]
        for i in range(batch.letters.shape[1]):
            letter = batch.letters[:, [i]]
            yield labels, [self.table[letter, kind] for kind in labels]


def _start(batch: Batch) -> NDArray[np.float64]:
    """Return the state [B, m + 1] before the first letter, with nothing emitted."""
    start = np.zeros((len(batch.rows), batch.phonemes.shape[1] + 1))
    start[:, 0] = 1.0
    return start


def _arrivals(
    state: NDArray[np.float64], emission: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Return the weights of having emitted j phonemes after a letter, by type of its label.

    state: [B, m + 1], weights before the letter.
    RETURNS: three arrays [B, m + 1].
    """
    arrivals = [np.zeros_like(state) for _ in range(3)]
    for kind, arrival in enumerate(arrivals):
        arrival[:, kind:] = state[:, : state.shape[1] - kind] * emission[kind]
    return arrivals
