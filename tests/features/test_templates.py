"""The template language: parsing, and refusals with their position."""

from typing import Any

import pytest
import regex
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import load_config

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features.attributes.attribute import KeyedAttribute
from spacy_sparsecrf.pipeline.features.attributes.clusters import Cluster
from spacy_sparsecrf.pipeline.features.attributes.expressions import Expression
from spacy_sparsecrf.pipeline.features.attributes.extensions import Extension, Real
from spacy_sparsecrf.pipeline.features.attributes.ngrams import Ngrams
from spacy_sparsecrf.pipeline.features.attributes.table import ATTRIBUTES
from spacy_sparsecrf.pipeline.features.attributes.word_vectors import BinnedVector, RealVector
from spacy_sparsecrf.pipeline.features.attributes.words import Affix
from spacy_sparsecrf.pipeline.features.defaults import (
    DEFAULT_TEMPLATES,
    ENTITY_TEMPLATES,
    TEMPLATE_SETS,
)
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.templates import (
    LIMIT,
    PlacedAttribute,
    Template,
    parse_template,
    parse_templates,
    windows,
)

from ..support.golden import read_golden
from ..support.toy import blank_with, docs_of, examples_of, make_sentences, tags_of, train


@st.composite
def placed_attributes(draw: st.DrawFn) -> PlacedAttribute:
    name = draw(st.sampled_from([*ATTRIBUTES]))
    family = ATTRIBUTES[name]
    offset = draw(st.integers(-LIMIT, LIMIT))
    if issubclass(family, Affix):
        read = family(name, draw(st.integers(1, LIMIT)))
    elif issubclass(family, Expression):
        read = family(name, draw(patterns))
    elif issubclass(family, KeyedAttribute):
        read = family(name, draw(names | words))
    elif issubclass(family, Extension | Real):
        read = family(name, draw(words))
    elif issubclass(family, BinnedVector):
        bins = draw(st.just(0) | st.integers(2, 100))
        read = family(name, bins) if bins else RealVector(name)
    elif issubclass(family, Cluster):
        read = family(name, draw(st.integers(0, 64)), draw(names))
    elif issubclass(family, Ngrams):
        low, high = sorted(draw(st.tuples(st.integers(1, 10), st.integers(1, 10))))
        read = family(name, low, draw(st.sampled_from(["", "^$", '""', "()"])), high)
    else:
        read = family(name)
    return PlacedAttribute(offset, read)


characters = st.characters(exclude_categories=["Cs"], exclude_characters="$")
patterns = st.text(characters, min_size=1).map(regex.escape) | st.sampled_from(
    [r"\d", '"', "'", r"\\\\", '["]', "(?i)a|b", " a ", r"\p{Lu}", "\n"]
)
names = st.text(characters, min_size=1).filter(lambda text: "\\" not in text)
words = st.text("ab_1éß", min_size=1)


@pytest.mark.parametrize(("text", "canonical", "argument"), read_golden(__file__, "parsed.jsonl"))
def test_parses(text, canonical, argument):
    """Canonical text names every part; argument: of the last attribute."""
    template = parse_template(text)
    assert str(template) == canonical
    assert parse_template(canonical) == template
    assert argument is None or template.attributes[-1].read.pattern == argument


@given(st.sampled_from("ub*"), st.lists(placed_attributes(), unique=True, max_size=4))
def test_canonical_text_parses_to_itself(kind, tests):
    template = Template(kind, tuple(sorted(tests)))
    assert parse_template(str(template)) == template


PLACE = "Template 2 of [components.NAME.features] templates, "


@pytest.mark.parametrize(
    ("text", "position", "expected", "found"), read_golden(__file__, "malformed.jsonl")
)
def test_malformed(text, position, expected, found):
    """The message reports the expected and the found text at a character position."""
    with pytest.raises(SparseCRFError) as caught:
        parse_templates(["b:", text])
    what = f"{text!r}, is malformed at character {position}: expected {expected}"
    assert str(caught.value).startswith(f"[SC101] {PLACE}{what}")
    assert str(caught.value).endswith(f"; found {found}. Correct the template." if found else ".")


def test_numbers_and_places_that_are_refused():
    with pytest.raises(SparseCRFError, match=r"\[SC101\].*an offset"):
        parse_template(f"u:lower[{'9' * 5000}]")  # too long for Python
    twice = r"character 13: expected an attribute other than lower\[@1\]"
    with pytest.raises(SparseCRFError, match=twice):
        parse_template("u:lower[@1]|lower[@1]")
    values: list[Any] = [-1, True]
    for value in values:
        with pytest.raises(SparseCRFError, match=r"\[SC150\] .*boundaries = .* from 0"):
            Featurizer(boundaries=value)


@pytest.mark.parametrize(("value", "message"), read_golden(__file__, "refused_lists.jsonl"))
def test_lists_that_are_refused(value, message):
    with pytest.raises(SparseCRFError, match=message):
        parse_templates(value)


@pytest.mark.parametrize(
    ("first", "second", "conjoined"), read_golden(__file__, "repeated_templates.jsonl")
)
def test_repeated(first, second, conjoined):
    with pytest.raises(SparseCRFError) as caught:
        parse_templates([first, "u:shape[0]", second])
    assert str(caught.value) == (
        f"[SC104] Template 3 of [components.NAME.features] templates, {second!r}, repeats "
        f"template 1, {first!r}: both are the same feature of {conjoined}. Remove one."
    )


MINE = "u:_.mine[0]"


# Families: the sets of Lavergne et al. (2010), section 5.1.1


def texts_of_windows(word: str, t: int, n: int, variant: str) -> list[str]:
    return [word[t + min(window, default=0) :][: len(window)] for window in windows(n, variant)]


def test_example_of_the_paper():
    """Position 2 of "lemma", counted from 1."""
    assert sorted(texts_of_windows("lemma", 1, 3, "")) == ["", "e", "lem"]
    assert texts_of_windows("lemma", 1, 3, "-") == ["lem"]
    assert sorted(texts_of_windows("lemma", 1, 3, "+")) == ["", "e", "em", "le", "lem"]
    assert sorted(texts_of_windows("lemma", 1, 3, "++")) == ["", "e", "em", "l", "le", "lem", "m"]


def test_all_templates_together_read_a_bounded_number_of_attributes():
    parsed = Featurizer(["u:ngrm(45,lower)++", "b:"]).parsed
    assert sum(len(template.attributes) for template in parsed) == 16_215
    message = r"\[SC139\].* read 16411 attributes .* up to template 3, 'u:pos.* limit is 16384"
    with pytest.raises(SparseCRFError, match=message):
        Featurizer(["u:ngrm(45,lower)++", "u:ngrm(99,tag)-", "u:ngrm(97,pos)-"])


def test_a_family_is_all_its_templates():
    (first, *others) = parse_templates(["u:tag[0]", "*: ngrm ( 3 , suffix(2) ) +", "b:tag[@1]"])
    assert str(first) == "u:tag[0]"
    assert [*map(str, others)] == [
        "*:",
        "*:suffix(2)[0]",
        "*:suffix(2)[-1]|suffix(2)[0]",
        "*:suffix(2)[0]|suffix(2)[1]",
        "*:suffix(2)[-1]|suffix(2)[0]|suffix(2)[1]",
        "b:tag[@1]",
    ]
    assert [template.number for template in others] == [2, 2, 2, 2, 2, 3]
    assert Featurizer(["b:ngrm(1,orth)-"]).templates == ("b:ngrm(1,orth)-",)


def test_a_feature_is_added_to_a_set_in_one_entry_and_a_set_leaves_out_what_the_list_has():
    templates = [*map(str, parse_templates(["@entities", "@clusters(brown)", "@stacking", MINE]))]
    assert templates[-1] == MINE
    assert templates[: len(ENTITY_TEMPLATES)] == [*ENTITY_TEMPLATES]
    assert {'u:cluster("brown",4)[0]', "u:first[0]"} < {*templates}
    for texts in (["@tags", "*:lower[0]"], ["*: lower[0]", "@tags", "@tags_large"]):
        templates = [*map(str, parse_templates(texts))]
        assert templates.count("*:lower[0]") == 1 and "u:lower[0]" not in templates
        assert set(DEFAULT_TEMPLATES) - {"u:lower[0]"} < set(templates)


@pytest.mark.parametrize(("text", "close"), read_golden(__file__, "unknown_sets.jsonl"))
def test_an_unknown_set_is_refused_with_the_closest(text, close):
    with pytest.raises(SparseCRFError) as caught:
        parse_templates(["b:", text])
    message = str(caught.value)
    assert message.startswith(f"[SC106] {PLACE}{text!r}")
    assert f"Did you mean {close}?" in message
    assert "Use one of: @tags, @tags_large, @entities, @strings, @chunks" in message


def test_a_saved_pipeline_has_its_sets_written_out(monkeypatch, tmp_path):
    nlp = blank_with(["@tags", "u:lower[3]"])
    train(nlp, examples_of(nlp, make_sentences(20, 1)), 3)
    nlp.to_disk(tmp_path)
    block = load_config(tmp_path / "config.cfg")["components"]["sparse_crf"]["features"]
    assert block["templates"] == [*DEFAULT_TEMPLATES, "u:lower[3]"]
    monkeypatch.setitem(TEMPLATE_SETS, "tags", ("b:",))
    both = (spacy.load(tmp_path), nlp)
    found = [tags_of([*each.pipe(docs_of(each, make_sentences(10, 2)))]) for each in both]
    assert found[0] == found[1]
