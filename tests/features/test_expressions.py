"""Regular expressions in templates: syntax, matches, and errors."""

import sys

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features.attributes import expressions
from spacy_sparsecrf.pipeline.features.attributes.expressions import ExpressionReader, find_fault
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer

from ..support.reference_features import hash_values
from ..support.toy import blank_with, train, vocab_of

CATASTROPHE = "^(a|aa)+$"
VICTIM = "a" * 40 + "!"


@pytest.mark.parametrize(
    ("expression", "at"),
    [("(a", 2), ("a)", 1), ("[a", 2), ("*a", 0), (r"\p{Nonsense}", 12), ("(?P<n>a)(?P=m)", 11)],
)
def test_malformed_expression(expression, at):
    text = f'u:lower[0] | regex("{expression}")[0]'
    with pytest.raises(SparseCRFError) as caught:
        Featurizer(["b:", text])
    start = f"[SC111] Template 2 of [components.NAME.features] templates, {text!r}, has a malformed"
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith(f", at character {21 + at} of the template. Correct it.")


@pytest.mark.filterwarnings("ignore:.*SCW220")
def test_configs_keep_dollars(tmp_path):
    # spaCy doubles them each time it saves and loads a config.
    text = 'u:match("[$]?[0-9]+$")[0]|phrase("a$b")[0]|ngrams(3,3,"^$")[0]'
    nlp = blank_with([text], phrases={"a$b": ["12", "$12"]})
    words = ["12", "$12", "a"]
    gold = {"words": words, "tags": ["N", "N", "A"]}
    examples = [Example.from_dict(Doc(nlp.vocab, words=words), gold)]
    train(nlp, examples, 1)
    expected = nlp.get_pipe("sparse_crf").features([Doc(nlp.vocab, words=words)]).hashes
    assert expected.any()
    for i in range(3):
        nlp.to_disk(tmp_path / str(i))
        nlp = spacy.load(tmp_path / str(i))
        found = nlp.get_pipe("sparse_crf").features([Doc(nlp.vocab, words=words)]).hashes
        assert (found == expected).all()


@given(st.text("a()[]{}*+?|\\^$-<>=!:#,0189PpLu&~", max_size=12))
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_any_expression_is_compiled_or_faulty(text):
    fault = find_fault(text)
    if fault is None:
        ExpressionReader(text, text=True, number=1, template="")("word 1")
    else:
        reason, at = fault
        assert reason
        assert 0 <= at <= len(text)


DOLLAR, LARGE = "write [$] for a dollar sign", "more than 100000 items"


@pytest.mark.parametrize(
    ("expression", "reason", "at"),
    [
        (r"\$", DOLLAR, 0),
        (r"a\\\$b", DOLLAR, 3),
        (r"\d\$$", DOLLAR, 2),
        (r"^\\$|[$]|a$", None, None),
        (r"(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:a{1000}){0}|(?:x{10}){100}", None, None),
        ("(" * 20_000, "levels of brackets", None),
        ("a{1000000}", LARGE, None),
        ("(?:(?:(?:[a-z]{1000}){1000}){1000}){1000}", LARGE, None),
        (r"(?:(\d\)[)\]]){1000,2000}x){1000}", LARGE, None),
        ("a{99999999999}", LARGE, None),
    ],
)
def test_escaped_dollars_and_expressions_too_large_for_the_compiler_are_faults(
    expression, reason, at
):
    fault = find_fault(expression)
    assert (fault is None) == (reason is None)
    if fault is not None:
        assert reason in fault[0] and at in (fault[1], None)


def test_package_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(SparseCRFError) as caught:
        Featurizer(["u:lower[0]", 'u:match("a")[0]'])
    assert str(caught.value).startswith("[SC110] Template 2 of [components.NAME.features]")
    assert "pip install 'FILE.whl[regex]'" in str(caught.value)


def test_each_word_is_searched_once(monkeypatch):
    seen: list[str] = []
    search = ExpressionReader.__call__

    def count(self: ExpressionReader, word: str) -> str | int:
        seen.append(word)
        return search(self, word)

    monkeypatch.setattr(ExpressionReader, "__call__", count)
    features = Featurizer(['u:match("[a-z]")[0]', 'u:match("[a-z]")[1]|lower[0]'])
    vocab = vocab_of()
    for _ in range(2):
        features([Doc(vocab, words=["one", "two", "one"]), Doc(vocab, words=["two"])])
    assert sorted(seen) == ["one", "two"]


def test_catastrophe_is_stopped(monkeypatch):
    monkeypatch.setattr(expressions, "SECONDS", 0.05)
    vocab = vocab_of()
    text = f"u:regex('{CATASTROPHE}')[0]"
    features = Featurizer(["u:lower[0]", text])
    good = Doc(vocab, words=["one", "two"])
    before = features([good]).hashes
    for _ in range(2):
        with pytest.raises(SparseCRFError) as caught:
            features([Doc(vocab, words=["three", VICTIM])])
        assert str(caught.value).startswith("[SC112] The regular expression of template 2 of")
        assert repr(text) in str(caught.value)
        assert repr(VICTIM) in str(caught.value)
    # The cached results of earlier words are kept, and correct.
    assert (features([good]).hashes == before).all()
    expected = [hash_values("lower[0]", "three")]
    assert features([Doc(vocab, words=["three"])]).hashes[:, 0].tolist() == expected


@pytest.mark.parametrize("letters", [800, 8000])
def test_long_texts_are_given_up_where_short_ones_are_not(letters, monkeypatch):
    monkeypatch.setattr(expressions, "SECONDS", 0.05)
    # With a plain letter at the end, `regex` would find at once that there is no match.
    expression = ExpressionReader("a*" * 9 + "[bc]", text=False, number=1, template="u:")
    assert expression("aaab") == 1
    with pytest.raises(SparseCRFError, match="SC112"):
        expression("a" * letters)
    # Easy words together may take longer than a single hard word.
    monkeypatch.setattr(expressions, "SECONDS", 0.2)
    expression = ExpressionReader("a.*b.*c$", text=False, number=1, template="")
    assert sum(expression("abc" * 2000) for _ in range(50)) == 50
