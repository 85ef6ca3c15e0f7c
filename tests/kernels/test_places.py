"""Absolute positions in templates, and values of positions outside the sequence."""

import copy
from collections.abc import Sequence

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.templates import Template, TokenTest, parse_template

from ..decoding.test_word_sums import random_docs, random_model
from ..features.reference_features import after, before, hash_values

# Without numba's compiler 64-bit products are numpy scalars, which warn when they wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

VOCAB = spacy.blank("en").vocab


def value_at(words: Sequence[str], t: int, place: str, boundaries: int | None) -> str | int:
    """Slow twin: what a test of `orth` reads, by what stands between its brackets."""
    number = int(place.lstrip("@"))
    at = t + number
    if place.startswith("@"):
        at = number - 1 if number > 0 else len(words) + number
    most = 10**9 if boundaries is None else boundaries + 1
    if at < 0:
        return before(min(-at, most))
    if at >= len(words):
        return after(min(at - len(words) + 1, most))
    return words[at]


offsets = st.integers(-6, 6)
places = offsets.map(str) | offsets.filter(bool).map("@{}".format)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), min_size=1, max_size=3),
    st.lists(st.tuples(places, places).filter(lambda pair: pair[0] != pair[1]), max_size=3),
    places,
    st.none() | st.integers(0, 7),
)
def test_equals_the_slow_twin(
    sentences: list[list[str]], pairs: list[tuple[str, str]], single: str, boundaries: int | None
) -> None:
    distinct = {frozenset(pair): pair for pair in pairs}.values()
    templates = [f"u:orth[{single}]", *(f"b:orth[{p}]|orth[{q}]" for p, q in distinct)]
    docs = [Doc(VOCAB, words=words) for words in sentences]
    hashes = Featurizer(templates, boundaries=boundaries)(docs).hashes
    expected = []
    for words in sentences:
        for t in range(len(words)):
            row = []
            for template in map(parse_template, templates):
                read = [str(test)[len("orth[") : -1] for test in template.tests]
                values = [value_at(words, t, place, boundaries) for place in read]
                row.append(hash_values(template.key, *values))
            expected.append(row)
    assert hashes.tolist() == expected


def test_absolute_tests_parse() -> None:
    template = parse_template("u: lower [ @ -1 ] | suffix(2)[@+1]|lower[-1]")
    assert template == Template(
        "u",
        (
            TokenTest(-1, "lower"),
            TokenTest(-1, "lower", absolute=True),
            TokenTest(1, "suffix", 2, absolute=True),
        ),
    )
    assert str(template) == "u:lower[-1]|lower[@-1]|suffix(2)[@1]"
    assert parse_template(str(template)) == template


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("u:lower[@]", 10, "a place, a whole number from -1000 to 1000; found ']'"),
        ("u:lower[@0]", 10, "a place, 1 for the first token or -1 for the last; found '0'"),
        ("u:lower[@1001]", 10, "a place, a whole number from -1000 to 1000; found '1001'"),
        ("u:lower[1@]", 10, "']'; found '@'"),
        ("u:lower[@1]|lower[@1]", 13, "a test other than lower[@1], which"),
    ],
)
def test_malformed(text: str, position: int, expected: str) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC101\] ") as caught:
        parse_template(text)
    assert f"at character {position}: expected {expected}" in str(caught.value)


def test_absolute_positions_stop_at_sentence_bounds() -> None:
    doc = Doc(VOCAB, words=list("abcde"), sent_starts=[True, False, True, False, False])
    found = Featurizer(["u:orth[@1]", "u:orth[@-1]", "u:orth[@3]"])([doc]).hashes.tolist()
    first, last = (
        [hash_values("orth[@1]", x) for x in "ac"],
        [hash_values("orth[@-1]", x) for x in "be"],
    )
    third = [hash_values("orth[@3]", after(1)), hash_values("orth[@3]", "e")]
    rows = [[first[i], last[i], third[i]] for i in (0, 1)]
    assert found == [rows[0]] * 2 + [rows[1]] * 3


@pytest.mark.parametrize("boundaries", [None, 0, 1])
def test_decoding_with_kept_sums_of_words(boundaries: int | None) -> None:
    docs = random_docs(30, 3)
    templates = ["u:lower[@1]", "u:lower[@-1]|is_title[@-1]", "*:lower[-2]", "b:lower[@2]|orth[0]"]
    features = Featurizer([*templates, "u:lower[3]"], boundaries=boundaries)
    observations = features(docs)
    decoder = Decoder(random_model(observations, 5, 3))
    (part,) = features.readings(docs)
    assert decoder.viterbi(part).tolist() == decoder.viterbi(observations).tolist()
    np.testing.assert_allclose(decoder.marginals(part), decoder.marginals(observations), atol=1e-12)
    np.testing.assert_array_equal(copy.deepcopy(features)(docs).hashes, observations.hashes)


@pytest.mark.parametrize("value", [-1, True])
def test_boundaries_are_checked(value: object) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC150\] .*boundaries = .* from 0"):
        Featurizer(boundaries=value)  # type: ignore[arg-type]
