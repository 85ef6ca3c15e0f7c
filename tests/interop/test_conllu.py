"""Entities in MISC of CoNLL-U, and files whose words are left out."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from ..support.commands import run

COLUMNS = "\t{}\t_\tX\t_\t_\t_\t_\t_\t{}\n"


def conllu(*sentences: list[tuple[str, str]]) -> str:
    """Return sentences of words and MISC."""
    blocks = [
        "".join(f"{i}" + COLUMNS.format(word, misc) for i, (word, misc) in enumerate(words, 1))
        for words in sentences
    ]
    return "\n".join(blocks) + "\n"


def converted(path: Path, text: str, *options: object):
    (path / "a.conllu").write_text(text, encoding="utf8")
    shown = run("convert", path / "a.conllu", path / "a.spacy", *options).output
    docs = DocBin().from_disk(path / "a.spacy").get_docs(spacy.blank("xx").vocab)
    return shown, [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]


@pytest.mark.parametrize("key", ["NER", "ner", "NE", "name", "SpaceAfter=No|name"])
def test_labels_in_misc_are_entities(tmp_path, key):
    sentences = [("New", f"{key}=B-LOC"), ("York", f"{key}=I-LOC|X=Y"), ("ran", f"{key}=O")]
    _, ents = converted(tmp_path, conllu(sentences, [("Ann", f"{key}=B-PER"), ("ran", "_")]))
    assert ents == [[("New York" if "|" not in key else "NewYork", "LOC")], [("Ann", "PER")]]
    docs = [*DocBin().from_disk(tmp_path / "a.spacy").get_docs(spacy.blank("xx").vocab)]
    assert docs[1][1].ent_iob_ == "O", "not missing"


def test_labels_of_another_scheme_need_the_option(tmp_path):
    text = conllu([("New", "ner=B-LOC"), ("York", "ner=E-LOC"), ("Ann", "ner=S-PER")])
    _, ents = converted(tmp_path, text, "--scheme", "bioes")
    assert ents == [[("New York", "LOC"), ("Ann", "PER")]]
    refused = run("convert", tmp_path / "a.conllu", tmp_path / "b.spacy", code=1).stderr
    assert "SC615" in refused and "bioes fits" in " ".join(refused.split())


@pytest.mark.parametrize(
    ("misc", "ents", "n_nested"),
    [
        (["Entity=(1-person-giv:act-1", "Entity=1)", "_"], [("a b", "person")], 0),
        (["Entity=(PER)", "Entity=(LOC", "Entity=LOC)"], [("a", "PER"), ("b c", "LOC")], 0),
        (["Entity=(person-1(place-2)", "_", "Entity=person-1)"], [("a b c", "person")], 1),
        (["Entity=(e1-person-1-(e12-place-1-)", "Entity=e1)", "_"], [("a b", "person")], 1),
        (["Entity=(1-person", "Entity=(10-place", "Entity=1)10)"], [("a b c", "person")], 1),
        (["Entity=(PER", "Entity=)(LOC", "Entity=)"], [("a b", "PER")], 1),
        (
            ["Entity=3)", "SpaceAfter=Yes|Entity=(7-event)(8--2)", "Entity=(9-person"],
            [("b", "event")],
            0,
        ),
        (["Bridge=1<2", "CorefEntity=(1-person)", "Name=B-PER"], [], 0),
    ],
)
def test_brackets_in_misc_are_entities(tmp_path, misc, ents, n_nested):
    text = conllu([*zip("abc", misc, strict=True)])
    shown, found = converted(tmp_path, text)
    assert found == [ents]
    assert (f"{n_nested} entities in MISC" in shown) == (n_nested > 0)


def test_files_without_entities_have_none_annotated(tmp_path):
    converted(tmp_path, conllu([("a", "SpaceAfter=No"), ("b", "_")]))
    [doc] = DocBin().from_disk(tmp_path / "a.spacy").get_docs(spacy.blank("xx").vocab)
    assert not doc.has_annotation("ENT_IOB")


WORDLESS = [("_", "_")] * 3


@pytest.mark.parametrize(
    ("name", "text", "options", "n"),
    [
        ("a.conllu", conllu(WORDLESS, WORDLESS), (), "6 of 6"),
        ("a.conllu", conllu([(x, "_") for x in ["what", "they", "said"]], WORDLESS), (), "3 of 6"),
        ("a.tsv", "_\tB-X\n_\tO\n\n_\tO\n_\tO\n", ("--columns", "orth,ner"), "4 of 4"),
        ("a.tsv", "**\tB-X\n***\tO\n", ("--columns", "orth,ner"), "2 of 2"),
        ("a.jsonl", '{"text": "___ __ _____", "spans": [[0, 3, "X"]]}\n', (), "10 of 10"),
    ],
)
def test_files_without_words_are_refused(tmp_path, name, text, options, n):
    (tmp_path / name).write_text(text, encoding="utf8")
    shown = run("convert", tmp_path / name, tmp_path / "a.spacy", *options, code=1).stderr
    assert f"SC642] {tmp_path / name} lacks the words of {n} tokens" in " ".join(shown.split())
    assert "README" in shown and not (tmp_path / "a.spacy").exists()


def test_a_few_such_texts_are_converted(tmp_path):
    blanks = [("-", "_")] * 2
    words = [[(word, "_") for word in ["these", "are", "the", "words", "of", "a", "text"]]] * 5
    _, ents = converted(tmp_path, conllu(*words, blanks, [("_", "_")]))
    assert len(ents) == 7
