"""The encoded corpus: hashed observation tests of sequences, as arrays only.

`Observations` is what a featurizer yields for a batch; `CorpusBuilder` collects batches;
`EncodedCorpus` numbers the tests, frequent ones first so that what a token needs lies together in
memory, and the sets of bigram tests as contexts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from .arrays import MEMORY, Memory
from .numbering import (
    Hashes,
    Ints,
    Longs,
    by_hash,
    distinct_rows,
    inverted,
    number_tests,
    without_rare,
)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Relabel = Callable[[Ints], Ints]

MISSING = -1  # gold label of a token without one
# Labels and the start label are stored in 16 bits.
MAX_LABELS = np.iinfo(np.uint16).max - 1
NO_VALUES: NDArray[np.float32] = np.empty((0, 0), np.float32)


@dataclass(frozen=True)
class Observations:
    """Hashed observation tests of a batch of sequences, and real-valued features.

    hashes: [N, P] uint64, the test of template p at token n; 0 where there is none.
    offsets: [S + 1] int64, sequence s is the tokens offsets[s]:offsets[s + 1].
    unigram_columns: [U] int32, columns of `hashes` whose tests are conjoined with the label.
    bigram_columns: [B] int32, columns conjoined with the pair of labels.
    start_label: whether the first token of a sequence has the pair (start, y) too.
    values: [N, V] float32, finite; real-valued features, conjoined with the label.
    value_keys: [V] uint64, hashes of their names, distinct, and not those of tests.
    """

    hashes: Hashes
    offsets: Longs
    unigram_columns: Ints
    bigram_columns: Ints
    start_label: bool = True
    values: NDArray[np.float32] = field(default_factory=lambda: NO_VALUES)
    value_keys: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return len(self.hashes)

    @property
    def unigram_hashes(self) -> Hashes:
        """[N, U] uint64, the tests conjoined with the label."""
        return np.take(self.hashes, self.unigram_columns, axis=1)

    @property
    def bigram_hashes(self) -> Hashes:
        """[N, B] uint64, the tests conjoined with the label pair.

        Without a start label a sequence's first token has no pair, hence no such test.
        """
        hashes = np.take(self.hashes, self.bigram_columns, axis=1)
        if not self.start_label:
            hashes[self.offsets[:-1][np.diff(self.offsets) > 0]] = 0
        return hashes


@dataclass(frozen=True)
class EncodedCorpus:
    """Sequences as arrays: tests of a token, its context, its label.

    The potential of token t is, with o over its unigram tests and over its context's tests,
    log psi_t(y', y) = sum_o mu[o, y] + sum_o lam[o, y', y]  (Lavergne 2010, section 2.1).
    Real-valued features count as unigram tests o that add x_t[o] mu[o, y], x_t being their values.

    offsets: [S + 1] int64, tokens of a sequence.
    labels: [N] int32, gold label ids, -1 = missing, -2 - q = any label of sets[q].
    weights: [S] float64, >= 0, weight of a sequence's log-likelihood.
    uni_indptr, uni_indices: CSR [N + 1] int64, [nnz] int32, unigram test ids of a token.
    context: [N] int32, the token's set of bigram tests.
    ctx_indptr, ctx_indices: CSR [C + 1] int64, [nnz] int32, bigram test ids of a context.
    unigram_keys, bigram_keys: [O] uint64, hashes by descending frequency, those of equal frequency
        by arrival; position = test id.
    start_label: whether pairs (start, y) exist.
    sets: [Q, Y] bool, sets of some but not all labels, one of which is the gold label of a token.
    values: [N, V] float32, of real-valued features, finite.
    value_tests: [V] int64, ascending, the unigram tests that these count as; no token has them.
    store: where arrays go that are as long as the corpus.
    """

    offsets: Longs
    labels: Ints
    weights: Floats
    uni_indptr: Longs
    uni_indices: Ints
    context: Ints
    ctx_indptr: Longs
    ctx_indices: Ints
    unigram_keys: Hashes
    bigram_keys: Hashes
    start_label: bool
    sets: Mask = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    values: NDArray[np.float32] = field(default_factory=lambda: NO_VALUES)
    value_tests: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    store: Memory = MEMORY

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name; `start_label` is one of them, []."""
        names = [f.name for f in fields(self) if f.name != "store"]
        return {name: np.asarray(getattr(self, name)) for name in names}

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return len(self.labels)

    @property
    def n_sequences(self) -> int:
        """Number of sequences S."""
        return len(self.weights)

    def with_labels(self) -> tuple[Mask, Mask]:
        """Whether some, and whether all gold labels of a sequence are known: [S] bool.

        Some are known of sequences with a weight only.
        """
        lengths = np.diff(self.offsets)
        n_known, n_sure = (np.zeros(len(lengths), np.int64) for _ in range(2))
        for first, last in self.store.runs(self.offsets):
            n = last - first
            sequence = np.repeat(np.arange(n), lengths[first:last])
            labels = self.labels[self.offsets[first] : self.offsets[last]]
            n_known[first:last] = np.bincount(sequence[labels != MISSING], minlength=n)
            n_sure[first:last] = np.bincount(sequence[labels >= 0], minlength=n)
        return (n_known > 0) & (self.weights > 0.0), n_sure == lengths

    def n_potential(self, n_labels: int) -> int:
        """Count the potential weights K = sum of Y per unigram and Y² (+ Y for the start
        label) per bigram test (Lavergne 2010, section 2.1 and footnote 2).
        """
        pairs = n_labels * (n_labels + int(self.start_label))
        return len(self.unigram_keys) * n_labels + len(self.bigram_keys) * pairs

    def with_ties_by_hash(self) -> "EncodedCorpus":
        """The corpus as it once was numbered: tests of equal frequency by hash, not by arrival."""
        n_tests = len(self.unigram_keys) - len(self.value_tests)
        unigram = by_hash(self.unigram_keys[:n_tests], self.uni_indices)
        bigram = by_hash(self.bigram_keys, self.ctx_indices)
        keys = self.unigram_keys[unigram], self.unigram_keys[n_tests:]
        return replace(
            self,
            unigram_keys=np.concatenate(keys),
            uni_indices=inverted(unigram)[self.uni_indices],
            bigram_keys=self.bigram_keys[bigram],
            ctx_indices=inverted(bigram)[self.ctx_indices],
        )


class CorpusBuilder:
    """Collects batches of observations with their gold labels into one `EncodedCorpus`."""

    def __init__(self) -> None:
        self._unigram: list[Hashes] = []
        self._bigram: list[Hashes] = []
        self._lengths: list[Longs] = []
        self._labels: list[Ints] = []
        self._weights: list[Floats] = []
        self._values: list[NDArray[np.float32]] = []
        self._value_keys: Hashes = np.empty(0, np.uint64)
        self._start_label = True

    def add(self, observations: Observations, labels: Ints, weights: Floats | None = None) -> None:
        """Append a batch.

        observations: the tests of N tokens in S sequences.
        labels: [N] int32, gold label ids, below 0 as in `EncodedCorpus`.
        weights: [S] float64, weight of each sequence's log-likelihood; default 1.
        """
        lengths = np.diff(observations.offsets)
        self._unigram.append(observations.unigram_hashes)
        self._bigram.append(observations.bigram_hashes)
        self._lengths.append(lengths)
        self._labels.append(np.asarray(labels, dtype=np.int32))
        self._weights.append(np.ones(len(lengths)) if weights is None else weights)
        self._start_label = observations.start_label
        if observations.n_tokens and len(observations.value_keys):
            self._values.append(observations.values)
            self._value_keys = observations.value_keys

    def relabel(self, final: Relabel) -> int:
        """Replace labels by their final ids, a batch at a time; RETURNS: how many are missing."""
        self._labels = [final(labels) for labels in self._labels]
        return sum(int((labels == MISSING).sum()) for labels in self._labels)

    def build(self, min_freq: int = 1) -> EncodedCorpus:
        """Number the tests and contexts of everything that was added.

        min_freq: tests at fewer tokens are left out, see `without_rare`; real values are not.
        RETURNS: the corpus, without sets; identical for identical input, whatever the batching.
        RAISES: SparseCRFError where no test is left.
        """
        if not self._labels:
            raise SparseCRFError(Errors.SC302)
        unigram = without_rare(np.concatenate(self._unigram), min_freq)
        bigram = without_rare(np.concatenate(self._bigram), min_freq)
        if min_freq > 1 and not (unigram.any() or bigram.any() or self._values):
            raise SparseCRFError(Errors.SC351.format(min_freq=min_freq, n_tokens=len(unigram)))
        offsets = np.append(0, np.cumsum(np.concatenate(self._lengths)))
        unigram_keys, uni_indptr, uni_indices = number_tests(unigram)
        representatives, context = distinct_rows(bigram)
        bigram_keys, ctx_indptr, ctx_indices = number_tests(bigram[representatives])
        # A weight's place follows from its test: real values come after the tests of tokens.
        n_tests, n_values = len(unigram_keys), len(self._value_keys)
        return EncodedCorpus(
            offsets=offsets,
            labels=np.concatenate(self._labels),
            weights=np.concatenate(self._weights).astype(np.float64),
            uni_indptr=uni_indptr,
            uni_indices=uni_indices,
            context=context,
            ctx_indptr=ctx_indptr,
            ctx_indices=ctx_indices,
            unigram_keys=np.concatenate((unigram_keys, self._value_keys)),
            bigram_keys=bigram_keys,
            start_label=self._start_label,
            values=np.concatenate(self._values) if self._values else NO_VALUES,
            value_tests=np.arange(n_tests, n_tests + n_values),
        )
