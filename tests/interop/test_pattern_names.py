"""Feature names of pattern files: as printed by the other programs, with braces."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from spacy_sparsecrf.features.naming import templates_by_kind
from spacy_sparsecrf.interop.patterns.featurizer import CRFPPTemplates, WapitiPatterns
from spacy_sparsecrf.model.names import (
    read_feature,
    read_hash,
    read_name,
    read_pattern_name,
    write_pattern_name,
)

from ..model.names_cases import names_of
from .reference_patterns import Outside, crfpp_outside, expand, lines_of, wapiti_outside
from .test_patterns import COLUMNS, EVERYTHING, SENTENCES, docs_of

texts = st.text(st.characters(codec="utf-8")) | st.text(st.sampled_from("\\\t\n\r|=^$01{} au"))


def without_braces(name: str) -> str:
    """Return a name in the notation of the other program."""
    literals, values = read_pattern_name(name)
    return "".join(x + y for x, y in zip(literals, [*values, ""], strict=True))


@given(st.sampled_from("ub*"), st.lists(texts, min_size=1).filter(lambda x: len(x) % 2))
def test_a_name_is_read_as_it_was_written(kind: str, pieces: list[str]):
    pieces[0] = kind + pieces[0]
    name = write_pattern_name(pieces[::2], pieces[1::2])
    assert read_pattern_name(name) == (pieces[::2], pieces[1::2])
    assert read_feature(name).values == pieces[1::2]
    assert not set("\t\n\r") & set(name)
    assert read_hash(name) is None
    with pytest.raises(ValueError):
        read_name(name)


@pytest.mark.parametrize("name", ["u{", "u}", "u{a", "u{{a}}", "u{a}}", "u\\", "u|", "x{a}", ""])
def test_what_is_no_name_is_refused(name: str):
    with pytest.raises(ValueError):
        read_feature(name)


CRFPP = "U0:%x[-8,0]/%x[8,1]\nU1=%x[0,0]\nU2:%x[0,0]|{%x[-1,1]}\nB%x[0,1]\nB"


@pytest.mark.parametrize(
    ("make", "text", "outside"),
    [(WapitiPatterns, EVERYTHING, wapiti_outside), (CRFPPTemplates, CRFPP, crfpp_outside)],
)
def test_names_are_the_texts_of_the_reference(make: Any, text: str, outside: Outside):
    rows = names_of(make(text=text, columns=COLUMNS), docs_of(SENTENCES), "docs")
    assert [[without_braces(name) for name in row] for row in rows] == [
        [expand(line, rows, t, outside) for line in lines_of(text)]
        for rows in SENTENCES
        for t in range(len(rows))
    ]


def test_names_of_columns_of_all_kinds():
    doc = Doc(Vocab(), words=["Ab", "c", "d"], spaces=[True, False, False], ents=["B-X", "I-X", ""])
    if not Token.has_extension("pattern_named"):
        Token.set_extension("pattern_named", default=None)
    doc[0]._.pattern_named, doc[1]._.pattern_named = "Word", -12
    doc.spans["found"] = [Span(doc, 1, 3, label="Y")]
    columns = ["_.pattern_named", "span(found)", "glued", "ent_iob", "is_title", "length"]
    text = 'u:%X[0,0]\nu:%m[0,1,"^."]\nu:%x[0,2]\nu:%x[0,3]\nu:%t[0,3,"3"]\nu:%x[-1,4]%x[0,5]'
    rows = names_of(WapitiPatterns(text=text, columns=columns), [doc])
    assert rows == [
        ["u:{word}", "", "u:{0}", "u:{3}", "u:{true}", "u:{_x-1}{2}"],
        ["u:{-12}", "u:{B}", "u:{1}", "u:{1}", "u:{false}", "u:{1}{1}"],
        ["", "u:{I}", "u:{0}", "", "", "u:{0}{1}"],
    ]


def test_empty_texts_and_pairs_of_patterns():
    features = WapitiPatterns(text='u:%m[0,0,"x*"]%x[0,0]')
    assert names_of(features, [Doc(Vocab(), words=["a"])]) == [["u:{}{a}"]]
    assert templates_by_kind(WapitiPatterns(text="u:%x[0,0]\n*:%x[0,0]\nb")) == {
        "u": {'["u:", ""]', '["*:", ""]'},
        "b": {'["*:", ""]', '["b"]'},
    }
