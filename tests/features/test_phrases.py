"""Phrase lists: what matches, where they come from, and that a saved pipeline has them."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer

from ..toy import examples_of, make_sentences, run_steps
from .reference_features import before, hash_values

# Without numba's compiler 64-bit products are numpy scalars, which warn when they wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

VOCAB = spacy.blank("en").vocab
KEY = 'phrase("places")[0]'
TEMPLATES = ["u:phrase(places)[0]"]


def signs(features: Featurizer, words: list[str]) -> list[str]:
    """What a phrase test reads at the words of a Doc."""
    names = {hash_values(KEY, sign): sign for sign in "BILU"} | {0: "-"}
    found = features([Doc(VOCAB, words=words)]).hashes[:, 0].tolist()
    return [names[value] for value in found]


def places(phrases: Any, **settings: Any) -> Featurizer:
    return Featurizer(TEMPLATES, phrases={"places": phrases}, **settings)


# Matching ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in New York City now", "-BIL-"),
        ("new york", "BL"),
        ("Paris , PARIS", "U-U"),
        ("York City", "--"),
        ("New York New York", "BLBL"),
        ("City of New York City", "BIIL-"),
        ("nothing", "-"),
    ],
)
def test_matches(text: str, expected: str) -> None:
    phrases = ["New York", "new york city", "Paris", "  ", "City of New York", "Paris"]
    assert "".join(signs(places(phrases), text.split())) == expected


def test_matches_of_the_very_words() -> None:
    features = places(["New York"], phrase_attr="ORTH")
    assert signs(features, ["New", "York", "new", "york"]) == ["B", "L", "-", "-"]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=5),
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=10),
)
def test_equals_the_slow_twin(phrases: list[list[str]], words: list[str]) -> None:
    expected = ["-"] * len(words)
    matches = [
        (len(phrase), -i)
        for phrase in phrases
        for i in range(len(words))
        if words[i:][: len(phrase)] == phrase
    ]
    for size, i in sorted(set(matches), reverse=True):
        if expected[-i : size - i] == ["-"] * size:
            inside = ["B", *"I" * (size - 2), "L"] if size > 1 else ["U"]
            expected[-i : size - i] = inside
    assert signs(places([" ".join(phrase) for phrase in phrases]), words) == expected


def test_several_lists_in_a_conjunction() -> None:
    lists = {"a": ["x y"], "b": ["y"]}
    docs = [Doc(VOCAB, words=["x", "y"]), Doc(VOCAB, words=["y"])]
    key = 'phrase("a")[-1]|phrase("b")[0]'
    found = Featurizer(["u:phrase(b)[0] | phrase(a)[-1]"], phrases=lists)(docs).hashes[:, 0]
    assert found.tolist() == [0, hash_values(key, "B", "U"), hash_values(key, before(1), "U")]


def test_docs_of_several_vocabs() -> None:
    docs = [Doc(spacy.blank(lang).vocab, words=["Paris", "x"]) for lang in ("en", "fr")]
    found = places(["paris"])(docs).hashes[:, 0] != 0
    assert found.tolist() == [True, False, True, False]


# Sources -------------------------------------------------------------------------------------


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "places.txt"
    path.write_bytes("\ufeffNew York\r\n\n  Århus \nÎle de Ré".encode())
    features = places(str(path))
    assert signs(features, ["île", "de", "ré", "århus", "new", "york"]) == list("BILUBL")


@pytest.mark.usefixtures("exceptions_of_the_tokenizer")
def test_tokens_are_those_of_the_pipeline() -> None:
    nlp = spacy.blank("en")
    features = places(["St. John's, Newfoundland"])
    features.initialize(nlp)
    words = [token.text for token in nlp("in St. John's, Newfoundland.")]
    assert words[2:4] == ["John", "'s"]
    assert signs(features, words) == list("-BIIIL-")


@pytest.mark.parametrize(
    "value", ["places.txt", {"places": 3}, {"places": ["a", 3]}, ["a"], {3: ["a"]}]
)
def test_phrases_are_no_mapping_of_lists(value: Any) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC132\].*phrases = .* is not valid"):
        Featurizer(TEMPLATES, phrases=value)


def test_phrase_attr_is_not_known() -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC133\].*'NORM' is not known.*LOWER, ORTH"):
        places(["a"], phrase_attr="NORM")


def test_list_is_not_known() -> None:
    with pytest.raises(SparseCRFError) as caught:
        Featurizer(["b:", *TEMPLATES], phrases={"titles": ["Dr."]})
    start = "[SC131] Template 2 of [components.NAME.features] templates, 'u:phrase(places)[0]'"
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith("Known: 'titles'.")


@pytest.mark.parametrize("initialize", [True, False])
def test_files_that_cannot_be_read(tmp_path: Path, initialize: bool) -> None:
    def read(path: Path | str) -> None:
        features = places(str(path))
        if initialize:
            features.initialize()
        else:
            features([Doc(VOCAB, words=["a"])])

    with pytest.raises(SparseCRFError, match=r"\[SC134\].*missing\.txt, named in .*'places'"):
        read(tmp_path / "missing.txt")
    with pytest.raises(SparseCRFError, match=r"\[SC134\]"):
        read(tmp_path)
    with pytest.raises(SparseCRFError, match=r"\[SC134\]"):
        read("a\0b")
    path = tmp_path / "latin.txt"
    path.write_bytes("Paris\nZürich\n".encode("latin1"))
    with pytest.raises(SparseCRFError, match=r"\[SC135\] Line 2 of the file .*latin\.txt"):
        read(path)
    path.write_text("\n \n")
    with pytest.raises(SparseCRFError, match=r"\[SC136\].*'places' has no phrases"):
        read(path)


def test_files_that_no_template_reads_are_not_read(tmp_path: Path) -> None:
    features = Featurizer(["u:lower[0]"], phrases={"places": str(tmp_path / "missing")})
    features.initialize()
    assert features.learnt == {}


def test_failure_leaves_the_phrases_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "places.txt"
    path.write_text("Paris")
    features = places(str(path))
    features.initialize()
    path.unlink()
    with pytest.raises(SparseCRFError, match=r"\[SC134\]"):
        features.initialize()
    assert signs(features, ["Paris"]) == ["U"]


# Saved pipelines -----------------------------------------------------------------------------


def trained(path: Path) -> Language:
    """A pipeline that was trained with the phrases of a file."""
    path.write_text("w1 w2\nw3\n", encoding="utf8")
    nlp = spacy.blank("en")
    features = {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": ["b:", "u:lower[0]", "u:phrase(places)[0]"],
        "phrases": {"places": str(path)},
    }
    nlp.add_pipe("sparse_crf", config={"features": features, "n_threads": 1})
    examples = examples_of(nlp, make_sentences(30, seed=1))
    nlp.initialize(lambda: examples)
    run_steps(nlp, examples, 2)
    return nlp


def test_saved_pipeline_needs_no_file(tmp_path: Path) -> None:
    path = tmp_path / "places.txt"
    nlp = trained(path)
    nlp.to_disk(tmp_path / "pipeline")
    as_bytes = nlp.to_bytes()
    doc = Doc(nlp.vocab, words=["w1", "w2", "w3"])
    expected = nlp.get_pipe("sparse_crf").features([doc]).hashes.tolist()
    path.unlink()
    loaded = spacy.load(tmp_path / "pipeline")
    from_bytes = type(nlp).from_config(nlp.config).from_bytes(as_bytes)
    for other in (loaded, from_bytes, copy.deepcopy(nlp)):
        assert other.get_pipe("sparse_crf").features([doc]).hashes.tolist() == expected
    again = tmp_path / "again"
    loaded.to_disk(again)
    for file in ("cfg", "model"):
        first = (tmp_path / "pipeline" / "sparse_crf" / file).read_bytes()
        assert (again / "sparse_crf" / file).read_bytes() == first


def test_failed_initialization_leaves_the_trained_component(tmp_path: Path) -> None:
    path = tmp_path / "places.txt"
    nlp = trained(path)
    component = nlp.get_pipe("sparse_crf")
    weights, before_it = component.model.to_bytes(), component.features.learnt
    path.write_text("others")
    with pytest.raises(SparseCRFError, match=r"\[SC217\]"):
        component.initialize(lambda: [], nlp=nlp)
    assert component.features.learnt == before_it
    assert component.model.to_bytes() == weights


@pytest.mark.parametrize(
    "damaged",
    [
        [],
        {"phrases": {}},
        {"phrases": []},
        {"phrases": {"places": "a"}},
        {"phrases": {"places": [[]]}},
        {"phrases": {"places": [[1]]}},
        {"phrases": {"places": [["a"]]}, "vector_width": -1},
        {"phrases": {"places": [["a"]]}, "vector_width": "3"},
    ],
)
def test_damaged_phrases(damaged: Any) -> None:
    features = places(["a"])
    with pytest.raises(SparseCRFError, match=r"\[SC137\] What was saved with the pipeline"):
        features.restore(damaged)
    assert signs(features, ["a"]) == ["U"]


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))],  # noqa: S301
    ids=["deepcopy", "copy", "pickle"],
)
def test_copies_have_the_phrases(
    tmp_path: Path, copied: Callable[[Featurizer], Featurizer]
) -> None:
    path = tmp_path / "places.txt"
    path.write_text("Paris")
    features = places(str(path))
    features.initialize()
    path.unlink()
    assert signs(copied(features), ["Paris"]) == ["U"]
