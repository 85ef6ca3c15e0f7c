"""Attribute values that templates read from tokens, before hashing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import HashPlan, Tokens
from .numbering import Hashes, Longs

_NONE: Hashes = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Conjunctions:
    """Templates in the form of the hashing kernels: conjunctions of attribute values.

    seeds, part_ptr, part_columns, part_offsets, part_anchors: see `HashPlan`; if an attribute has
    several values at a token, only its first column has values outside sequences; n_edges: E >= 1,
    number of distances from a sequence with different values; tokens farther away have the value of
    distance E; given_edges: [K, 2, E] uint64, values of tokens outside the sequence, 0 = missing;
    None for a distinct value per distance.
    """

    seeds: Hashes
    part_ptr: Longs
    part_columns: Longs
    part_offsets: Longs
    part_anchors: Longs
    n_edges: int
    given_edges: Hashes | None = None

    @cached_property
    def part_edges(self) -> Hashes:
        """Values of tokens outside the sequence: [K, 2, E] uint64."""
        if self.given_edges is not None:
            return self.given_edges
        from ..kernels.hashing import edge_values

        return np.tile(edge_values(self.n_edges), (len(self.part_columns), 1, 1))

    @cached_property
    def plan(self) -> HashPlan:
        """The arrays for kernels."""
        return HashPlan(
            seeds=self.seeds,
            part_ptr=self.part_ptr,
            part_columns=self.part_columns,
            part_offsets=self.part_offsets,
            part_anchors=self.part_anchors,
            part_edges=self.part_edges,
        )

    @property
    def columns(self) -> Longs:
        """[K] int64, the column of each attribute, without the mark ~ of `part_columns`."""
        return np.where(self.part_columns < 0, ~self.part_columns, self.part_columns)

    @cached_property
    def families(self) -> NDArray[np.uint8]:
        """[P] uint8, the same for templates of one token, and of the same attributes of several.

        See `Observations`.
        """
        keys: list[tuple[int, ...]] = []
        for begin, end in zip(self.part_ptr, self.part_ptr[1:], strict=False):
            anchors = self.part_anchors[begin:end].tolist()
            offsets = self.part_offsets[begin:end].tolist()
            columns = self.columns[begin:end].tolist()
            places = {*zip(anchors, offsets, strict=True)} or {(0, 0)}
            keys += places if len(places) == 1 else [(-1, *sorted({*columns}))]
        numbers = {key: 1 + i % 255 for i, key in enumerate(dict.fromkeys(keys))}
        return np.array([numbers[key] for key in keys], np.uint8)

    def select(self, columns: Sequence[int]) -> "Conjunctions":
        """Select templates, in the given order."""
        parts = [range(self.part_ptr[p], self.part_ptr[p + 1]) for p in columns]
        chosen = np.array([k for of_template in parts for k in of_template], dtype=np.int64)
        return Conjunctions(
            seeds=self.seeds[np.asarray(columns, dtype=np.int64)],
            part_ptr=np.cumsum([0, *map(len, parts)], dtype=np.int64),
            part_columns=self.part_columns[chosen],
            part_offsets=self.part_offsets[chosen],
            part_anchors=self.part_anchors[chosen],
            n_edges=self.n_edges,
            given_edges=None if self.given_edges is None else self.given_edges[chosen],
        )


@dataclass(frozen=True)
class Templates:
    """A list of templates, and the labels with which their features are conjoined.

    conjunctions: of P templates; n_lexical: number L of columns of `Readings.lexical`;
    unigram_columns [U], bigram_columns [B]: int32, templates conjoined with the label and with the
    label pair; start_label: whether the first token of a sequence has the pair (start, y);
    value_seeds, value_numbers: [V] uint64, seed and value that give the hash of each real-valued
    feature's name, like a feature with one attribute.
    """

    conjunctions: Conjunctions
    n_lexical: int
    unigram_columns: NDArray[np.int32]
    bigram_columns: NDArray[np.int32]
    start_label: bool
    value_seeds: Hashes = field(default_factory=lambda: _NONE)
    value_numbers: Hashes = field(default_factory=lambda: _NONE)

    def select(self, columns: Sequence[int]) -> "Templates":
        """Select templates, in the given order, and all real-valued features."""
        unigram, bigram = (
            np.flatnonzero(np.isin(columns, conjoined)).astype(np.int32)
            for conjoined in (self.unigram_columns, self.bigram_columns)
        )
        conjunctions = self.conjunctions.select(columns)
        return replace(
            self, conjunctions=conjunctions, unigram_columns=unigram, bigram_columns=bigram
        )

    @cached_property
    def value_keys(self) -> Hashes:
        """[V] uint64, hashes of the names of the real-valued features."""
        if not len(self.value_seeds):
            return _NONE
        starts = np.arange(len(self.value_seeds) + 1)
        return hash_values(self.value_seeds, starts, self.value_numbers)

    @cached_property
    def pairs(self) -> Conjunctions:
        """Conjunctions of the B templates that are conjoined with the label pair."""
        return self.conjunctions.select(self.bigram_columns.tolist())

    @cached_property
    def constant_pairs(self) -> Hashes | None:
        """Hashes [B] of the bigram templates if no template reads an attribute; otherwise None."""
        from ..kernels.hashing import hash_seeds

        hashes: Hashes = hash_seeds(self.pairs.seeds)
        return None if len(self.pairs.part_columns) else hashes


def hash_values(seeds: Hashes, starts: Longs, values: Hashes) -> Hashes:
    """Hash features as at a token: [P] uint64.

    seeds: [P] uint64; starts: [P + 1] int64, template p reads values[starts[p]:starts[p + 1]].
    """
    from ..kernels.hashing import hash_features

    conjunctions = Conjunctions(
        seeds=seeds,
        part_ptr=starts,
        part_columns=np.arange(len(values)),
        part_offsets=np.zeros(len(values), dtype=np.int64),
        part_anchors=np.zeros(len(values), dtype=np.int64),
        n_edges=1,
    )
    # A sequence of one token with all values, each in a separate column.
    bounds, row = np.array([0, 1]), np.zeros(1, dtype=np.int32)
    token = Tokens(bounds, row, values[None], np.empty((1, 0), np.uint64))
    hashes: Hashes = np.empty(len(seeds), dtype=np.uint64)
    hash_features(token, conjunctions.plan, hashes[None])
    return hashes


class Division(NamedTuple):
    """The words of D Docs.

    ends, behind: [D] int64, end of each Doc, in words and in tokens.
    kept: [N] int64, the token of each word; None if all tokens are words.
    apart: words behind an empty line, ascending.
    """

    ends: Longs
    behind: Longs
    kept: Longs | None
    apart: Longs | tuple[()] = ()

    @property
    def tokens(self) -> Longs:
        """[N] int64, the token of each word."""
        return np.arange(self.behind[-1]) if self.kept is None else self.kept


class Readings(NamedTuple):
    """Attribute values that templates read from the words of a batch of sequences.

    templates: templates that read the values.
    offsets: [S + 1] int64, sequence s is the tokens offsets[s]:offsets[s + 1].
    words: [N] int32, row of a token's word in `lexical`.
    lexical: [R, L] uint64, values that depend only on the word, 0 = missing.
    annotations: [N, A] uint64, values that depend on the token, 0 = missing.
    lexicon: identifies the rows; the same object means the same words in the rows of `lexical`.
    values: [N, V] float32, real-valued features, finite.
    division: of the Docs that were read.
    """

    templates: Templates
    offsets: Longs
    words: NDArray[np.int32]
    lexical: Hashes
    annotations: Hashes
    lexicon: object
    values: NDArray[np.float32]
    division: Division

    @property
    def value_keys(self) -> Hashes:
        """[V] uint64, hashes of the names of the real-valued features."""
        return self.templates.value_keys

    @property
    def n_tokens(self) -> int:
        """Number of words N."""
        return len(self.words)

    def hash(self, conjunctions: Conjunctions) -> Hashes:
        """Hash features at every token: [N, P] uint64, 0 if a value is missing."""
        from ..kernels.hashing import hash_features

        tokens = Tokens(self.offsets, self.words, self.lexical, self.annotations)
        hashes = np.empty((len(self.words), len(conjunctions.seeds)), dtype=np.uint64)
        hash_features(tokens, conjunctions.plan, hashes)
        return hashes

    @property
    def bigram_hashes(self) -> Hashes:
        """[N, B] uint64, features conjoined with the label pair, as in `Observations`."""
        hashes = self.hash(self.templates.pairs)
        if not self.templates.start_label:
            hashes[self.offsets[:-1]] = 0
        return hashes

    def sequences(self, first: int, last: int) -> "Readings":
        """Return the readings of sequences first:last."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return self._replace(
            offsets=self.offsets[first : last + 1] - begin,
            words=self.words[begin:end],
            annotations=self.annotations[begin:end],
            values=self.values[begin:end],
        )


def kept_of(parts: Sequence[Readings]) -> Longs | None:
    """Return the token of each word of all parts: [N] int64; None if all tokens are words."""
    if all(part.division.kept is None for part in parts):
        return None
    begins = np.cumsum([0, *(part.division.behind[-1] for part in parts)])
    return np.concatenate(
        [x + part.division.tokens for x, part in zip(begins, parts, strict=False)]
    )
