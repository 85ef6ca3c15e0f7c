"""What would be lost in silence is said: long Docs, labels of spans as tags, unseen labels."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.pipeline.example_reader import AnnotatedCorpus

from ..support.commands import run
from ..support.toy import ENGLISH

IOB = "Ann\tB-PER\nLee\tI-PER\nran\tO\n\nYes\tO\n.\tO\n\n"


def write(path: Path, texts: list[list[tuple[str, str]]]) -> Path:
    """Write Docs of words and tags."""
    docs = []
    for words in texts:
        docs.append(Doc(ENGLISH, words=[x for x, _ in words], tags=[tag for _, tag in words]))
    DocBin(attrs=["TAG"], docs=docs).to_disk(path)
    return path


def trained(folder: Path, *options: Any, kind: str = "tagger") -> str:
    """Train for a step; return the warnings, in one line."""
    if not (folder / "a.cfg").exists():
        (folder / "a.cfg").write_text(run("config", kind, "--lang", "xx").output)
    paths = "--paths.train", folder / "train.spacy", "--paths.dev", folder / "dev.spacy"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")  # one warning a line, as in a new process
        run("train", folder / "a.cfg", *paths, *options, "--training.max_steps", 1)
    return " ".join(" ".join(str(warning.message) for warning in told).split())


TEXT = [("a", "X"), ("b", "Y"), ("c", "Z")]


@pytest.fixture
def folder(tmp_path) -> Path:
    write(tmp_path / "train.spacy", [TEXT[:2], TEXT, TEXT * 2, TEXT * 3])
    write(tmp_path / "dev.spacy", [[*TEXT, ("d", "NEW"), ("e", "NEW"), ("f", "OTHER")]])
    return tmp_path


def test_readers_that_drop_long_docs(folder):
    shown = trained(folder, "--corpora.train.max_length", 6)
    assert "SCW240] max_length = 6 of AnnotatedCorpus.v1 has no effect" in shown
    assert "of which 2 of 4 are as long" in shown and shown.count("SCW240") == 1
    nlp, path = spacy.blank("xx"), folder / "train.spacy"
    with pytest.warns(SparseCRFWarning, match="SCW240"):
        lengths = [len(x.reference) for x in AnnotatedCorpus(path, max_length=6)(nlp)]
    assert lengths == [len(x.reference) for x in Corpus(path)(nlp)] == [2, 3, 6, 9]
    config = (
        (folder / "a.cfg")
        .read_text()
        .replace("spacy_sparsecrf.AnnotatedCorpus.v1", "spacy.Corpus.v1")
    )
    for line in ("annotations = []\n", "gold_tokens = false\n", "keep = true\n"):
        config = config.replace(line, "")
    (folder / "a.cfg").write_text(config)
    shown = trained(folder, "--corpora.train.max_length", 7)
    assert "SCW241] [training] train_corpus leaves out" in shown and "7 tokens or more" in shown


def test_labels_that_training_lacks_are_named(folder):
    shown = trained(folder)
    assert "SCW239" in shown and "NEW (2), OTHER (1)" in shown
    options = "--paths.train", "x", "--paths.dev", folder / "dev.spacy", "--steps", 0
    shown = run("debug", folder / "a.cfg", folder / "train.spacy", *options).output
    assert "dev.spacy that training lacks: NEW (2), OTHER (1)" in " ".join(shown.split())
    options = "--paths.dev", folder / "train.spacy", "--steps", 0
    shown = run("debug", folder / "a.cfg", folder / "train.spacy", *options).output
    assert "that training lacks" not in shown


def test_types_that_training_lacks_are_named(tmp_path):
    for name, kind in (("train", "PER"), ("dev", "LOC")):
        text = IOB.replace("PER", kind) + "Bo\tB-PER\n\n"
        (tmp_path / f"{name}.tsv").write_text(text * 3)
        run("convert", tmp_path / f"{name}.tsv", tmp_path / f"{name}.spacy")
    shown = trained(tmp_path, kind="ner")
    assert "SCW239" in shown and "never predicts them: LOC (3)." in shown


def test_debug_shows_the_ends_of_long_tables(tmp_path, folder):
    tags = [f"T{i}" for i in range(40) for _ in range(i + 1)]
    write(tmp_path / "train.spacy", [[("a", tag) for tag in tags]])
    (tmp_path / "a.cfg").write_text(run("config", "tagger", "--lang", "xx").output)
    shown = run("debug", tmp_path / "a.cfg", tmp_path / "train.spacy", "--steps", 0).stdout
    rows = [line.split()[0] for line in shown.splitlines() if line[:1] == "T" or "others" in line]
    expected = [*(f"T{i}" for i in range(39, 29, -1)), "(20", *(f"T{i}" for i in range(9, -1, -1))]
    assert rows == expected and "(20 others)" in shown


@pytest.mark.parametrize(("name", "options"), [("a.tsv", ["--columns", "orth,tag"])])
def test_tags_that_are_labels_of_entities(tmp_path, name, options):
    (tmp_path / name).write_text(IOB)
    shown = " ".join(
        run("convert", tmp_path / name, tmp_path / "train.spacy", *options).output.split()
    )
    assert "3 tags are labels of entities, such as B-X or O (--columns orth,ner reads" in shown
    (tmp_path / "dev.spacy").write_bytes((tmp_path / "train.spacy").read_bytes())
    shown = trained(tmp_path)
    assert "SCW238" in shown and "the tags of 1 of 2 training Docs" in shown
    assert "such as B-PER" in shown and "--columns orth,ner" in shown
    (tmp_path / name).write_text("Ann\tB-PER\nran\tVB\n\n")
    shown = run("convert", tmp_path / name, tmp_path / "b.spacy", *options).output
    assert "labels of entities" not in shown


def test_labels_of_crfsuite_files_that_are_of_entities(tmp_path):
    (tmp_path / "a.crfsuite").write_text("B-PER\tw=Ann\nO\tw=ran\n")
    shown = run(
        "convert", tmp_path / "a.crfsuite", tmp_path / "a.spacy", "--columns", "orth=w"
    ).output
    assert "2 tags are labels of entities" in shown and "--columns orth,ner" in shown
