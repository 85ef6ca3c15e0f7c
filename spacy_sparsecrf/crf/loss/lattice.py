"""Token arrays of the corpus for the loss, their transposes, and clamped lattices.

The gold labels and the allowed labels of a token are sets of labels; allowed sets are bits. Sets
are numbered: 0 for all labels, 1 + y for label y alone, 1 + Y + q for set q of the corpus.
"""

from typing import NamedTuple

import numpy as np

from ..corpus import numbering
from ..corpus.encoded import MISSING, EncodedCorpus
from ..corpus.numbering import Floats, Hashes, Ints, Longs, Mask, Singles
from ..corpus.ragged import pointers, row_numbers
from ..kernels.indexing import hash_runs, select, take, transpose
from ..kernels.layout import Csr

_WORD = 64  # labels
# Sequences are sorted by the contexts of this many first tokens.
_SORTED_BY = 4


def set_numbers(labels: Ints, n_labels: int) -> Longs:
    """Return the number [N] of each token's set of gold labels; labels: see `EncodedCorpus`."""
    wide = labels.astype(np.int64)
    return np.where(wide >= MISSING, wide + 1, n_labels - 1 - wide)


def set_table(sets: Mask, n_labels: int) -> Mask:
    """Return the sets by number, [1 + Y + Q, Y]. sets: [Q, Y], of the corpus."""
    everything = np.ones((1, n_labels), np.bool_)
    single = np.eye(n_labels, dtype=np.bool_)
    return np.concatenate((everything, single, sets.reshape(-1, n_labels)))


def allowed_labels(numbers: Longs, table: Mask, offsets: Longs, valid: Mask | None) -> Hashes:
    """Return the labels that tokens may have: [N, W] uint64, see `kernels.scores`.

    numbers: [N], of sets; table: of `set_table`; offsets: [S + 1], of sequences, none of which is
    empty; valid: see `build_lattice`; it restricts first and last tokens only.
    """
    if valid is None:
        return np.take(_bits(table), numbers, axis=0)
    may_begin, may_end = valid[-1, :-1], valid[:-1, -1]
    variants = (table, table & may_begin, table & may_end, table & may_begin & may_end)
    variant = np.zeros(len(numbers), np.int64)
    variant[offsets[:-1]] += 1
    variant[offsets[1:] - 1] += 2
    return np.take(_bits(np.concatenate(variants)), numbers + len(table) * variant, axis=0)


def _bits(table: Mask) -> Hashes:
    """Return sets [R, Y] as words [R, W] uint64; the set of all labels has zero bits."""
    width = -(-table.shape[1] // _WORD) * _WORD
    padded = np.zeros((len(table), width), np.bool_)
    padded[:, : table.shape[1]] = table & ~table.all(axis=1, keepdims=True)
    packed = np.packbits(padded, axis=1, bitorder="little")
    words: Hashes = packed.view("<u8").astype(np.uint64)
    return words


class Shard(NamedTuple):
    """Consecutive sequences whose forward and backward vectors are in memory at once.

    Sequences first:last, tokens begin:end; offsets: [last - first + 1] int64, counted from
    `begin`.
    """

    first: int
    last: int
    begin: int
    end: int
    offsets: Longs
    begins: Mask


class Lattice(NamedTuple):
    """Token arrays of a corpus, with a clamped lattice for each sequence with incomplete labels.

    The loss of such a sequence is log Z minus log Z over the paths that agree with its known
    labels. The clamped lattice is the second term: a copy of the sequence with weight -w and
    restricted `allowed` labels.

    offsets [S + 1], weights [S], labels [N] (gold, -1 everywhere in an incomplete sequence),
    allowed [N, W] (labels that a token may have, see `kernels.scores`), token_weight [N]; gold [N],
    sets [Q, Y]: gold labels of the corpus; valid: see `build_lattice`; clamped [S] int64, clamped
    lattice of a sequence, -1 = none (clamped lattices come last); token_bundles: bundles of a
    token; bundle_tokens: its transpose; feature_sites: sites of each unigram feature, ascending
    (see `kernels.layout`); values [M, V] float32, value_rows [N] int64, value_features [V]
    int64: real values, row of each token, and the unigram feature of each column; context [N];
    ctx_features: bigram features of a context; feature_contexts: its transpose; n_tokens: N,
    including clamped lattices; n_bundles: B; n_features: O, unigram features.
    """

    offsets: Longs
    weights: Floats
    labels: Ints
    allowed: Hashes
    token_weight: Floats
    gold: Ints
    sets: Mask
    valid: Mask | None
    clamped: Longs
    begins: Mask
    token_bundles: Csr
    bundle_tokens: Csr
    feature_sites: Csr
    values: Singles
    value_rows: Longs
    value_features: Longs
    context: Ints
    ctx_features: Csr
    feature_contexts: Csr
    n_previous: int
    n_tokens: int
    n_bundles: int
    n_features: int

    @property
    def n_examples(self) -> int:
        """Number of sequences that are not clamped lattices; these sequences come first."""
        return len(self.clamped) - int(np.count_nonzero(self.clamped >= 0))

    def by_token(self, sites: Csr) -> Csr:
        """Return the rows [N] of tokens, each with those of its bundles, of a table of sites."""
        bundles = self.token_bundles
        bounds = bundles.indptr + np.arange(self.n_tokens + 1)
        listed = np.insert(self.n_tokens + bundles.indices.astype(np.int64), bundles.indptr[:-1], 0)
        listed[bounds[:-1]] = np.arange(self.n_tokens)
        rows = take(sites, listed)
        return Csr(rows.indptr[bounds], rows.indices)

    @property
    def feature_tokens(self) -> Csr:
        """Tokens of each unigram feature, ascending; `feature_sites` needs less memory."""
        sites = transpose(self.feature_sites, self.n_tokens + self.n_bundles)
        return transpose(self.by_token(sites), self.n_features)

    def shards(self, n_tokens: int) -> list[Shard]:
        """Cut the sequences into shards of at most n_tokens tokens, or of one longer sequence."""
        shards = []
        for first, last in numbering.runs_of_tokens(self.offsets, n_tokens):
            begin, end = int(self.offsets[first]), int(self.offsets[last])
            offsets = self.offsets[first : last + 1] - begin
            shards.append(
                Shard(
                    first,
                    last=last,
                    begin=begin,
                    end=end,
                    offsets=offsets,
                    begins=self.begins[begin:end],
                )
            )
        return shards


def build_lattice(corpus: EncodedCorpus, n_labels: int, valid: Mask | None, least: int) -> Lattice:
    """Build the lattice of a corpus; drop sequences without tokens, gold labels or weight.

    Sequences are reordered. valid: [Y + 1, Y + 1], valid transitions from label a to label b; row
    Y: from the start; column Y: to the end; None = all; gold labels must be valid. least: minimum
    number of tokens of a bundle.
    """
    has_labels, is_sure = corpus.with_labels()
    used = _sorted_by_contexts(corpus, np.flatnonzero(has_labels))
    partial = np.flatnonzero(has_labels & ~is_sure)
    order = np.concatenate((used, partial))
    lengths = np.diff(corpus.offsets)[order]
    offsets = pointers(lengths)
    weights = corpus.weights[order] * np.where(np.arange(len(order)) < len(used), 1.0, -1.0)
    clamped = np.full(len(order), -1, dtype=np.int64)
    clamped[numbering.find_keys(used, partial)] = np.arange(len(used), len(order))
    tokens = numbering.concatenated_ranges(corpus.offsets[order], lengths)
    gold, token_weight = corpus.labels[tokens], np.repeat(weights, lengths)
    numbers = np.where(token_weight < 0.0, set_numbers(gold, n_labels), 0)
    ctx_features = Csr(corpus.ctx_indptr, corpus.ctx_indices)
    token_bundles, sites = _bundled(corpus, tokens, least)
    n_bundles = len(sites.indptr) - 1 - len(tokens)
    return Lattice(
        offsets=offsets,
        weights=weights,
        labels=np.where(np.repeat(~is_sure[order], lengths), np.int32(-1), gold),
        allowed=allowed_labels(numbers, set_table(corpus.sets, n_labels), offsets, valid),
        token_weight=token_weight,
        gold=gold,
        sets=corpus.sets,
        valid=valid,
        clamped=clamped,
        begins=np.diff(row_numbers(offsets), prepend=-1) > 0,  # no sequence is empty
        token_bundles=token_bundles,
        bundle_tokens=transpose(token_bundles, n_bundles),
        feature_sites=transpose(sites, len(corpus.unigram_keys)),
        values=corpus.values,
        value_rows=tokens if len(corpus.value_features) else tokens[:0].copy(),
        value_features=corpus.value_features,
        context=corpus.context[tokens],
        ctx_features=ctx_features,
        feature_contexts=transpose(ctx_features, len(corpus.bigram_keys)),
        n_previous=n_labels + int(corpus.start_label),
        n_tokens=len(tokens),
        n_bundles=n_bundles,
        n_features=len(corpus.unigram_keys),
    )


def _bundled(corpus: EncodedCorpus, tokens: Longs, least: int) -> tuple[Csr, Csr]:
    """Return the bundles of tokens [N] of a corpus, and the features of sites.

    Several features of a family at a token are a bundle if at least `least` tokens share them.
    Hashes identify bundles, as they identify features.
    """
    n_features = len(corpus.unigram_keys)
    features = take(Csr(corpus.uni_indptr, corpus.uni_indices), tokens)
    ptr, begins, ends, hashes = hash_runs(features, numbering.grown(corpus.families, n_features))
    _, numbers, counts = numbering.number_hashes(hashes)
    shared = np.flatnonzero(counts >= least)
    chosen = numbering.positions(shared, len(counts))
    token_bundles = select(Csr(ptr, numbers), chosen)
    taken, change = chosen[numbers] >= 0, np.zeros(len(features.indices) + 1, np.int8)
    change[begins[taken]] += 1
    change[ends[taken]] -= 1
    left = features.indices[np.cumsum(change[:-1], dtype=np.int8) == 0]
    n_taken = pointers(np.where(taken, ends - begins, 0))[ptr]
    # The first run of each bundle, as later assignments replace former ones.
    run = np.zeros(len(counts), np.int64)
    run[numbers[::-1]] = np.arange(len(numbers))[::-1]
    starts, lengths = begins[run[shared]], (ends - begins)[run[shared]]
    indptr = np.append(features.indptr - n_taken, len(left) + np.cumsum(lengths))
    of_bundles = features.indices[numbering.concatenated_ranges(starts, lengths)]
    return token_bundles, Csr(indptr, np.append(left, of_bundles))


def _sorted_by_contexts(corpus: EncodedCorpus, sequences: Longs) -> Longs:
    """Sort sequences by their first contexts, so that matrices stay in the CPU cache."""
    lengths = np.diff(corpus.offsets)[sequences]
    keys = np.full((_SORTED_BY, len(sequences)), -1, dtype=np.int32)
    for i, key in enumerate(keys):
        longer = lengths > i
        key[longer] = corpus.context[corpus.offsets[:-1][sequences[longer]] + i]
    return sequences[np.lexsort(keys[::-1])]
