"""Sub-problems, and the positions of their weights in the whole."""

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.loss.per_token import corpus_of_kind, local_corpus, warn_of_pairs
from spacy_sparsecrf.loss.subproblems import (
    Part,
    ReducedPart,
    cluster_bounds,
    cluster_parts,
    permits,
    places_of,
)

from ..reference import random_problem


def test_weights_of_clusters_are_found_in_the_whole():
    problem, _ = random_problem(5, 5, [5, 4, 6])
    bounds = cluster_bounds(5, 2)
    assert bounds == (0, 2, 5) and cluster_bounds(20, 4) == (0, 5, 10, 15, 20)
    corpus = local_corpus(problem.corpus, 5, pairs=False)
    # Model types are compared by value, not by identity.
    for kind, pairs in (("maxent", False), ("memm", True)):
        made = corpus_of_kind(problem.corpus, 5, "".join([*kind]))
        expected = local_corpus(problem.corpus, 5, pairs=pairs)
        np.testing.assert_array_equal(made.unigram_keys, expected.unigram_keys)
    n = len(corpus.unigram_keys) * 7
    parts, found = cluster_parts(corpus, bounds), []
    for part in parts:
        own = np.arange(len(part.corpus.unigram_keys) * part.n_labels)
        whole = part.to_global(own)
        np.testing.assert_array_equal(part.to_local(whole), own)
        others = np.setdiff1d(np.arange(n), whole)
        assert (part.to_local(others) == -1).all()
        found.append(whole)
    assert len(np.unique(np.concatenate(found))) == sum(map(len, found))
    outcomes = [np.unique(each % 7).tolist() for each in found]
    assert outcomes == [[5, 6], [0, 1], [2, 3, 4]]


def test_a_warning_of_pairs_shows_who_made_the_problem():
    corpus = random_problem(5, 5, [3])[0].corpus

    def make():
        warn_of_pairs(corpus, "maxent")

    def ask():
        make()

    with pytest.warns(SparseCRFWarning, match="SCW340") as caught:
        ask()
    assert caught[0].lineno == ask.__code__.co_firstlineno + 1


def test_listed_labels_of_a_feature_are_the_only_ones_with_weights():
    corpus = random_problem(3, 4, [4, 3])[0].corpus
    whole, n_unigram = Part(corpus, 4), len(corpus.unigram_keys)
    features = np.array([0, 2, 3, n_unigram, n_unigram + 2])
    allowed = {0: [1, 3], 3: [0], n_unigram + 2: [2, 3]}
    listed = np.array([feature * 4 + y for feature, own in allowed.items() for y in own])
    part = ReducedPart(corpus, 4, whole, features)
    own = np.arange(3 * 4 + 2 * 5 * 4)
    feature, place = places_of(own, 3, whole.widths)
    pairs = zip(features[feature], place, strict=True)
    expected = [y % 4 in allowed.get(f, range(4)) for f, y in pairs]
    assert permits(whole, part, listed, own).tolist() == expected
