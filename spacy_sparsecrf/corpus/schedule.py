"""Feature selection in stages: features are admitted if less specific features are active.

Lavergne, Cappé & Yvon (2010), section 5.4. A schedule is a list of stages, each with templates. At
the beginning of a stage, features of its templates are *admitted* if their *parents* are active;
other features never get weights. A parent has a subset of the attributes of a feature. It is active
if any of its weights, for labels or label pairs, is not zero. A finer rule admits a feature only
with the labels for which its parents are active.

This module is imported at each start of spaCy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .encoded import EncodedCorpus
from .numbering import Hashes, Ints, Longs, Mask, concatenated_ranges, find_keys

Require = Literal["all", "any", "none"]
Admit = Literal["features", "labels"]
REQUIRE, ADMIT = get_args(Require), get_args(Admit)


@dataclass(frozen=True)
class Stage:
    """Templates that are admitted together.

    templates: patterns of the templates whose features the stage may admit, except templates of
    earlier stages; steps: maximum of outer iterations, 0 = until convergence; require: parents of a
    feature that must be active, "all", "any" or "none"; admit: "features" admits features with all
    labels, "labels" only with the labels of the required active parents; parents: patterns of
    parents by pattern of their templates; templates without an entry get derived parents.
    """

    templates: tuple[str, ...]
    steps: int = 0
    require: str = "all"
    admit: str = "features"
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class FeatureAncestry(NamedTuple):
    """Features of some templates, and their parents.

    stage: of the templates; kinds: "u", "b" or "ub", unigram or bigram features; hashes: [n]
    uint64; parents: [n, k] uint64, hashes.
    """

    stage: int
    kinds: str
    hashes: Hashes
    parents: Hashes


@dataclass(frozen=True)
class TemplateTree:
    """Stages and parents of the U unigram features of a corpus, then of its B bigram features.

    stage: [U + B] int16; parent_ptr: [U + B + 1] int64, parents: int32, features, U + B for
    features that are not in the corpus; counterpart: [U + B] int32, the feature of the other type
    with the same hash, or U + B.
    """

    stage: NDArray[np.int16]
    parent_ptr: Longs
    parents: Ints
    counterpart: Ints

    @classmethod
    def of(cls, corpus: EncodedCorpus, descents: list[FeatureAncestry]) -> "TemplateTree":
        """Number the features and parents of a corpus; features without ancestry have stage 0."""
        n_unigram = len(corpus.unigram_keys)
        n_features = n_unigram + len(corpus.bigram_keys)
        stage = np.zeros(n_features, np.int16)
        rows, parents = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for descent in descents:
            parents_of = _number(corpus, descent.parents)
            for kind in descent.kinds:
                keys = corpus.unigram_keys if kind == "u" else corpus.bigram_keys
                feature = find_keys(keys, descent.hashes)
                known = feature >= 0
                feature = feature[known] + (0 if kind == "u" else n_unigram)
                stage[feature] = descent.stage
                rows.append(np.repeat(feature, descent.parents.shape[1]))
                parents.append(parents_of[known].ravel())
        row = np.concatenate(rows)
        counts = np.bincount(row, minlength=n_features)
        in_order = np.concatenate(parents)[np.argsort(row, kind="stable")]
        parent_ptr = np.append(0, np.cumsum(counts)).astype(np.int64)
        return cls(stage, parent_ptr, in_order.astype(np.int32), _counterparts(corpus))

    def admitted(
        self, stage: int, require: str, active: Longs, n_labels: int
    ) -> tuple[Mask, Longs]:
        """Return features of a stage admitted with all labels, and admitted pairs with labels.

        Features, [U + B] bool, are admitted with all labels if they have or need no parents. Pairs,
        [n] int64, ascending, are feature * Y + label. require: see `Stage`; active: [n] int64,
        feature * Y + y of weights that are not zero, with label y, or labels y' and y. With Y = 1,
        labels do not matter.
        """
        n_features = len(self.stage)
        own: Mask = self.stage == stage
        n_parents = np.diff(self.parent_ptr)
        if require == "none":
            return own, np.empty(0, np.int64)
        feature, label = np.divmod(active, n_labels)
        others = self.counterpart[feature].astype(np.int64) * n_labels + label
        either = np.unique(np.concatenate((active, others)))
        bounds = np.searchsorted(either, np.arange(n_features + 1) * n_labels)
        # All pairs of child and parent, then expanded by the active labels of the parent.
        child = np.repeat(np.arange(n_features), n_parents)
        kept = own[child] & (self.parents < n_features)
        child, parent = child[kept], self.parents[kept]
        n_found = bounds[parent + 1] - bounds[parent]
        label = either[concatenated_ranges(bounds[parent], n_found)] % n_labels
        found, counts = np.unique(np.repeat(child, n_found) * n_labels + label, return_counts=True)
        if require == "all":
            found = found[counts == n_parents[found // n_labels]]
        return own & (n_parents == 0), found


def _number(corpus: EncodedCorpus, hashes: Hashes) -> Longs:
    """Return the feature of each hash, in any shape; unigram before bigram, U + B if unknown."""
    n_unigram, n_bigram = len(corpus.unigram_keys), len(corpus.bigram_keys)
    number = find_keys(corpus.unigram_keys, hashes.ravel())
    missing = number < 0
    pair = find_keys(corpus.bigram_keys, hashes.ravel()[missing])
    number[missing] = n_unigram + np.where(pair < 0, n_bigram, pair)
    return number.reshape(hashes.shape)


def _counterparts(corpus: EncodedCorpus) -> Ints:
    n_unigram, n_bigram = len(corpus.unigram_keys), len(corpus.bigram_keys)
    of_unigram = find_keys(corpus.bigram_keys, corpus.unigram_keys)
    of_bigram = find_keys(corpus.unigram_keys, corpus.bigram_keys)
    found = np.append(np.where(of_unigram < 0, n_bigram, of_unigram) + n_unigram, of_bigram)
    return np.where(found < 0, n_unigram + n_bigram, found).astype(np.int32)
