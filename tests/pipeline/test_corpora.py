"""The corpus reader yields the same as spaCy's, caches files, and copies annotations."""

import os
import random
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.training import Corpus as SpacyCorpus
from spacy.training import Example
from spacy.training.augment import create_lower_casing_augmenter
from srsly.msgpack import msgpack_decoders

from spacy_sparsecrf.errors import Errors, SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.annotations import Annotations
from spacy_sparsecrf.pipeline.example_reader import make_annotated_corpus

from ..support.toy import blank_with, docs_of, examples_of, make_sentences, run_steps, train

TEMPLATES = ["b:", "u:tag[0]", "u:tag[0]|lower[0]"]
EXTENSION = "corpus_test"


def gold_doc(nlp: Language, n_sentences: int, seed: int) -> Doc:
    """Return a Doc with every annotation; each sentence ends with "don't", a single token."""
    words, tags, starts = [], [], []
    for sentence, of_sentence in make_sentences(n_sentences, seed):
        words += [*sentence, "don't"]
        tags += [*of_sentence, "VB"]
        starts += [True] + [False] * len(sentence)
    n = len(words)
    doc = Doc(
        nlp.vocab,
        words=words,
        spaces=[True] * (n - 1) + [False],
        tags=tags,
        pos=["NOUN" if tag == "NN" else "X" for tag in tags],
        morphs=["Number=Sing" if tag == "NN" else "" for tag in tags],
        lemmas=[word.lower() for word in words],
        heads=[i if start else i - 1 for i, start in enumerate(starts)],
        deps=["ROOT" if start else "dep" for start in starts],
        user_data={"source": seed},
    )
    doc.set_ents([Span(doc, 1, 2, label="X", kb_id="Q1")], missing=[doc[2:3]], default="outside")
    doc.spans["sc"] = [Span(doc, 0, 2, label="NP"), Span(doc, 1, 3, label="XP")]
    doc.spans["other"] = [Span(doc, n - 1, n, label="END", span_id="7")]
    for token in doc:
        token._.set(EXTENSION, len(token.text) % 3 or None)
    return doc


@pytest.fixture(autouse=True)
def extension(own_extensions) -> None:
    Token.set_extension(EXTENSION, default=None)


@pytest.fixture(scope="module")
def blank() -> Language:
    return spacy.blank("en")


@pytest.fixture
def path(blank, tmp_path) -> Path:
    """A directory of two files, with a Doc without sentences and a Doc of unknown spaces."""
    directory = tmp_path / "corpus"
    directory.mkdir()
    docs = [gold_doc(blank, n, seed) for seed, n in enumerate([1, 3, 2, 5])]
    words, spaces = ["Tags", "only", "don't"], [True, True, False]
    plain = Doc(blank.vocab, words=words, spaces=spaces, tags=["NN", "JJ", "VB"])
    unknown = Doc(blank.vocab, words=["can't", "know"])
    assert unknown.has_unknown_spaces and not plain.has_unknown_spaces
    parts = {"a": [*docs[:2], Doc(blank.vocab), plain], "b": [*docs[2:], unknown]}
    for name, part in parts.items():
        DocBin(docs=part, store_user_data=True).to_disk(directory / f"{name}.spacy")
    return directory


def contents(doc: Doc) -> Any:
    """Return the contents of a Doc; spans are compared by their values."""
    spans = {
        key: [(s.start, s.end, s.label_, s.kb_id_, s.id_) for s in group]
        for key, group in doc.spans.items()
    }
    data = doc.to_bytes(exclude=["user_data", "spans"])
    # User data stores an extension attribute by the position of its token.
    return data, spans, doc.user_data, doc.has_unknown_spaces


def same_examples(found: list[Example], expected: list[Example]) -> bool:
    return [(contents(e.predicted), contents(e.reference)) for e in found] == [
        (contents(e.predicted), contents(e.reference)) for e in expected
    ]


SETTINGS: list[dict[str, Any]] = [{}, {"gold_preproc": True}]
SETTINGS += [{"limit": 3}, {"gold_preproc": True, "limit": 2}]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_yields_what_spacys_reader_does(settings, keep, path, blank):
    expected = list(SpacyCorpus(path, **settings)(blank))
    assert len(expected) > 2
    read = make_annotated_corpus(path, **settings, keep=keep)
    for _ in range(3):
        assert same_examples(list(read(blank)), expected)


@pytest.mark.parametrize("settings", SETTINGS[:3], ids=str)
def test_an_augmenter_augments_anew_at_each_reading(settings, path, blank):
    augment, readings = create_lower_casing_augmenter(level=0.5), []
    for reader in (SpacyCorpus, make_annotated_corpus):
        random.seed(1)
        made: Any = reader(path, **{"gold_preproc": False, **settings}, augmenter=augment)
        readings.append([list(made(blank)) for _ in range(3)])
    for theirs, own in zip(*readings, strict=True):
        assert same_examples(own, theirs)
    assert not same_examples(*readings[1][:2])


def test_what_an_augmenter_writes_to_gold_is_gone_at_the_next_reading(path, blank):
    def spoil(nlp: Language, example: Example) -> Iterator[Example]:
        assert example.reference[0].tag_ != "SPOILT"
        example.reference[0].tag_ = "SPOILT"
        yield example

    read = make_annotated_corpus(path, augmenter=spoil)
    for _ in range(2):
        assert all(example.reference[0].tag_ == "SPOILT" for example in read(blank))


@pytest.fixture
def n_reads(monkeypatch) -> list[Path]:
    """Record the paths of files that are read."""
    found: list[Path] = []
    read = DocBin.from_disk

    def from_disk(self: DocBin, path: Path) -> DocBin:
        found.append(path)
        return read(self, path)

    monkeypatch.setattr(DocBin, "from_disk", from_disk)
    return found


def test_files_are_read_once(path, blank, n_reads):
    read = make_annotated_corpus(path)
    next(read(blank))  # A reading that is broken off keeps nothing.
    first, second = list(read(blank)), list(read(blank))
    assert [file.name for file in n_reads] == ["a.spacy", "a.spacy", "b.spacy"]
    for a, b in zip(first, second, strict=True):
        assert a.reference is b.reference and a.predicted is not b.predicted
    unkept = make_annotated_corpus(path, keep=False)
    for _ in range(2):
        list(unkept(blank))
    assert len(n_reads) == 3 + 4


def test_another_vocab_and_changed_files_are_read_anew(path, blank):
    read = make_annotated_corpus(path)
    assert len(list(read(blank))) == 6
    other = spacy.blank("en")
    assert all(example.reference.vocab is other.vocab for example in read(other))
    DocBin(docs=[Doc(blank.vocab, words=["new"])]).to_disk(path / "a.spacy")
    os.utime(path / "a.spacy", ns=(1, 1))
    texts = [example.reference.text for example in read(other)]
    assert len(texts) == 4 and texts[0] == "new "


EVERYTHING = ["tag", "pos", "morph", "lemma", "dep", "ents", "spans", f"_.{EXTENSION}"]


def test_gold_tokens_get_all_that_is_named(path, blank):
    plain = list(make_annotated_corpus(path, gold_tokens=True)(blank))
    found = list(make_annotated_corpus(path, gold_tokens=True, annotations=EVERYTHING)(blank))
    names = ["TAG", "POS", "MORPH", "LEMMA", "DEP", "ENT_IOB", "ENT_TYPE", "ENT_KB_ID"]
    for bare, example in zip(plain, found, strict=True):
        predicted, gold = example.predicted, example.reference
        assert [token.text for token in predicted] == [token.text for token in gold]
        assert predicted.text == gold.text
        assert not any(bare.predicted.has_annotation(name) for name in names[:6])
        assert not bare.predicted.spans and not bare.predicted.user_data
        assert predicted.to_array(names).tolist() == gold.to_array(names).tolist()
        assert contents(predicted)[1] == contents(gold)[1]
        values = [[token._.get(EXTENSION) for token in doc] for doc in (predicted, gold)]
        assert values[0] == values[1]
        assert not predicted.has_annotation("SENT_START") or len(predicted) == 1
    assert found[0].predicted.spans["other"][0].id_ == "7"


def test_of_other_tokens_what_aligns_is_handed_over(path, blank):
    example = next(make_annotated_corpus(path, annotations=EVERYTHING)(blank))
    predicted, gold = example.predicted, example.reference
    # "don't" is two predicted tokens, which both get the gold token's values.
    assert [token.text for token in predicted[-2:]] == ["do", "n't"]
    assert len(predicted) == len(gold) + 1
    tags = [token.tag_ for token in gold]
    assert [token.tag_ for token in predicted] == [*tags, tags[-1]]
    assert [token._.get(EXTENSION) for token in predicted][-3:-1] == [
        token._.get(EXTENSION) for token in gold
    ][-2:]
    assert [(e.start, e.end, e.label_) for e in predicted.ents] == [(1, 2, "X")]
    assert [token.ent_iob_ for token in predicted[:4]] == ["O", "B", "", "O"]
    ends = {key: [(s.start, s.end, s.label_) for s in predicted.spans[key]] for key in gold.spans}
    n = len(predicted)
    assert ends == {"sc": [(0, 2, "NP"), (1, 3, "XP")], "other": [(n - 2, n, "END")]}


def test_of_tokens_that_do_not_align_nothing_is_said(blank):
    words = ["New", "York-based", "firm"]
    spaces = [True, False, False, True, False]
    parts = ["New", "York", "-", "based", "firm"]
    gold = Doc(blank.vocab, words=parts, spaces=spaces, tags=list("ABCDE"))
    gold.set_ents([Span(gold, 0, 2, label="GPE")], default="outside")
    gold.spans["sc"] = [Span(gold, 0, 2, label="P"), Span(gold, 1, 4, label="Q")]
    for token in gold:
        token._.set(EXTENSION, token.text == "firm")
    example = Example(Doc(blank.vocab, words=words, spaces=[True, True, False]), gold)
    Annotations.parse(EVERYTHING).copy_to_predicted(example)
    predicted = example.predicted
    assert [token.tag_ for token in predicted] == ["A", "", "E"]
    assert not predicted.ents and predicted[2].ent_iob_ == "O"
    assert [(s.start, s.end, s.label_) for s in predicted.spans["sc"]] == [(1, 2, "Q")]
    assert [token._.get(EXTENSION) for token in predicted] == [False, False, True]


@pytest.mark.parametrize(
    ("words", "starts"),
    [("a b c d", [1, 0, 1, 1]), ("a bc d", [1, 1, 1]), ("a b c d !", [1, 0, 1, 1, 0])],
)
def test_sentences_begin_where_gold_ones_do(words, starts, blank):
    given, last = words.split(), "d!" if "!" in words else "d"
    spaces: dict[str, Any] = {"spaces": [False] * 4, "sent_starts": [True, False, True, True]}
    gold = Doc(blank.vocab, words=["a", "b", "c", last], **spaces)
    example = Example(Doc(blank.vocab, words=given, spaces=[False] * len(given)), gold)
    Annotations.parse(["sents"]).copy_to_predicted(example)
    assert [bool(token.is_sent_start) for token in example.predicted] == starts


def test_one_group_of_spans_can_be_named_and_computed_extensions_are_left_alone(path, blank):
    for name in ("spans(other)", 'spans("other")', "spans('other')"):
        read = make_annotated_corpus(path, annotations=[name], gold_tokens=True)
        example = next(read(blank))
        assert list(example.predicted.spans) == ["other"]
        assert not example.predicted.has_annotation("TAG")
    Token.set_extension(EXTENSION, getter=lambda token: token.i, force=True)
    read = make_annotated_corpus(path, annotations=[f"_.{EXTENSION}"], gold_tokens=True)
    assert not next(read(blank)).predicted.user_data


def test_what_pipes_write_to_what_was_handed_over_is_not_gold(path, blank):
    read = make_annotated_corpus(path, annotations=EVERYTHING, gold_tokens=True)
    expected = [contents(example.reference) for example in read(blank)]
    for example in read(blank):
        for token in example.predicted:
            token.tag_ = "changed"
            token._.set(EXTENSION, "changed")
        example.predicted.spans["sc"] = []
        example.predicted.set_ents([])
    assert [contents(example.reference) for example in read(blank)] == expected


@pytest.mark.parametrize("name", ["tags", "spans()", "_.", "ent_type", "", "_.never_registered"])
def test_unknown_annotations_and_extensions_are_refused(name, path, blank):
    known = name == "_.never_registered"
    with pytest.raises(SparseCRFError, match=rf"SC221.*{name}" if known else "SC220"):
        list(make_annotated_corpus(path, annotations=[name])(blank))
    assert "set_extension" in Errors.SC221


# Attributes that templates read but no token has


def pipeline(templates: list[str] = TEMPLATES, **config: Any) -> Language:
    return blank_with(templates, **config)


def tagged(examples: list[Example]) -> list[Example]:
    for example in examples:
        for token, gold in zip(example.predicted, example.reference, strict=True):
            token.tag_ = gold.tag_
    return examples


@pytest.mark.parametrize("named", [True, False])
def test_training_warns_of_an_attribute_that_no_token_has(named):
    templates = [*TEMPLATES, f"u:_.{EXTENSION}[0]", "u:span(sc)[0]", "u:glued[0]"]
    nlp = pipeline(templates, learning={"store_feature_names": named})
    examples = examples_of(nlp, make_sentences(20, seed=1))
    with pytest.warns(SparseCRFWarning) as caught:
        nlp.initialize(lambda: examples)
    absent = ["tag", f"_.{EXTENSION}", 'span("sc")']
    for attribute, warning in zip(absent, caught, strict=True):
        message = str(warning.message)
        assert "SCW205" in message and f" read {attribute}, " in message
    run_steps(nlp, examples, 1)
    nlp("the plan")  # training has raised the warning already


def test_prediction_warns_once_of_an_attribute_that_training_had(tmp_path):
    learnt = pipeline(overwrite=True)
    train(learnt, tagged(examples_of(learnt, make_sentences(30, seed=1))), 2)
    assert learnt.get_pipe("sparse_crf").cfg["shares"] == {"tag": 1.0}
    learnt.to_disk(tmp_path / "learnt")
    nlp = spacy.load(tmp_path / "learnt")
    sentences = make_sentences(3, seed=2)
    list(nlp.pipe([example.predicted for example in tagged(examples_of(nlp, sentences))]))
    with pytest.warns(SparseCRFWarning, match=r"SCW206.* read tag.*100.0%") as caught:
        list(nlp.pipe(docs_of(nlp, sentences)))
    assert len(caught) == 1
    list(nlp.pipe(docs_of(nlp, sentences)))


@pytest.mark.parametrize("is_flag", [False, True])
def test_rare_attributes_may_be_missing_from_a_few_tokens(is_flag):
    """A flag is false at tokens without it: that it is rare raises no warning."""
    nlp = pipeline(["b:", "u:lower[0]", f"u:_.{EXTENSION}[0]"])
    examples = examples_of(nlp, make_sentences(30, seed=1))
    for i, example in enumerate(examples):
        example.predicted[0]._.set(EXTENSION, True if is_flag else "ab"[i % 2])
    warned = rf"SCW215.* read _\.{EXTENSION}, which only \d"
    with nullcontext() if is_flag else pytest.warns(SparseCRFWarning, match=warned):
        train(nlp, examples, 1)
    nlp("the plan")
    with pytest.warns(SparseCRFWarning, match="SCW206"):
        list(nlp.pipe(docs_of(nlp, make_sentences(100, seed=2))))


def test_span_groups_are_read_without_a_change_of_the_registry_of_decoders(
    blank, tmp_path, monkeypatch
):
    doc, registry = gold_doc(blank, 1, 0), {**vars(msgpack_decoders)}
    doc.spans["sc"].attrs["order"] = np.arange(2)
    doc.spans["own"] = [Span(doc, 0, 1, label="X", kb_id="Q1", span_id="7")]
    doc.spans["copy"], doc.spans["none"] = doc.spans["own"].copy(), []
    packed = DocBin(docs=[doc, Doc(blank.vocab, ["a"]), doc, doc], store_user_data=True)
    packed.span_groups[2] = srsly.msgpack_dumps([doc.spans["own"].to_bytes()])  # of spaCy 3.0
    packed.to_disk(tmp_path / "a.spacy")
    expected = [example.reference.spans for example in SpacyCorpus(tmp_path)(blank)]
    found = [example.reference.spans for example in make_annotated_corpus(tmp_path)(blank)]
    for own, others in zip(found, expected, strict=True):
        assert own.keys() == others.keys() and own.to_bytes() == others.to_bytes()
        assert {key: group.name for key, group in own.items()} == {
            key: group.name for key, group in others.items()
        }
    reader = iter(make_annotated_corpus(tmp_path)(blank))
    next(reader)
    assert vars(msgpack_decoders) == registry
    calls: list[int] = []
    decoders = msgpack_decoders.get_all()
    monkeypatch.setattr(msgpack_decoders, "get_all", lambda: calls.append(n) or decoders)
    for n in (1, 9):
        DocBin(docs=[doc] * n).to_disk(tmp_path / "a.spacy")
        list(make_annotated_corpus(tmp_path)(blank))
    assert calls.count(1) == calls.count(9) > 0
