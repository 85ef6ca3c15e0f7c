"""Valid transitions: masks and lists of them, and what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.decoding.legal import check_paths, legal_transitions
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.model.model import CRFModel

from ..reference import random_problem
from .decoding_reference import random_mask, scheme_labels, scheme_mask

LABELS = ["A", "B", "C"]


def test_forbidden_pairs():
    assert legal_transitions(LABELS) is None
    assert legal_transitions(LABELS, scheme=np.ones((4, 4), dtype=bool)) is None
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
    with pytest.raises(SparseCRFError, match="SC404"):
        Decoder(CRFModel(LABELS), np.zeros((4, 4), dtype=bool))


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
