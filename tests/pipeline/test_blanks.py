"""Blanks between words change nothing: entities, tags, probabilities, training."""

import random
from functools import partial
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_sparsecrf.crf.corpus.blanks import words_of
from spacy_sparsecrf.tools.pages.rendering import render

from ..support.toy import STEMS, blank_with, examples_of, train

TEXTS = [
    ("Send the form to Ada Nowak in Lund.", [("Ada Nowak", "PER"), ("Lund", "LOC")]),
    ("Ivo Marsh sold it in Port Erin today.", [("Ivo Marsh", "PER"), ("Port Erin", "LOC")]),
    ("Ask Una about the Oslo office.", [("Una", "PER"), ("Oslo", "LOC")]),
]
BLANKS = ["  ", "\u00a0", " \u00a0 ", "\t", " \u200b ", "\u2003", " \t\u00ad "]
BREAKS = ["\n", " \r\n", "\r", "\n ", "\u2028"]


@pytest.mark.parametrize("blank", [*BLANKS, *BREAKS, "\x1c", "\u2066\ufeff"], ids=ascii)
def test_words_are_the_tokens_with_a_character_that_readers_see(blank):
    words = ["a", "b\u00adc", "\u200bé ", "\U0001f600", "—"]
    doc_of = partial(Doc, spacy.blank("xx").vocab)
    assert words_of(doc_of(words=[blank, *words, blank])).tolist() == [1, 2, 3, 4, 5]
    assert words_of(doc_of(words=words)).tolist() == [*range(5)]
    assert words_of(doc_of(words=["a", "b"])).tolist() == [0, 1]
    assert words_of(doc_of()).tolist() == words_of(doc_of(words=[blank])).tolist() == []


def spans_in(text: str, named: list[tuple[str, str]]) -> list[tuple[int, int, str]]:
    return [(text.index(own), text.index(own) + len(own), label) for own, label in named]


def trained(*pairs: tuple[str, list[tuple[int, int, str]]], **config: object) -> Language:
    nlp = blank_with(factory="sparse_crf_ner", **config)
    examples = [Example.from_dict(nlp.make_doc(text), {"entities": spans}) for text, spans in pairs]
    nlp.initialize(lambda: examples)
    for _ in range(4):
        nlp.update(examples)
    return nlp


def entities_of(doc: Doc) -> list[tuple[str, str]]:
    words = [[t.text.strip("\u200b\u00ad ") for t in e] for e in doc.ents]
    names = [" ".join(filter(str.strip, own)) for own in words]
    return list(zip(names, [e.label_ for e in doc.ents], strict=True))


@pytest.fixture(scope="module", params=["IOB2", "BILUO"])
def nlp(request) -> Language:
    target = {"@crf_targets": "spacy_sparsecrf.Entities.v1", "scheme": request.param}
    pairs = [(text, spans_in(text, named)) for text, named in TEXTS]
    return trained(*(pairs * 5), target=target, decoding={"scores": True}, l1=0.05, l2=0.1)


@pytest.mark.parametrize("blanks", BLANKS + BREAKS)
def test_texts_with_other_blanks_have_the_same_entities_and_probabilities(nlp, blanks):
    for text, named in TEXTS:
        plain, other = nlp(text), nlp(f"{blanks}{text.replace(' ', blanks)}{blanks}")
        assert entities_of(plain) == named
        assert entities_of(other) == named
        assert [e._.ents_score for e in other.ents] == [e._.ents_score for e in plain.ents]
        assert all(e.text.strip() == e.text for e in other.ents)


@pytest.mark.parametrize("unseen", ["\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff"])
def test_characters_that_nobody_sees_change_nothing(nlp, unseen):
    for text, named in TEXTS:
        doc = nlp(text.replace("a", f"a{unseen}").replace("o", f"o{unseen}"))
        assert [(e.text.replace(unseen, ""), e.label_) for e in doc.ents] == named


def test_composed_and_decomposed_characters_are_the_same_word():
    pairs = [("Zoé Müller lives here.", [(0, 10, "PER")]), ("He lives here too.", [])] * 5
    found = trained(*pairs)("Zoe\u0301 Mu\u0308ller lives here.").ents
    assert [e.text for e in found] == ["Zoe\u0301 Mu\u0308ller"]


def test_all_that_is_told_of_a_doc_ignores_blanks(nlp):
    pipe = nlp.get_pipe("sparse_crf_ner")
    plain = nlp.make_doc(TEXTS[1][0])
    doc = nlp.make_doc(TEXTS[1][0].replace(" ", "  "))
    words = [t.i for t in doc if not t.is_space]
    assert len(words) == len(plain) < len(doc)
    marginals = pipe.marginals(doc)
    np.testing.assert_array_equal(marginals[words], pipe.marginals(plain))
    assert marginals.sum() == pytest.approx(len(plain))
    assert pipe.uncertainty([doc]) == pipe.uncertainty([plain])
    for (labels, p), (own, q) in zip(pipe.nbest(doc, 3), pipe.nbest(plain, 3), strict=True):
        assert [labels[i] for i in words] == own and p == q
        assert {labels[i] for i in range(len(doc)) if i not in words} == {""}
        assert pipe.log_probability(doc, labels) == pipe.log_probability(plain, own)
    (probability,) = pipe.entity_probabilities(doc, [(0, 3, "PER")])
    assert [probability] == pipe.entity_probabilities(plain, [(0, 2, "PER")])
    explained, own = pipe.explain_doc(doc), pipe.explain_doc(plain)
    assert [explained.tokens[i] for i in words] == list(own.tokens)
    pages = [render(each).count("<section") for each in (explained, own)]
    assert pages[0] == pages[1] > 0
    assert [(s.start, s.end) for s in explained.spans] == [(e.start, e.end) for e in nlp(doc).ents]
    for nothing in ("", " ", "\n\n", "\u200b \u00ad"):
        assert nlp(nothing).ents == () and not pipe.marginals(nlp.make_doc(nothing)).any()
        assert pipe.uncertainty([nlp.make_doc(nothing)])[0].entropy == 0.0
        assert all(not t.label for t in pipe.explain_doc(nlp.make_doc(nothing)).tokens)


def test_entities_that_are_set_are_kept_between_blanks(nlp):
    doc = nlp.make_doc(TEXTS[1][0].replace(" ", "  "))
    doc.set_ents([Span(doc, 7, 13, "LOC")], default="missing")  # it begins with blanks
    assert [(e.text, e.label_) for e in nlp(doc).ents] == [
        ("Ivo  Marsh", "PER"),
        (" in  Port  Erin", "LOC"),
    ]
    blank = nlp.make_doc("Una  \n about")
    blank.set_ents([Span(blank, 1, 2, "LOC")], default="missing")
    assert blank[1].is_space and nlp(blank).ents[-1].label_ == "LOC"


def test_gold_entities_are_learnt_without_blanks_at_their_ends():
    pairs = [
        ("Ada  saw \n Ivo \n", [(0, 5, "PER"), (9, 16, "PER")]),
        ("  Una ran\n", [(0, 5, "PER")]),
    ]
    for scheme in ("IOB2", "BILUO"):
        target = {"@crf_targets": "spacy_sparsecrf.Entities.v1", "scheme": scheme}
        with pytest.warns(UserWarning, match=r"SCW233.*15 gold entities or spans.*'Ada  '"):
            nlp = trained(*(pairs * 5), target=target)
        assert [e.text for text, _ in pairs for e in nlp(text).ents] == ["Ada", "Ivo", "Una"]


def drawn_lines(n: int, seed: int, kind: str, between: str) -> list[tuple[str, list]]:
    """Draw address blocks, or lists with one item a line, of made-up words."""
    rng, pairs = random.Random(seed), []

    def words(low: int, high: int) -> str:
        own = ["".join(rng.choices(STEMS, k=2)).title() for _ in range(rng.randint(low, high))]
        return " ".join(own)

    for _ in range(n):
        lines = [("ITEM", words(1, 3)) for _ in range(rng.randint(2, 6))]
        if kind == "address":
            street = f"{words(1, 2)} {rng.randint(1, 99)}"
            lines = [("NAME", words(2, 2)), ("STREET", street), ("CITY", words(1, 2))]
        text, spans = "", []
        for label, line in lines:
            text += between if text else ""
            spans.append((len(text), len(text) + len(line), label))
            text += line
        pairs.append((text, spans))
    return pairs


@pytest.mark.parametrize("kind", ["address", "list"])
@pytest.mark.parametrize(("between", "other"), [("\n", "\r\n"), ("\n", " \n\n"), ("\n\n", "\n\n")])
def test_address_blocks_and_lists_with_one_item_a_line(kind, between, other):
    nlp = trained(*drawn_lines(60, 1, kind, between), l1=0.05, l2=0.1)
    for text, spans in drawn_lines(20, 2, kind, other):
        assert [(e.start_char, e.end_char, e.label_) for e in nlp(text).ents] == spans


def test_no_entity_crosses_an_empty_line():
    pairs = [("See Ada Nowak there.", [(4, 13, "PER")]), ("See no one there.", [])] * 4
    nlp = trained(*pairs)
    for lines in ("\n\n", "\r\n \r\n", " \n\u00a0\n "):
        doc = nlp(f"See Ada{lines}Nowak there.")
        assert {"Ada", "Nowak"}.issuperset(e.text for e in doc.ents)
        marginals = nlp.get_pipe("sparse_crf_ner").marginals(doc)
        assert marginals[[t.text for t in doc].index("Nowak")].sum() == pytest.approx(1.0)
    assert [e.text for e in nlp("See Ada\nNowak there.").ents] == ["Ada\nNowak"]
    with pytest.warns(UserWarning, match=r"SCW223.*4 gold entities.*blank line"):
        trained(*[("See Ada\n \nNowak there.", [(4, 15, "PER")]), ("No one.", [])] * 4)


def test_white_space_has_the_tag_that_it_has_in_training():
    for tag, attr in (("_SP", "tag"), ("", "tag"), ("SPACE", "pos"), ("", "pos")):
        target = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": attr}
        nlp = blank_with(target=target)
        doc = Doc(nlp.vocab, words=["the", " ", "dog", "\n", "barks"], spaces=[True, *[False] * 4])
        for token, value in zip(doc, ("DET", tag, "NOUN", tag, "VERB"), strict=True):
            setattr(token, f"{attr}_", value)
        examples = [Example(doc.copy(), doc)] * 5
        nlp.initialize(lambda examples=examples: examples)
        nlp.update(examples)
        found = nlp("the  dog\nbarks \u200b \t")
        values = [getattr(token, f"{attr}_") for token in found]
        assert values[:5] == ["DET", tag, "NOUN", tag, "VERB"] and {*values[5:]} == {tag}


def test_phrases_and_two_stages_and_several_vocabs_ignore_blanks():
    templates = ["u:phrase(cities)[0]", "u:lower[0]", "b:", "u:first[-1]", "u:_.mark[0]"]
    features = {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": templates,
        "phrases": {"cities": ["Port Erin", "Lund"]},
    }
    spacy.tokens.Token.set_extension("mark", getter=lambda token: token.text[:1], force=True)
    try:
        pairs = [(text, spans_in(text, named)) for text, named in TEXTS] * 5
        nlp = trained(*pairs, features=features, learning={"stack": {"folds": 3}})
        pipe, other = nlp.get_pipe("sparse_crf_ner"), spacy.blank("en")
        plain = [nlp.make_doc(text) for text, _ in TEXTS]
        wide = [nlp.make_doc(text.replace(" ", " \n")) for text, _ in TEXTS]
        wide[1] = other.make_doc(wide[1].text)
        for own, with_blanks in zip(plain, pipe.marginals(wide), strict=True):
            words = with_blanks[with_blanks.any(axis=1)]
            np.testing.assert_array_equal(words, pipe.marginals(own))
        found = [entities_of(doc) for doc in pipe.pipe(wide)]
        assert found == [entities_of(doc) for doc in pipe.pipe(plain)] and all(found)
    finally:
        spacy.tokens.Token.remove_extension("mark")


def test_custom_functions_that_call_templates_read_words_and_docs_without_any():
    nlp = blank_with()
    pipe: Any = nlp.get_pipe("sparse_crf")
    own = pipe.features
    pipe.features = lambda docs, sequences: own(docs, sequences)
    train(nlp, examples_of(nlp, [(["the", "dog", "barks"], ["DT", "NN", "VB"])] * 4), 2)
    assert [t.tag_ for t in nlp("the  dog\n barks")] == ["DT", "", "NN", "", "VB"]
    assert pipe.marginals(nlp.make_doc("")).shape == (0, 3)
    assert pipe.marginals(nlp.make_doc(" ")).tolist() == [[0.0] * 3]
