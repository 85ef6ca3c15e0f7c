"""Template attributes of a first-stage model, and the features of a first-stage model."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.stacking import FirstLabels, FirstSpans, fill, most_elsewhere

from ..toy import ENGLISH

TEMPLATES = ["b:", "u:lower[0]", "u:first[-1]|lower[0]", "b:first[0]", "u:doc_majority[1]"]
TEMPLATES += ["*:lower[1]"]
NAMES = np.array([11, 12, 13], np.uint64)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=15))
def test_most_elsewhere_counts_all_others(members: list[tuple[int, int]]) -> None:
    groups, values = (np.array([m[i] for m in members], np.int64) for i in (0, 1))
    expected = []
    for i, (group, _) in enumerate(members):
        others = Counter(v for j, (g, v) in enumerate(members) if g == group and j != i)
        expected.append(min(others, key=lambda v: (-others[v], v)) if others else -1)
    assert most_elsewhere(groups, values).tolist() == expected


def said(ids: list[int], ends: list[int], spans: list[tuple[int, int, int]] = ()) -> FirstLabels:
    columns = [np.array([span[i] for span in spans], np.int64) for i in range(3)]
    return FirstLabels(
        np.array(ids, np.int32), NAMES, np.array(ends), FirstSpans(*columns, NAMES[:2])
    )


def test_majorities_are_of_a_doc() -> None:
    docs = [Doc(ENGLISH, words=words.split()) for words in ("a B A a", "a b", "b")]
    features = Featurizer(["u:first[0]", "u:doc_majority[0]", "u:doc_entity[0]"])
    (readings,) = features.readings(docs)
    first = said([0, 1, 2, 2, 1, 1, 0], [4, 6, 7], [(0, 1, 1), (2, 3, 0), (3, 4, 1), (4, 6, 0)])
    filled = fill(readings, features.plan, first)
    columns = [*features.plan.stacked.values()]
    assert [str(read) for read in features.stacked] == ["first", "doc_majority", "doc_entity"]
    assert filled.annotations[:, columns].T.tolist() == [
        [11, 12, 13, 13, 12, 12, 11],
        [13, 0, 11, 11, 0, 0, 0],
        [11, 0, 12, 11, 0, 0, 0],
    ]
    assert not readings.annotations[:, columns].any()


def test_a_first_stage_model_has_the_features_that_do_not_read_it() -> None:
    docs = [Doc(Vocab(), words=["x", "Y", "x"])]
    both, alone = Featurizer(TEMPLATES), Featurizer(["b:", "u:lower[0]", "*:lower[1]"])
    found, expected = both(docs), alone(docs)
    np.testing.assert_array_equal(found.hashes, expected.hashes)
    np.testing.assert_array_equal(found.unigram_columns, expected.unigram_columns)
    np.testing.assert_array_equal(found.bigram_columns, expected.bigram_columns)
    (readings,) = both.readings(docs)
    second = both.observe([fill(readings, both.plan, said([0, 1, 0], [3]))])
    assert second.hashes.shape == (3, len(TEMPLATES))
    assert set(found.hashes.ravel().tolist()) <= set(second.hashes.ravel().tolist())
    assert alone.plan.first_templates is alone.plan.templates
