"""Morphology and extension attributes as targets."""

import numpy as np
import pytest
from spacy.tokens import Doc, DocBin, Token
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.targets.target import Target
from spacy_sparsecrf.pipeline.targets.token_attribute import (
    TokenAttribute,
    TokenExtension,
    make_token_attribute,
)

from ..support.toy import blank_with, train

pytestmark = pytest.mark.usefixtures("own_extensions")

VOCAB = Vocab()
WORDS = ["a", "b", "c"]
NOUN = "Case=Nom|Number=Sing"


def write(
    target: Target, doc: Doc, row: list[str], labels: list[str], overwrite: bool = False
) -> None:
    ids = np.array([labels.index(label) for label in row], dtype=np.int32)
    target.write([doc], [ids], labels, overwrite=overwrite)


def test_empty_morphology_is_a_label_none_is_missing_and_given_ones_get_their_normal_form():
    reference = Doc(VOCAB, words=WORDS, morphs=[NOUN, "_", ""])
    unset = Doc(VOCAB, words=WORDS)
    unset[0].set_morph("Number=Sing|Case=Nom")
    unset[1].set_morph("")
    target = TokenAttribute("morph")
    assert target.gold(Example(Doc(VOCAB, words=WORDS), unset)) == [NOUN, "_", ""]
    assert target.gold(Example(Doc(VOCAB, words=WORDS), reference))[:2] == [NOUN, "_"]
    assert target.complete(["Number=Sing|Case=Nom", NOUN, "_"]) == (NOUN, "_")
    assert target.labels_of("B=2,1|A=x") == ("A=x|B=1,2",)
    assert TokenAttribute("tag").complete(["B=2,1|A=x"]) == ("B=2,1|A=x",)


@pytest.mark.parametrize("vocab", [VOCAB, Vocab()])
def test_morphology_is_written_and_comes_back(vocab):
    target, doc = TokenAttribute("morph"), Doc(vocab, words=WORDS)
    write(target, doc, [NOUN, "_", NOUN], [NOUN, "_"])
    assert [str(token.morph) for token in doc] == [NOUN, "", NOUN]
    assert [token.has_morph() for token in doc] == [True] * 3
    assert doc[0].morph.get("Number") == ["Sing"]
    stored = next(iter(DocBin(docs=[doc], attrs=["MORPH"]).get_docs(Vocab())))
    gold = target.gold(Example(Doc(stored.vocab, words=WORDS), stored))
    assert gold == [NOUN, "_", NOUN]


@pytest.mark.parametrize(
    ("attr", "labels", "kept"),
    [
        ("morph", [NOUN, "_"], ["", "Other=Yes", None]),
        ("_.role", ["X", "Y"], ["Y", "Z", None]),
        ("_.role", ["X", "Y"], ["Y", "Z", ""]),
    ],
)
def test_what_is_set_is_kept(attr, labels, kept):
    def read(doc: Doc) -> list[object]:
        return [str(t.morph) if attr == "morph" else t._.role for t in doc]

    target, doc = make_token_attribute(attr), Doc(VOCAB, words=WORDS)
    for token, value in zip(doc, kept, strict=True):
        if value is not None:
            token.set_morph(value) if attr == "morph" else setattr(token._, "role", value)
    mask = target.permitted([doc], labels, overwrite=False)
    assert mask is not None and mask.tolist() == [[False, True], [True, True], [True, True]]
    assert target.permitted([doc], labels, overwrite=True) is None
    assert target.permitted([Doc(VOCAB, words=WORDS)], labels, overwrite=False) is None
    write(target, doc, labels[:1] * 3, labels)
    assert read(doc) == [*kept[:2], labels[0]]
    write(target, doc, labels[:1] * 3, labels, overwrite=True)
    assert read(doc) == labels[:1] * 3


def with_roles(values: list[str | None]) -> Doc:
    doc = Doc(VOCAB, words=WORDS)
    for token, value in zip(doc, values, strict=True):
        if value is not None:
            token._.role = value
    return doc


def test_an_extension_is_registered_and_read_at_other_tokens():
    target = make_token_attribute("_.role")
    assert isinstance(target, TokenExtension) and isinstance(target, Target)
    assert Token.get_extension("role") == (None, None, None, None)
    reference = with_roles(["X", None, "Y"])
    assert target.gold(Example(Doc(VOCAB, words=WORDS), reference)) == ["X", None, "Y"]
    reference = Doc(VOCAB, words=["ab", "c", "d", "e"])
    for token, value in zip(reference, "XYZZ", strict=True):
        token._.role = value
    predicted = Doc(VOCAB, words=["a", "b", "c d", "e"], spaces=[False, True, True, True])
    assert target.gold(Example(predicted, reference)) == ["X", "X", None, "Z"]
    same = Doc(VOCAB, words=["ab", "c", "d e"])
    assert target.gold(Example(same, reference)) == ["X", "Y", "Z"]
    reference[1]._.role = 7
    with pytest.raises(SparseCRFError, match=r"SC507.*7.*token\._\.role.*begins: 'ab c d"):
        target.gold(Example(predicted, reference))


def test_extensions_that_cannot_be_written():
    Token.set_extension("fixed", getter=lambda token: "X")
    Token.set_extension("method", method=lambda token: "X")
    for attr in ("_.fixed", "_.method", "_.", "_.a b"):
        with pytest.raises(SparseCRFError, match=r"SC506.*attr = '_\."):
            make_token_attribute(attr)
    written = {}
    Token.set_extension("both", getter=lambda token: None, setter=written.__setitem__)
    write(make_token_attribute("_.both"), Doc(VOCAB, words=["a"]), ["X"], ["X"])
    assert list(written.values()) == ["X"]


def test_a_default_is_no_annotation():
    Token.set_extension("slot", default="O")
    target = make_token_attribute("_.slot")
    doc = Doc(VOCAB, words=["a", "b"])
    doc[1]._.slot = "X"
    assert target.matches([doc], ["O", "X", "Y"]).tolist() == [[False] * 3, [False, True, False]]
    target.write([doc], [np.array([2, 2])], ["O", "X", "Y"], overwrite=False)
    assert [token._.slot for token in doc] == ["Y", "X"]


def test_a_pipeline_learns_an_extension_and_stores_it():
    target = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": "_.role"}
    scorer = {"@scorers": "spacy_sparsecrf.token_scorer.v1", "attr": "_.role"}
    nlp, loaded = (blank_with(target=target, scorer=scorer) for _ in range(2))
    docs = [with_roles(["X", None, "Y"]) for _ in range(10)]
    stored = DocBin(docs=docs, store_user_data=True).get_docs(nlp.vocab)
    examples = [Example(Doc(nlp.vocab, words=WORDS), doc) for doc in stored]
    train(nlp, examples, 4)
    assert nlp.get_pipe("sparse_crf").labels == ("X", "Y")
    assert nlp.evaluate(examples)["role_acc"] == 1.0
    doc = loaded.from_bytes(nlp.to_bytes())(Doc(loaded.vocab, words=WORDS))
    assert [token._.role for token in doc][::2] == ["X", "Y"]
