"""Structured feature sets: tests that enter in stages, where less specific tests are active.

Lavergne, Cappé & Yvon (2010), section 5.4. A schedule is a list of stages, each of which names
templates. When a stage begins, tests of its templates are *admitted*, those whose *parents* are
active, which test a part of what they test; the others never have a weight. A parent is active
where any weight of it is not zero, whether it is conjoined with the label or with the pair of
labels. A finer rule admits pairs of a test and a label, by active pairs of its parents with that
label.

This module is imported at each start of spaCy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .encoded import EncodedCorpus
from .numbering import find_keys

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]
Keys = NDArray[np.uint64]

REQUIRE = ("all", "any", "none")
ADMIT = ("tests", "labels")


@dataclass(frozen=True)
class Stage:
    """Templates that enter together.

    templates: patterns that name the templates whose tests it may admit, but for those that stages
    before name; steps: outer iterations at most, 0 = until they converge; require: how many of the
    parents of a test must be active, "all", "any" or "none"; admit: whether "tests" are admitted
    with all labels, or only with the "labels" that so many parents are active with; parents:
    patterns that name the parents of templates, by the patterns that name these, where they are not
    to be derived.
    """

    templates: tuple[str, ...]
    steps: int = 0
    require: str = "all"
    admit: str = "tests"
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class FeatureAncestry:
    """Tests of some templates, and their parents.

    stage: of the templates; kinds: "u", "b" or "ub", what the tests are conjoined with; hashes: [n]
    uint64; parents: [n, k] uint64, hashes.
    """

    stage: int
    kinds: str
    hashes: Keys
    parents: Keys


@dataclass(frozen=True)
class TemplateTree:
    """Stages and parents of the U unigram tests of a corpus, then of its B bigram tests.

    stage: [U + B] int16; parent_ptr: [U + B + 1] int64, parents: int32, tests, U + B for one that
    is not in the corpus; counterpart: [U + B] int32, the test of the other kind that tests the
    same, or U + B.
    """

    stage: NDArray[np.int16]
    parent_ptr: Longs
    parents: NDArray[np.int32]
    counterpart: NDArray[np.int32]

    @classmethod
    def of(cls, corpus: EncodedCorpus, descents: list[FeatureAncestry]) -> "TemplateTree":
        """Number the tests and parents of a corpus; tests that have no descent are of stage 0."""
        n_unigram = len(corpus.unigram_keys)
        n_tests = n_unigram + len(corpus.bigram_keys)
        stage = np.zeros(n_tests, np.int16)
        rows, parents = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for descent in descents:
            parents_of = _number(corpus, descent.parents)
            for kind in descent.kinds:
                keys = corpus.unigram_keys if kind == "u" else corpus.bigram_keys
                test = find_keys(keys, descent.hashes)
                known = test >= 0
                test = test[known] + (0 if kind == "u" else n_unigram)
                stage[test] = descent.stage
                rows.append(np.repeat(test, descent.parents.shape[1]))
                parents.append(parents_of[known].ravel())
        row = np.concatenate(rows)
        counts = np.bincount(row, minlength=n_tests)
        in_order = np.concatenate(parents)[np.argsort(row, kind="stable")]
        parent_ptr = np.append(0, np.cumsum(counts)).astype(np.int64)
        return cls(stage, parent_ptr, in_order.astype(np.int32), _counterparts(corpus))

    def admitted(self, stage: int, require: str, active: Mask) -> Mask:
        """The tests of a stage's templates whose parents are active: [U + B] bool.

        require: see `Stage`; active: [U + B] bool, tests with a weight that is not zero.
        """
        own: Mask = self.stage == stage
        if require == "none":
            return own
        extended = np.append(active, False)
        either = np.append(active | extended[self.counterpart], False)
        sums = np.concatenate(([0], np.cumsum(either[self.parents])))
        n_parents = np.diff(self.parent_ptr)
        n_active = np.diff(sums[self.parent_ptr])
        met: Mask = n_active == n_parents
        if require == "any":
            met |= n_active > 0
        return own & met

    def admitted_labels(
        self, stage: int, require: str, active: Longs, n_labels: int
    ) -> tuple[Mask, Longs]:
        """The tests of a stage's templates that are admitted with all labels, as they have no
        parents, or need none: [U + B] bool; and what others are admitted with: [n] int64,
        ascending, test * Y + label.

        active: [n] int64, test * Y + y of weights with label y, or labels y' and y, that are not
        zero.
        """
        n_tests = len(self.stage)
        own: Mask = self.stage == stage
        n_parents = np.diff(self.parent_ptr)
        if require == "none":
            return own, np.empty(0, np.int64)
        test, label = np.divmod(active, n_labels)
        others = self.counterpart[test].astype(np.int64) * n_labels + label
        either = np.unique(np.concatenate((active, others)))
        bounds = np.searchsorted(either, np.arange(n_tests + 1) * n_labels)
        # Each child with each of its parents, then with each label of these.
        child = np.repeat(np.arange(n_tests), n_parents)
        kept = own[child] & (self.parents < n_tests)
        child, parent = child[kept], self.parents[kept]
        n_found = bounds[parent + 1] - bounds[parent]
        first = np.repeat(bounds[parent] - (np.cumsum(n_found) - n_found), n_found)
        label = either[first + np.arange(len(first))] % n_labels
        found, counts = np.unique(np.repeat(child, n_found) * n_labels + label, return_counts=True)
        if require == "all":
            found = found[counts == n_parents[found // n_labels]]
        return own & (n_parents == 0), found


def _number(corpus: EncodedCorpus, hashes: Keys) -> Longs:
    """A test of each hash, of any shape; of two the unigram test, U + B where there is none."""
    n_unigram, n_bigram = len(corpus.unigram_keys), len(corpus.bigram_keys)
    number = find_keys(corpus.unigram_keys, hashes.ravel())
    missing = number < 0
    pair = find_keys(corpus.bigram_keys, hashes.ravel()[missing])
    number[missing] = n_unigram + np.where(pair < 0, n_bigram, pair)
    return number.reshape(hashes.shape)


def _counterparts(corpus: EncodedCorpus) -> NDArray[np.int32]:
    n_unigram, n_bigram = len(corpus.unigram_keys), len(corpus.bigram_keys)
    found = np.full(n_unigram + n_bigram, n_unigram + n_bigram, np.int32)
    of_pairs = find_keys(corpus.unigram_keys, corpus.bigram_keys)
    pairs = np.flatnonzero(of_pairs >= 0)
    found[n_unigram + pairs] = of_pairs[pairs]
    found[of_pairs[pairs]] = n_unigram + pairs
    return found
