"""Legal transitions, and Viterbi that keeps to them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.decoding.legal import Transitions, check_paths, legal_transitions
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.kernels.layout import Scored
from spacy_sparsecrf.kernels.viterbi import viterbi
from spacy_sparsecrf.model.model import CRFModel

from ..reference import random_problem
from .decoding_reference import random_mask, reference_best_labels, scheme_labels, scheme_mask

LABELS = ["A", "B", "C"]


def test_nothing_is_forbidden():
    assert legal_transitions(LABELS) is None
    assert legal_transitions(LABELS, scheme=np.ones((4, 4), dtype=bool)) is None


def test_forbidden_pairs():
    legal = legal_transitions(LABELS, forbidden=[["A", "B"], ["", "C"], ["B", ""]])
    expected = np.ones((4, 4), dtype=bool)
    expected[0, 1] = expected[3, 2] = expected[1, 3] = False
    np.testing.assert_array_equal(legal, expected)


def test_allowed_pairs_are_the_only_ones():
    pairs = [("", "A"), ("A", "B"), ("A", "A"), ("B", ""), ("A", "")]
    legal = legal_transitions(LABELS, allowed=pairs)
    assert legal.sum() == len(pairs) + 1
    assert all(legal[(*LABELS, "").index(a), (*LABELS, "").index(b)] for a, b in pairs)
    with_both = legal_transitions(LABELS, forbidden=[["A", "B"]], allowed=pairs)
    assert not with_both[0, 1]
    assert with_both[0, 0]


def test_a_scheme_and_lists_apply_both():
    labels = scheme_labels(1, "LU")
    legal = legal_transitions(labels, [["O", "U-0"]], scheme=scheme_mask(labels, "LU"))
    assert not legal[labels.index("O"), labels.index("U-0")]
    assert not legal[labels.index("O"), labels.index("L-0")]
    assert legal[labels.index("B-0"), labels.index("L-0")]


@pytest.mark.parametrize("key", ["forbidden", "allowed"])
def test_unknown_labels(key):
    with pytest.raises(SparseCRFError, match=rf"SC403.*{key} names 'X'.*A, B, C"):
        legal_transitions(LABELS, **{key: [["A", "X"]]})


@pytest.mark.parametrize(
    ("lists", "problem"),
    [
        ({"forbidden": [["", y] for y in LABELS]}, "no label can begin a sequence"),
        ({"forbidden": [[y, ""] for y in LABELS]}, "no label can end a sequence"),
        ({"allowed": [["A", "B"], ["B", "A"]]}, "no label can begin a sequence"),
        ({"allowed": [["", "A"], ["A", ""]]}, "no sequence of 2 tokens"),
        ({"allowed": [["", "A"], ["A", ""], ["A", "B"], ["B", "A"]]}, "no sequence of 2 tokens"),
        (
            {"allowed": [["", "A"], ["A", "B"], ["B", "C"], ["C", "C"], ["C", ""], ["A", ""]]},
            "of 2",
        ),
    ],
)
def test_masks_that_leave_no_path(lists, problem):
    with pytest.raises(SparseCRFError, match=f"SC404.*{problem}"):
        legal_transitions(LABELS, **lists)


def test_lengths_beyond_the_number_of_labels_are_checked():
    """Cycles of 3 and 5 labels of which one may not end: both after 11 tokens, of 8 labels."""
    legal = np.zeros((9, 9), dtype=bool)
    for first, size in ((0, 3), (3, 5)):
        legal[8, first] = True
        for i in range(size):
            legal[first + i, first + (i + 1) % size] = True
            legal[first + i, 8] = i != 10 % size
    with pytest.raises(SparseCRFError, match="no sequence of 11 tokens"):
        check_paths(legal)


@pytest.mark.parametrize("mask", [np.ones((3, 3), bool), np.ones((4, 4)), None, [[True]]])
def test_masks_of_another_shape_or_type(mask):
    with pytest.raises(SparseCRFError, match=r"SC405.*\[4, 4\] of bool.*`legal`"):
        legal_transitions(LABELS, scheme=mask if mask is not None else np.ones(4, bool))
    if mask is not None:
        with pytest.raises(SparseCRFError, match="SC405"):
            Decoder(CRFModel(LABELS), mask)


def test_a_decoder_refuses_a_mask_without_paths():
    with pytest.raises(SparseCRFError, match="SC404"):
        Decoder(CRFModel(LABELS), np.zeros((4, 4), dtype=bool))


# The search


def masks(rng: np.random.Generator) -> list[np.ndarray]:
    kinds = [scheme_mask(scheme_labels(n, ends), ends) for n in (1, 4) for ends in ("", "LU")]
    return [*kinds, random_mask(rng, 2), random_mask(rng, 9), random_mask(rng, 20)]


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("n_contexts", [1, 3])
def test_masked_search_equals_search_of_everything(prune, integers, n_contexts):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        for legal in masks(rng):
            n = len(legal) - 1
            padded = -(-n // 8) * 8
            offsets = np.array([0, 7, 7, 8, 30, 200], dtype=np.int64)
            scores = rng.normal(scale=3.0, size=(200, padded))
            pairs = rng.normal(scale=2.0, size=(n_contexts, n + 1, padded))
            if integers:
                scores, pairs = np.round(scores), np.round(pairs)
            context = rng.integers(0, n_contexts, 200).astype(np.int32)
            expected = reference_best_labels(offsets, scores, context, pairs, legal)
            of = Transitions.make(legal, n, padded)
            slack, labels = of.finish(pairs, prune), np.empty(200, np.int32)
            last = offsets[[1, 3, 4, 5]] - 1
            scores[last, :n] += np.where(of.ends, 0.0, -np.inf)
            scored = Scored(n, offsets, scores, context, pairs)
            viterbi(scored, slack, of.search, np.empty(padded), labels)
            np.testing.assert_array_equal(labels, expected)


def test_few_transitions_are_looked_at_in_schemes():
    iob = Transitions.make(scheme_mask(scheme_labels(24, ""), ""), 49, 56).search
    assert len(iob.group_ptr) == 2
    assert (len(iob.rare), len(iob.rare_rows)) == (24, 48)
    biluo = Transitions.make(scheme_mask(scheme_labels(12, "LU"), "LU"), 49, 56).search
    assert biluo.group_ptr.tolist() == [0, 25]
    assert (len(biluo.rare), len(biluo.rare_rows)) == (24, 48)
    free = Transitions.make(None, 49, 56).search
    assert free.group_ptr.tolist() == [0, 49]
    assert len(free.rare) == 0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 6))
def test_decoded_labels_are_legal(seed, n_labels):
    rng = np.random.default_rng(seed)
    legal = random_mask(rng, n_labels)
    _, observations = random_problem(seed, n_labels, [4, 0, 1, 9])
    labels = Decoder(CRFModel([str(y) for y in range(n_labels)]), legal).viterbi(observations)
    for begin, end in itertools.pairwise(observations.offsets):
        if end > begin:
            steps = itertools.pairwise([n_labels, *labels[begin:end], n_labels])
            assert all(legal[step] for step in steps)
