"""Warnings of data from which training learns nothing, or that differs from prediction."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Corpus, Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..cli.commands import run
from ..conftest import CONFIGS

WORDS = ["Ana", "vive", "en", "Soria"]
COLUMNS = ("--columns", "orth,tag")
ENTS = {"entities": ["U-PER", "O", "O", "U-LOC"]}
TAGS = {"tags": ["N", "V", "P", "N"]}


@Language.component("set_tags", assigns=["token.tag"])
def set_tags(doc: Doc) -> Doc:
    for token in doc:
        token.tag_ = "N"
    return doc


def pipeline(factory: str = "sparse_crf", lang: str = "en", **config: Any) -> Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe(factory, name="crf", config={"n_threads": 1, **config})
    return nlp


def examples(nlp: Language, gold: dict[str, Any], n: int = 5) -> list[Example]:
    return [Example.from_dict(Doc(nlp.vocab, words=WORDS), gold) for _ in range(n)]


@pytest.mark.parametrize(
    ("factory", "gold", "config"),
    [
        ("sparse_crf", ENTS, "entities: use .* config ner"),
        ("sparse_crf", {"pos": ["NOUN"] * 4}, 'parts of speech: set attr = "pos"'),
        ("sparse_crf_spans", TAGS, "tags: use .* config tagger"),
        ("sparse_crf", {}, "no tags, entities or spans"),
    ],
)
def test_without_the_annotation_of_its_target_the_error_names_the_right_config(
    factory: str, gold: dict[str, Any], config: str
):
    nlp = pipeline(factory)
    nlp.initialize(lambda: examples(nlp, gold))
    with pytest.raises(SparseCRFError, match=rf"SC203.*{config}"):
        nlp.update(examples(nlp, gold))


def test_entities_that_do_not_fit_the_tokens_need_no_other_config():
    nlp = pipeline("sparse_crf_ner")
    gold = Doc(nlp.vocab, words=["ab", "cd"], spaces=[False, False], ents=["B-X", "B-Y"])
    with pytest.warns(SparseCRFWarning, match="SCW220"):
        nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["abcd"]), gold)])
    with pytest.raises(SparseCRFError, match="SC203.*`python -m spacy_sparsecrf debug` counts"):
        nlp.get_pipe("crf").training_run()


def test_a_corpus_without_entities_is_warned_of():
    nlp = pipeline("sparse_crf_ner")
    given = examples(nlp, {**TAGS, "entities": ["O"] * 4})
    with pytest.warns(SparseCRFWarning, match=r"SCW216.*5 training Docs.*config tagger"):
        nlp.initialize(lambda: given)


def test_entities_that_cross_the_start_of_a_sentence_are_warned_of():
    nlp, starts = pipeline("sparse_crf_ner"), [True, False, True, False]
    doc = Doc(nlp.vocab, words=WORDS, sent_starts=starts)
    gold = Doc(nlp.vocab, words=WORDS, ents=["O", "B-X", "I-X", "B-Y"], sent_starts=starts)
    with pytest.warns(SparseCRFWarning, match="SCW223.* 1 gold entities.*begins 'Ana vive"):
        nlp.initialize(lambda: [Example(doc, gold)])
    other = pipeline("sparse_crf_ner", sequences="docs")
    other.initialize(lambda: [Example(doc, gold)])


def test_docs_without_a_group_of_spans_are_warned_of():
    nlp = pipeline("sparse_crf_spans")
    given = examples(nlp, {}, 3)
    gold = given[0].reference
    gold.spans["sc"] = [Span(gold, 0, 1, "X")]
    with pytest.warns(SparseCRFWarning) as caught:
        nlp.initialize(lambda: given)
    assert any("SCW227] 2 of 3 training Docs" in str(each.message) for each in caught)


def test_docs_without_the_weights_that_are_set_are_warned_of():
    Doc.set_extension("importance", default=1.0, force=True)
    nlp = pipeline(learning={"doc_weight": "importance"})
    given = examples(nlp, TAGS)
    with pytest.warns(SparseCRFWarning, match="SCW224.*None of the 5 training Docs"):
        nlp.initialize(lambda: given)
    given[0].reference._.importance = 1.0
    nlp.initialize(lambda: given)


def test_gold_annotation_of_development_docs_is_warned_of(tmp_path: Path):
    text = "".join(f"{word}\t{tag}\n" for word, tag in zip(WORDS, TAGS["tags"], strict=True))
    (tmp_path / "a.tsv").write_text(text)
    run("convert", tmp_path / "a.tsv", tmp_path / "a.spacy", *COLUMNS, "--lang", "en")
    paths = {f"paths.{name}": str(tmp_path / "a.spacy") for name in ("train", "dev")}
    for block, names, known in (("dev", ["tag"], 1), ("dev", ["ents"], 0), ("train", ["tag"], 0)):
        own = {**paths, f"corpora.{block}.annotations": names}
        config = load_config(CONFIGS / "tagger.cfg", overrides=own)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            init_nlp(config)
        assert sum("SCW225" in str(each.message) for each in caught) == known


@pytest.mark.parametrize("n", [0, 3])
def test_an_evaluation_without_gold_annotation_is_warned_of(n: int):
    nlp = pipeline()
    given = examples(nlp, TAGS)
    nlp.initialize(lambda: given)
    nlp.update(given)
    with pytest.warns(SparseCRFWarning, match=rf"SCW217.*{n or 'no'} Docs.*--paths\.dev"):
        nlp.evaluate(examples(nlp, {}, n))
    nlp.evaluate(examples(nlp, {}, n))  # once


def test_a_model_without_weights_is_warned_of_once():
    nlp = pipeline(l1=1000.0)
    given = examples(nlp, TAGS)
    nlp.initialize(lambda: given)
    nlp("Ana")  # no warning before training
    with pytest.warns(SparseCRFWarning, match=r"SCW218.*l1 = 1000\.0.*Lower") as found:
        for _ in range(4):
            nlp.update(given)
    assert len(found) == 1
    nlp("Ana")


@pytest.mark.parametrize(("lang", "own"), [("en", "es"), ("en", "xx"), ("es", "es")])
@pytest.mark.parametrize("stored", [True, False])
def test_docs_of_another_language_are_warned_of(lang: str, own: str, stored: bool, tmp_path: Path):
    nlp = pipeline(lang=lang)
    given = examples(spacy.blank(own), TAGS)
    if stored:  # a .spacy file is read with the pipeline's vocab
        text = "\n".join(map("\t".join, zip(WORDS, TAGS["tags"], strict=True)))
        (tmp_path / "a.tsv").write_text(text, encoding="utf8")
        run("convert", tmp_path / "a.tsv", tmp_path / "a.spacy", *COLUMNS, "--lang", own)
        given = list(Corpus(tmp_path / "a.spacy")(nlp))
    if (lang, own) != ("en", "es"):
        nlp.initialize(lambda: given)
        return
    with pytest.warns(SparseCRFWarning, match=r"SCW214.*config NAME --lang es") as caught:
        nlp.initialize(lambda: given)
    assert len(caught) == 1


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_column_that_most_tokens_lack_is_warned_of(share: float):
    nlp = pipeline(features={
        "@crf_features": "spacy_sparsecrf.Templates.v1", "templates": ["b:", "u:pos[0]"],
    })  # fmt: skip
    given = examples(nlp, TAGS)
    for example in given:
        for token in list(example.predicted)[: int(4 * share)]:
            token.pos_ = "NOUN"
    if share >= 0.5:
        nlp.initialize(lambda: given)
        return
    with pytest.warns(SparseCRFWarning, match=r"SCW215.* read pos, which only 25\.0%"):
        nlp.initialize(lambda: given)


@pytest.mark.parametrize("annotating", [True, False])
def test_a_pipe_that_sets_a_column_only_in_prediction_is_warned_of(annotating: bool):
    nlp = pipeline(features={
        "@crf_features": "spacy_sparsecrf.Templates.v1", "templates": ["b:", "u:tag[0]"],
    }, target={"@crf_targets": "spacy_sparsecrf.Entities.v1"})  # fmt: skip
    nlp.add_pipe("set_tags", before="crf")
    nlp.config["training"]["annotating_components"] = ["set_tags"] if annotating else []
    given = examples(nlp, ENTS)
    if annotating:
        nlp.initialize(lambda: given)
        return
    with pytest.warns(SparseCRFWarning, match=r"SCW219.* read tag, which the pipe 'set_tags'"):
        nlp.initialize(lambda: given)


@pytest.mark.parametrize(
    ("lang", "words", "found"),
    [
        (
            "en",
            list("我叫李华住在北京"),
            r"40 of 40, most often '我' \(5\), '叫' \(5\), '李' \(5\)",
        ),
        ("en", ["Take", "10mg", "b.i.d."], r"10 of 15, most often '10mg' \(5\), 'b\.i\.d\.' \(5\)"),
        ("en", ["Dr.", "Ana", "lives", "in", "Soria", "."], ""),
    ],
)
def test_gold_tokens_that_the_tokenizer_cuts_otherwise_are_warned_of(
    lang: str, words: list[str], found: str, tmp_path: Path
):
    (tmp_path / "a.tsv").write_text("".join(f"{word}\tX\n" for word in words) + "\n", "utf8")
    run("convert", tmp_path / "a.tsv", tmp_path / "a.spacy", *COLUMNS, "--lang", lang)
    nlp = pipeline(lang=lang)
    (example,) = Corpus(tmp_path / "a.spacy")(nlp)
    if not found:
        nlp.initialize(lambda: [example])
        return
    with pytest.warns(SparseCRFWarning, match=f"SCW220.*{found}"):
        nlp.initialize(lambda: [example] * 5)


def test_debug_counts_gold_tokens_that_the_tokenizer_cuts_otherwise(tmp_path: Path):
    (tmp_path / "a.tsv").write_text(99 * "a\tX\n" + "10mg\tX\n", "utf8")
    run("convert", tmp_path / "a.tsv", tmp_path / "a.spacy", *COLUMNS, "--lang", "en")
    shown = run("debug", CONFIGS / "tagger.cfg", tmp_path / "a.spacy", "--steps", 0).output
    assert "splits differently: 1 of 100 (1.00%), such as '10mg' (1)" in " ".join(shown.split())
