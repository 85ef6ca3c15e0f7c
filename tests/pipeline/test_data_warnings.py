"""Warnings of data from which training learns nothing, or that differs from prediction."""

import re
import warnings
from collections.abc import Callable
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
from spacy_sparsecrf.pipeline.data_checks import DataChecks
from spacy_sparsecrf.pipeline.encoding import with_negatives
from spacy_sparsecrf.pipeline.targets.entities import Entities
from spacy_sparsecrf.pipeline.targets.spans import SpanGroups
from spacy_sparsecrf.pipeline.targets.target import Target
from spacy_sparsecrf.pipeline.targets.token_attribute import TokenAttribute

from ..conftest import CONFIGS
from ..support.commands import run
from ..support.toy import examples_of, make_sentences

WORDS = ["Ana", "vive", "en", "Soria"]
ENTS = {"entities": ["U-PER", "O", "O", "U-LOC"]}
TAGS = {"tags": ["N", "V", "P", "N"]}
STARTS = [True, False, True, False]
Given = Callable[[Language, Path], list[Example]]


@Language.component("set_tags", assigns=["token.tag"])
def set_tags(doc: Doc) -> Doc:
    for token in doc:
        token.tag_ = "N"
    return doc


def pipeline(factory: str = "sparse_crf", lang: str = "xx", annotates: Any = None, **config: Any):
    """Return a pipeline; annotates: whether an earlier pipe that sets tags does so in training."""
    nlp = spacy.blank(lang)
    if annotates is not None:
        nlp.add_pipe("set_tags")
        nlp.config["training"]["annotating_components"] = ["set_tags"] * annotates
    if "templates" in config:
        block = {"@crf_features": "spacy_sparsecrf.Templates.v1"}
        config["features"] = block | {"templates": config.pop("templates")}
    nlp.add_pipe(factory, name="crf", config={"n_threads": 1, **config})
    return nlp


def examples(nlp: Language, gold: dict[str, Any], n: int = 5) -> list[Example]:
    return [Example.from_dict(Doc(nlp.vocab, words=WORDS), gold) for _ in range(n)]


def stored(nlp: Language, path: Path, rows: list[str], lang: str = "en") -> list[Example]:
    """Convert rows of words and tags, and read the file with the pipeline's vocab."""
    (path / "a.tsv").write_text("\n".join(rows) + "\n", "utf8")
    columns = ("--columns", "orth,tag", "--lang", lang)
    run("convert", path / "a.tsv", path / "a.spacy", *columns)
    return list(Corpus(path / "a.spacy")(nlp))


def given(**gold: Any) -> Given:
    return lambda nlp, path: examples(nlp, gold)


def across(nlp: Language, path: Path) -> list[Example]:
    """Return an entity that crosses the start of a sentence."""
    doc = Doc(nlp.vocab, words=WORDS, sent_starts=STARTS)
    gold = Doc(nlp.vocab, words=WORDS, ents=["O", "B-X", "I-X", "B-Y"], sent_starts=STARTS)
    return [Example(doc, gold)]


def one_group(nlp: Language, path: Path) -> list[Example]:
    found = examples(nlp, {}, 3)
    found[0].reference.spans["sc"] = [Span(found[0].reference, 0, 1, "X")]
    return found


def weights(n: int) -> Given:
    def make(nlp: Language, path: Path) -> list[Example]:
        Doc.set_extension("importance", default=1.0, force=True)
        found = examples(nlp, TAGS)
        for example in found[:n]:
            example.reference._.importance = 1.0
        return found

    return make


def of_language(lang: str, in_file: bool) -> Given:
    def make(nlp: Language, path: Path) -> list[Example]:
        rows = [*map("\t".join, zip(WORDS, TAGS["tags"], strict=True))]
        return stored(nlp, path, rows, lang) if in_file else examples(spacy.blank(lang), TAGS)

    return make


def with_nouns(n: int) -> Given:
    def make(nlp: Language, path: Path) -> list[Example]:
        found = examples(nlp, TAGS)
        for example in found:
            for token in list(example.predicted)[:n]:
                token.pos_ = "NOUN"
        return found

    return make


def words(*words: str, n: int = 5) -> Given:
    rows = [f"{word}\tX" for word in words]
    return lambda nlp, path: stored(nlp, path, rows, nlp.lang) * n


CUT = {"words": ["a", "bc", "d"], "spaces": [False, True, True]}
GOLD = {"words": ["ab", "c", "d"], "spaces": [False, True, True]}


def misaligned(n: int, size: int) -> Given:
    """Return sentences, and n Docs of three gold labels of which one is lost."""

    def make(nlp: Language, path: Path) -> list[Example]:
        lost = [Doc(nlp.vocab, **GOLD, tags=["NN", "VB", "NN"]) for _ in range(n)]
        found = examples_of(nlp, make_sentences(size, seed=1))
        return [*found, *(Example(Doc(nlp.vocab, **CUT), gold) for gold in lost)]

    return make


N_LABELS = sum(len(words) for words, _ in make_sentences(120, seed=1)) + 180
LOST = rf"SCW208.*'crf': 60 of {N_LABELS} gold labels \(.*%\).*'c'.*begins 'abc d|SCW220"
NER, SPANS, SPANISH = {"factory": "sparse_crf_ner"}, {"factory": "sparse_crf_spans"}, {"lang": "es"}
ENGLISH = {"lang": "en"}
WEIGHTED = {"learning": {"doc_weight": "importance"}}
POS, READING = ({"templates": ["b:", f"u:{name}[0]"]} for name in ("pos", "tag"))
WORDS_ALONE = {"templates": ["b:", "u:lower[0]"]}
READING |= {"target": {"@crf_targets": "spacy_sparsecrf.Entities.v1"}}
CHINESE = r"SCW220.*40 of 40, most often '我' \(5\), '叫' \(5\), '李' \(5\)"
DOSES = r"SCW220.*10 of 15, most often '10mg' \(5\), 'b\.i\.d\.' \(5\)"


@pytest.mark.parametrize(
    ("config", "make", "warned"),
    [
        (NER, given(**TAGS, entities=["O"] * 4), r"SCW216.*5 training Docs.*config tagger"),
        (NER | {"sequences": "sents"}, across, r"SCW223.* 1 gold entities.*begins 'Ana vive"),
        (NER, across, ""),
        (SPANS | WORDS_ALONE, one_group, r"SCW227\] 2 of 3 training Docs|SCW201"),
        (WEIGHTED, weights(0), r"SCW224.*None of the 5 training Docs"),
        (WEIGHTED, weights(1), ""),
        *((ENGLISH, of_language("es", i), r"SCW214.*config NAME --lang es") for i in (False, True)),
        *((ENGLISH, of_language("xx", i), "") for i in (False, True)),
        *((SPANISH, of_language("es", i), "") for i in (False, True)),
        (POS, with_nouns(1), r"SCW215.* read pos, which only 25\.0%"),
        (POS, with_nouns(2), ""),
        (READING | {"annotates": False}, given(**ENTS), r"SCW219.* read tag, .*pipe 'set_tags'"),
        (READING | {"annotates": True}, given(**ENTS), ""),
        (ENGLISH, words(*"我叫李华住在北京"), CHINESE),
        (ENGLISH, words("Take", "10mg", "b.i.d."), DOSES),
        (ENGLISH, words("Dr.", "Ana", "lives", "in", "Soria", ".", n=1), ""),
        ({}, misaligned(1, 120), ""),
        ({}, misaligned(60, 120), LOST),
    ],
)
def test_training_warns_of_data(config, make, warned, tmp_path):
    """Warn once about each fault, and about nothing else."""
    nlp = pipeline(**config)
    found = make(nlp, tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nlp.initialize(lambda: found)
    told = [str(each.message) for each in caught]
    assert len(told) == (warned.count("SCW")) and all(re.search(warned, each) for each in told)


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
    factory, gold, config
):
    nlp = pipeline(factory)
    with pytest.raises(SparseCRFError, match=rf"SC203.*{config}"):
        nlp.initialize(lambda: examples(nlp, gold))


def test_entities_that_do_not_fit_the_tokens_need_no_other_config():
    nlp = pipeline("sparse_crf_ner")
    gold = Doc(nlp.vocab, words=["ab", "cd"], spaces=[False, False], ents=["B-X", "B-Y"])
    warned = pytest.warns(SparseCRFWarning, match="SCW220")
    message = "SC203.*`python -m spacy_sparsecrf debug` counts"
    with warned, pytest.raises(SparseCRFError, match=message):
        nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["abcd"]), gold)])


def test_gold_annotation_of_development_docs_is_warned_of(tmp_path):
    stored(spacy.blank("xx"), tmp_path, [*map("\t".join, zip(WORDS, TAGS["tags"], strict=True))])
    paths = {f"paths.{name}": str(tmp_path / "a.spacy") for name in ("train", "dev")}
    for block, names, known in (("dev", ["tag"], 1), ("dev", ["ents"], 0), ("train", ["tag"], 0)):
        own = {**paths, "nlp.lang": "xx", f"corpora.{block}.annotations": names}
        config = load_config(CONFIGS / "tagger.cfg", overrides=own)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            init_nlp(config)
        assert sum("SCW225" in str(each.message) for each in caught) == known


@pytest.mark.parametrize("n", [0, 3])
def test_an_evaluation_without_gold_annotation_is_warned_of(n):
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


def test_debug_counts_gold_tokens_that_the_tokenizer_cuts_otherwise(tmp_path):
    stored(spacy.blank("en"), tmp_path, [*["a\tX"] * 99, "10mg\tX"])
    shown = run("debug", CONFIGS / "tagger.cfg", tmp_path / "a.spacy", "--steps", 0).output
    assert "splits 1 of 100 tokens (1.00%) differently: '10mg' (1)" in " ".join(shown.split())


def counted(example: Example, target: Target) -> DataChecks:
    pipe: Any = pipeline().get_pipe("crf")
    checks = DataChecks()
    checks.add(pipe.setup._replace(target=target), example, target.gold(example))
    return checks


@pytest.mark.parametrize(
    ("target", "annotation", "n_gold", "n_lost", "word"),
    [
        (TokenAttribute("tag"), {"tags": ["X", "Y", "Z"]}, 3, 1, "c"),
        (TokenAttribute("tag"), {"tags": ["X", "", "Z"]}, 2, 0, ""),
        (TokenAttribute("tag"), {}, 0, 0, ""),
        (TokenAttribute("tag", "|"), {"tags": ["X", "Y|X", ""]}, 2, 1, "c"),
        (Entities(), {"ents": ["O", "B-X", "O"]}, 3, 1, "c"),
        (SpanGroups(), {}, 3, 0, ""),
    ],
)
def test_labels_that_no_predicted_token_has(nlp, target, annotation, n_gold, n_lost, word):
    gold = Doc(nlp.vocab, **GOLD, **annotation)
    gold.spans["sc"] = [Span(gold, 0, 2, label="X")]
    count = counted(Example(Doc(nlp.vocab, **CUT), gold), target)
    assert (count.n["gold"], count.n["lost"]) == (n_gold, n_lost)
    assert count.cases.get("lost", {"word": ""})["word"] == word
    assert counted(Example(Doc(nlp.vocab, **GOLD), gold), target).n["lost"] == 0


# Partly annotated entities: sampled negatives


def partly_annotated(nlp: Language, starts: tuple[int, ...] = (3, 50)) -> Example:
    """Return an Example with entities of two words at `starts`; other tokens are unannotated."""
    reference = Doc(nlp.vocab, words=[f"w{i}" for i in range(200)])
    entities = [Span(reference, i, i + 2, label="X") for i in starts]
    reference.set_ents(entities, default="missing")
    return Example(Doc(nlp.vocab, words=[token.text for token in reference]), reference)


def sampled(example: Example, rate: float, seed: int = 0) -> list[str | None]:
    target = Entities()
    return list(with_negatives(target.gold(example), example, target, rate, seed))


def test_a_share_of_what_is_open_is_outside():
    example = partly_annotated(spacy.blank("xx"))
    gold = Entities().gold(example)
    found = {rate: sampled(example, rate) for rate in (0.0, 0.1, 0.5, 1.0)}
    assert found[0.0] == gold
    for labels in found.values():
        assert [a for a, b in zip(labels, gold, strict=True) if b] == [x for x in gold if x]
    counts = {rate: labels.count("O") for rate, labels in found.items()}
    assert counts[1.0] == 200 - 4
    assert 8 <= counts[0.1] <= 32 and 70 <= counts[0.5] <= 126
    # A higher rate includes the negatives of a lower rate.
    assert all(b == "O" for a, b in zip(found[0.1], found[0.5], strict=True) if a == "O")
    assert sampled(example, 0.5) == found[0.5] != sampled(example, 0.5, seed=1)


@pytest.mark.filterwarnings("ignore:.*SCW201")
def test_docs_that_are_annotated_throughout_or_not_at_all_are_left_alone():
    nlp = pipeline("sparse_crf_ner", learning={"negative_rate": 1.0})
    nothing, everything = partly_annotated(nlp, ()), partly_annotated(nlp)
    everything.reference.set_ents(list(everything.reference.ents), default="outside")
    for example in (nothing, everything):
        assert Entities().unknown(example) is None
        assert sampled(example, 1.0) == Entities().gold(example)
    assert SpanGroups().unknown(nothing) is None
    with pytest.raises(SparseCRFError, match="SC203"):
        nlp.initialize(lambda: [nothing])


def test_labels_that_alignment_loses_are_no_negatives():
    nlp = spacy.blank("xx")
    # Predicted tokens split the entity differently, so that no part has a label.
    words, predicted = ["a", "bc", "de", "f", "g"], ["a", "b", "cd", "e", "f", "g"]
    reference = Doc(nlp.vocab, words=words, spaces=[True, False, True, True, False])
    reference.set_ents([Span(reference, 1, 2, label="X")], default="missing")
    spaces = [True, False, False, True, True, False]
    example = Example(Doc(nlp.vocab, words=predicted, spaces=spaces), reference)
    unknown = Entities().unknown(example)
    assert unknown is not None and unknown.tolist() == [True, False, False, True, True, True]
    assert sampled(example, 1.0)[1:3] == [None, None]
