"""The corpus as the loss walks over it: token arrays, transposes, constrained copies."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..corpus import MISSING, EncodedCorpus
from ..kernels.layout import transpose
from .label_sets import Mask, Words, allowed_labels, set_numbers, set_table

# Contexts by which sequences are sorted.
_SORTED_BY = 4

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Csr:
    """A ragged table: row r holds indices[indptr[r]:indptr[r + 1]].

    indptr: [R + 1] int64; indices: [nnz] int32.
    """

    indptr: Longs
    indices: Ints

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: Longs) -> "Csr":
        """Some rows, in the given order; all rows in their own order are not copied."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return self
        lengths = np.diff(self.indptr)[rows]
        entries = concatenated_ranges(self.indptr[:-1][rows], lengths)
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return Csr(indptr, self.indices[entries])

    def transposed(self, n_columns: int) -> "Csr":
        """The rows of each column, ascending."""
        col_ptr = np.zeros(n_columns + 1, dtype=np.int64)
        col_rows = np.empty(len(self.indices), dtype=np.int32)
        transpose(self.indptr, self.indices, col_ptr, col_rows)
        return Csr(col_ptr, col_rows)


@dataclass(frozen=True)
class Block:
    """A run of sequences whose forward and backward vectors are in memory at once.

    Sequences first:last, which are the tokens begin:end; offsets: [last - first + 1] int64,
    counted from `begin`, as are all tokens that `tokens_by` returns.
    """

    first: int
    last: int
    begin: int
    end: int
    offsets: Longs
    begins: NDArray[np.bool_]

    def tokens_by(self, key: Ints, n_groups: int) -> tuple[Csr, Csr]:
        """Group the block's tokens by a key [N]: those that continue a sequence, and begin one."""
        tokens = np.arange(self.end - self.begin, dtype=np.int32)
        key = key[self.begin : self.end]
        inner, starts = tokens[~self.begins], tokens[self.begins]
        return _group(key[inner], inner, n_groups), _group(key[starts], starts, n_groups)


def _group(keys: Ints, members: Ints, n_groups: int) -> Csr:
    """List the members of each group: those whose key is the group's number, in order."""
    order = np.argsort(keys, kind="stable")
    indptr = np.searchsorted(keys[order], np.arange(n_groups + 1)).astype(np.int64)
    return Csr(indptr, members[order])


@dataclass(frozen=True)
class Lattice:
    """Token arrays of a corpus, with a copy of each sequence whose gold labels are incomplete.

    The loss of such a sequence is log Z minus the log Z over the paths that agree with what is
    known of its labels; the copy stands for the second term: it has weight -w, and `allowed`
    restricts it.

    offsets [S + 1], weights [S], labels [N] (gold, -1 everywhere in an incomplete sequence),
    allowed [N, W] (labels that a token may have, see `kernels.sets`), token_weight [N]; gold [N],
    sets [Q, Y]: gold labels as the corpus has them; legal: see `build_lattice`; twin [S] int64, the
    copy of a sequence, -1 = it has none; tests: unigram tests of a token; values [M, V] float32,
    value_rows [N] int64, value_tests [V] int64: real values, the row of each token there, and the
    unigram test that a column counts as; context [N];
    ctx_tests: bigram tests of a context; test_tokens, test_contexts: their transposes; inner
    and starts: tokens of a context that continue and that begin a sequence.
    """

    offsets: Longs
    weights: NDArray[np.float64]
    labels: Ints
    allowed: Words
    token_weight: NDArray[np.float64]
    gold: Ints
    sets: Mask
    legal: Mask | None
    twin: Longs
    begins: NDArray[np.bool_]
    tests: Csr
    values: NDArray[np.float32]
    value_rows: Longs
    value_tests: Longs
    context: Ints
    ctx_tests: Csr
    test_tokens: Csr
    test_contexts: Csr
    n_previous: int

    @property
    def n_tokens(self) -> int:
        """Number of tokens N, copies included."""
        return len(self.labels)

    @cached_property
    def context_tokens(self) -> Csr:
        """The tokens of each context, ascending."""
        tokens = np.arange(self.n_tokens, dtype=np.int32)
        return _group(self.context, tokens, len(self.ctx_tests))

    def blocks(self, n_tokens: int) -> list[Block]:
        """Cut the sequences into blocks of at most so many tokens, longer sequences apart."""
        bounds = [0]
        while bounds[-1] < len(self.weights):
            limit = self.offsets[bounds[-1]] + n_tokens
            last = int(np.searchsorted(self.offsets, limit, side="right")) - 1
            bounds.append(max(last, bounds[-1] + 1))
        blocks = []
        for first, last in pairwise(bounds):
            begin, end = int(self.offsets[first]), int(self.offsets[last])
            offsets = self.offsets[first : last + 1] - begin
            blocks.append(Block(first, last, begin, end, offsets, self.begins[begin:end]))
        return blocks


def build_lattice(corpus: EncodedCorpus, n_labels: int, legal: Mask | None = None) -> Lattice:
    """Lay a corpus out for the loss; sequences without tokens, gold labels or weight drop out.

    The order of sequences is the lattice's own. legal: [Y + 1, Y + 1], whether label b may follow
    label a; row Y: may begin a sequence; column Y: may end one; None = all. Gold labels are legal.
    """
    lengths = np.diff(corpus.offsets)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    known = np.bincount(sequence, corpus.labels != MISSING, minlength=len(lengths)) > 0
    known &= corpus.weights > 0.0
    sure = np.bincount(sequence, corpus.labels >= 0, minlength=len(lengths))
    used = _with_like_contexts_together(corpus, np.flatnonzero(known))
    partial = np.flatnonzero(known & (sure < lengths))
    order = np.concatenate((used, partial))
    tokens = concatenated_ranges(corpus.offsets[order], lengths[order])
    copied = np.repeat(np.arange(len(order)) >= len(used), lengths[order])
    incomplete = np.isin(sequence[tokens], partial)
    offsets = np.concatenate(([0], np.cumsum(lengths[order]))).astype(np.int64)
    weights = corpus.weights[order] * np.where(np.arange(len(order)) < len(used), 1.0, -1.0)
    labels = corpus.labels[tokens]
    begins, ends = (np.zeros(len(tokens), dtype=np.bool_) for _ in range(2))
    begins[offsets[:-1]] = ends[offsets[1:] - 1] = True
    numbers = np.where(copied, set_numbers(labels, n_labels), 0)
    table = set_table(corpus.sets, n_labels)
    twin = np.full(len(order), -1, dtype=np.int64)
    twin[np.argsort(used)[np.searchsorted(np.sort(used), partial)]] = np.arange(
        len(used), len(order)
    )
    tests = Csr(corpus.uni_indptr, corpus.uni_indices).take(tokens)
    ctx_tests = Csr(corpus.ctx_indptr, corpus.ctx_indices)
    return Lattice(
        offsets=offsets,
        weights=weights,
        labels=np.where(incomplete, -1, labels).astype(np.int32),
        allowed=allowed_labels(numbers, table, begins, ends, legal),
        token_weight=np.repeat(weights, lengths[order]),
        gold=labels,
        sets=corpus.sets,
        legal=legal,
        twin=twin,
        begins=begins,
        tests=tests,
        values=corpus.values,
        value_rows=tokens,
        value_tests=corpus.value_tests,
        context=corpus.context[tokens],
        ctx_tests=ctx_tests,
        test_tokens=tests.transposed(len(corpus.unigram_keys)),
        test_contexts=ctx_tests.transposed(len(corpus.bigram_keys)),
        n_previous=n_labels + int(corpus.start_label),
    )


def _with_like_contexts_together(corpus: EncodedCorpus, sequences: Longs) -> Longs:
    """Sort sequences by their first contexts, whose matrices a cache then keeps for the next."""
    lengths = np.diff(corpus.offsets)[sequences]
    keys = np.full((_SORTED_BY, len(sequences)), -1, dtype=np.int32)
    for i, key in enumerate(keys):
        longer = lengths > i
        key[longer] = corpus.context[corpus.offsets[:-1][sequences[longer]] + i]
    return sequences[np.lexsort(keys[::-1])]


def concatenated_ranges(starts: Longs, lengths: Longs) -> Longs:
    """Concatenate the ranges starts[i]:starts[i] + lengths[i]."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    ranges: Longs = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return ranges
