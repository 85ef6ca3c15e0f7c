"""Where sequences begin, and what is glued, against spaCy's own."""

from itertools import pairwise

import numpy as np
import pytest
from spacy.attrs import ORTH, SENT_START, SPACY
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.features.tokens import read_tokens
from spacy_sparsecrf.kernels import hashing

from .kernel_functions import function

ATTRIBUTES = (ORTH, SENT_START, SPACY)


def read(docs: list[Doc], mode: str) -> tuple[np.ndarray, np.ndarray]:
    return read_tokens(docs, ATTRIBUTES, mode)


def test_sequences_as_spacy_s_own(vocab: Vocab) -> None:
    starts = [[True, None, True, False], [None, None], [], [False, True], [True], []]
    docs = [Doc(vocab, words=["w"] * len(s), sent_starts=s) for s in starts]
    lengths = []
    for doc in docs:
        if doc.has_annotation("SENT_START"):
            lengths.extend(len(sent) for sent in doc.sents)
        else:
            lengths.extend([len(doc)] if len(doc) else [])
    offsets, _ = read(docs, "sents")
    assert np.diff(offsets).tolist() == lengths == [2, 2, 2, 1, 1, 1]
    assert offsets.dtype == np.int64
    assert read(docs, "docs")[0].tolist() == [0, 4, 6, 8, 9]


def test_glued_as_spacy_s_own(vocab: Vocab) -> None:
    spaces = [[False, True, False], [], [True, True], [False], [True]]
    docs = [Doc(vocab, words=["w"] * len(s), spaces=s) for s in spaces]
    expected = [not a.whitespace_ for doc in docs for a, _ in pairwise([*doc, None]) if a]
    last = np.cumsum([len(doc) for doc in docs if len(doc)]) - 1
    glued = read(docs, "docs")[1][:, 2]
    assert [bool(g) for i, g in enumerate(glued) if i not in last] == [
        g for i, g in enumerate(expected) if i not in last
    ]
    assert not glued[last].any()


@pytest.mark.parametrize("glued", [0, 2])
def test_the_kernel_equals_the_function_it_was_compiled_from(glued: int) -> None:
    ends = np.array([0, 3, 3, 7], dtype=np.int64)
    tokens = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], *[[1, 2**64 - 1, 0]] * 4], dtype=np.uint64)
    results = []
    for jit in (True, False):
        values, offsets = tokens.copy(), np.zeros(8, dtype=np.int64)
        n = function(hashing.cut, jit)(ends, values, True, glued, offsets)
        results.append((n, offsets.tolist(), values.tolist()))
    assert results[0] == results[1]
    assert (results[0][2] == tokens.tolist()) == (glued == 0)
