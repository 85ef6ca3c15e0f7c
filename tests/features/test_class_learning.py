"""Word classes from text and from vectors."""

from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.features import class_learning
from spacy_sparsecrf.features.class_learning import (
    BigramCounter,
    BigramCounts,
    exchange_classes,
    vector_classes,
    write_classes,
)
from spacy_sparsecrf.features.class_sources import read_classes

LINES = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), min_size=1, max_size=20)


def counted(lines: list[list[str]], min_count: int = 1) -> BigramCounts:
    counter = BigramCounter()
    for line in lines:
        counter.add(line)
    return counter.bigrams(min_count)


def likelihood(bigrams: BigramCounts, classes: np.ndarray) -> float:
    """The sum that `kernels.exchange` has in its docstring, by counting."""
    of_word = [-2, -1, *classes.tolist()]
    pairs, sizes = Counter(), Counter()
    for a, b, n in zip(bigrams.first, bigrams.second, bigrams.counts, strict=True):
        pairs[of_word[a], of_word[b]] += int(n)
        sizes[of_word[b]] += int(n)
    return sum(n * log(n) for n in pairs.values()) - 2 * sum(n * log(n) for n in sizes.values())


@given(LINES, st.integers(1, 3))
def test_bigrams_are_counted(lines: list[list[str]], min_count: int) -> None:
    counts = Counter(word for line in lines for word in line)
    kept = sorted((w for w in counts if counts[w] >= min_count), key=lambda w: (-counts[w], w))
    number = {word: i for i, word in enumerate(kept, start=2)}
    text = [0, *(n for line in lines for n in [*(number.get(w, 1) for w in line), 0])]
    expected = Counter(pairwise(text))
    found = counted(lines, min_count)
    assert found.words == kept
    pairs = zip(found.first.tolist(), found.second.tolist(), strict=True)
    assert dict(zip(pairs, found.counts.tolist(), strict=True)) == expected


def test_text_is_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [list("abcab"), [], list("aacd"), list("b")] * 3
    whole = counted(lines)
    monkeypatch.setattr(class_learning, "_BUFFER", 4)
    parts = counted(lines)
    for name in ("first", "second", "counts"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


@given(LINES, st.integers(2, 4))
def test_no_word_is_better_elsewhere(lines: list[list[str]], n: int) -> None:
    bigrams = counted(lines)
    found = exchange_classes(bigrams, n, 100)
    most = likelihood(bigrams, found)
    for word in range(len(bigrams.words)):
        for k in range(n):
            moved = found.copy()
            moved[word] = k
            assert likelihood(bigrams, moved) <= most + 1e-6


def test_words_of_a_kind_come_together() -> None:
    rng = np.random.default_rng(0)
    kinds = [["the", "a"], ["cat", "dog", "cow"], ["eats", "sees", "runs"]]
    lines = [[str(rng.choice(kind)) for kind in kinds] for _ in range(200)]
    bigrams = counted(lines)
    classes = dict(zip(bigrams.words, exchange_classes(bigrams, 3, 10).tolist(), strict=True))
    assert [len({classes[word] for word in kind}) for kind in kinds] == [1, 1, 1]
    assert len(set(classes.values())) == 3


def test_vectors_of_a_direction_come_together() -> None:
    rng = np.random.default_rng(1)
    centres = np.eye(4, 10)
    which = rng.integers(0, 4, 200)
    vectors = (centres[which] + 0.05 * rng.normal(size=(200, 10))) * rng.uniform(1, 9, (200, 1))
    found = vector_classes(vectors, 4, 20, seed=3)
    assert {len(set(found[which == k].tolist())) for k in range(4)} == {1}
    assert sorted(set(found.tolist())) == [0, 1, 2, 3]
    np.testing.assert_array_equal(vector_classes(3.0 * vectors, 4, 20, seed=3), found)


def test_no_class_is_lost_where_vectors_are_alike() -> None:
    vectors = np.repeat(np.eye(3), [50, 1, 1], axis=0) + 1e-3
    assert len(set(vector_classes(vectors, 3, 20, seed=0).tolist())) == 3


def test_what_is_written_is_read_again(tmp_path) -> None:
    words, classes = ["the", "cat", "Cat"], np.array([1, 0, 0])
    file = tmp_path / "classes"
    file.write_text("".join(write_classes(words, classes)), encoding="utf8")
    assert file.read_text(encoding="utf8") == "cat 0\nCat 0\nthe 1\n"
    read = read_classes("own", {"path": file, "format": "word2vec"}, "en")
    assert [read.classes[read.find(word)] for word in ("the", "The", "cat", "dog")] == [
        "1",
        "1",
        "0",
        "",
    ]
