"""Phrase lists: sources, and storage in a saved pipeline."""

from pathlib import Path
from typing import Any

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer

from ..support.feature_cases import check_saved
from ..support.golden import read_golden
from ..support.reference_features import hash_values
from ..support.toy import ENGLISH, blank_with, examples_of, make_sentences, pickled, train

KEY = 'phrase("places")[0]'
TEMPLATES = ["u:phrase(places)[0]"]


def signs(features: Featurizer, words: list[str]) -> list[str]:
    """Return the values of a phrase attribute at the words of a Doc."""
    names = {hash_values(KEY, sign): sign for sign in "BILU"} | {0: "-"}
    found = features([Doc(ENGLISH, words=words)]).hashes[:, 0].tolist()
    return [names[value] for value in found]


def places(phrases: Any, **settings: Any) -> Featurizer:
    return Featurizer(TEMPLATES, phrases={"places": phrases}, **settings)


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=5),
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=10),
)
def test_equals_the_reference(phrases, words):
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


def test_phrases_of_files_and_of_the_pipeline_s_tokens(tmp_path):
    path = tmp_path / "places.txt"
    path.write_bytes("\ufeffNew York\r\n\n  Århus \nÎle de Ré".encode())
    features = places(str(path))
    assert signs(features, ["île", "de", "ré", "århus", "new", "york"]) == list("BILUBL")
    path.write_bytes("Århus\rNew York\r".encode())  # of old Macintosh programs
    assert signs(places(str(path)), ["århus", "new", "york"]) == list("UBL")
    nlp = spacy.blank("en")
    features = places(["St. John's, Newfoundland"])
    features.initialize(nlp)
    words = [token.text for token in nlp("in St. John's, Newfoundland.")]
    assert words[2:4] == ["John", "'s"]
    assert signs(features, words) == list("-BIIIL-")


PHRASES = {"places": ["a"]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(
            ({"phrases": value}, r"\[SC132\].*phrases = .* is not valid")
            for value in (
                *("a.txt", {"places": 3}, {"places": ["a", 3]}, ["a"], {3: ["a"]}),
                {"places": {"path": "a.txt"}},
            )
        ),
        (
            {"phrases": PHRASES, "phrase_attr": "NORM"},
            r"\[SC133\].*'NORM' is not supported.*LOWER, ORTH, FOLD",
        ),
        (
            {"phrases": {"titles": ["Dr."]}},
            r"^\[SC131\] Template 1 of \[components.NAME.features\] templates, "
            r"'u:phrase\(places\)\[0\]'.*use one of: 'titles'\.$",
        ),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(SparseCRFError, match=message):
        Featurizer(TEMPLATES, **settings)


@pytest.mark.parametrize("initialize", [True, False])
def test_files_that_cannot_be_read(tmp_path, initialize):
    def read(path: Path | str) -> None:
        features = places(str(path))
        if initialize:
            features.initialize()
        else:
            features([Doc(ENGLISH, words=["a"])])

    (tmp_path / "latin.txt").write_bytes("Paris\nZürich\n".encode("latin1"))
    (tmp_path / "empty.txt").write_text("\n \n")
    for path, message in (
        (tmp_path / "missing.txt", r"\[SC134\].*missing\.txt, named in .*'places'"),
        (tmp_path, r"\[SC134\]"),
        ("a\0b", r"\[SC134\]"),
        (tmp_path / "latin.txt", r"\[SC135\] Line 2 of .*latin\.txt"),
        (tmp_path / "empty.txt", r"\[SC136\].*'places' is empty"),
    ):
        with pytest.raises(SparseCRFError, match=message):
            read(path)


def test_files_that_no_template_reads_are_not_read(tmp_path):
    features = Featurizer(["u:lower[0]"], phrases={"places": str(tmp_path / "missing")})
    with pytest.warns(SparseCRFWarning, match="SCW226.*'places'"):
        features.initialize()
    assert features.learnt == {}


def trained(path: Path) -> Language:
    """Train a pipeline with the phrases of a file."""
    path.write_text("w1 w2\nw3\n", encoding="utf8")
    nlp = blank_with(["b:", "u:lower[0]", *TEMPLATES], phrases={"places": str(path)})
    train(nlp, examples_of(nlp, make_sentences(30, seed=1)), 2)
    return nlp


def read_by(nlp: Language) -> list[list[int]]:
    doc = Doc(nlp.vocab, words=["w1", "w2", "w3"])
    return nlp.get_pipe("sparse_crf").features([doc]).hashes.tolist()


def test_saved_pipeline_needs_no_file(tmp_path):
    path = tmp_path / "places.txt"
    check_saved(trained(path), path, read_by, ["cfg", "model"])


@pytest.mark.parametrize("damaged", read_golden(__file__, "damaged_phrases.jsonl"))
def test_damaged_phrases(damaged):
    features = places(["a"])
    with pytest.raises(SparseCRFError, match=r"\[SC137\] The saved feature data"):
        features.restore(damaged)
    assert signs(features, ["a"]) == ["U"]


def typed(features: Featurizer, words: list[str]) -> list[Any]:
    """Return the marks, with types, of the words of a Doc."""
    doc = Doc(ENGLISH, words=words)
    numbers = features.readings([doc])[0].annotations[:, -1].tolist()
    (reader,) = features.token_readers
    marks = reader.texts([doc], dict(zip(numbers, range(len(doc)), strict=True)))
    return [{**marks, 0: "-"}[number] for number in numbers]


def test_types_and_folded_forms(tmp_path):
    """The longest phrase determines the type; an entry with two types has the first."""
    path = tmp_path / "names.tsv"
    path.write_text("São Paulo\tcity\nPaulo\tperson\nSAO PAULO FC\tclub\nPaulo\tcity\nÀ\n", "utf8")
    features = places(str(path), phrase_attr="FOLD")
    words = ["Sao", "paulo", "and", "SÃO", "Paulo", "fc", "a", "Paulo"]
    expected = ["B-city", "L-city", "-", "B-club", "I-club", "L-club", "U", "U-person"]
    assert typed(features, words) == expected
    assert typed(pickled(features), words) == expected
    for line in ("Bonn\tcity\t3\n", "\tcity\n"):
        path.write_text(line)
        with pytest.raises(SparseCRFError, match=r"\[SC135\] Line 1 .*more than one tab"):
            typed(places(str(path)), ["Bonn"])
