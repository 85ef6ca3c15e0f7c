"""The command `clusters`."""

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vectors import Vectors
from spacy.vocab import Vocab

from .commands import run

TEXT = "the cat sees a dog .\na dog sees the cow .\nthe cow runs .\na cat runs .\n" * 5


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    return tmp_path / "text.txt"


def read(path: Path) -> dict[str, str]:
    return dict(line.split() for line in path.read_text(encoding="utf8").splitlines())


def test_classes_are_learnt_from_texts(text, tmp_path):
    out = tmp_path / "classes.txt"
    shown = run("clusters", text, text, "--classes", 4, "-o", out).output
    assert "8 words in 4 classes" in shown
    found = read(out)
    assert found["cat"] == found["dog"] == found["cow"] != found["the"]
    again = tmp_path / "again.txt"
    run("clusters", text, "--classes", 4, "--lang", "en", "-o", again)
    assert set(read(again)) == set(found)


def test_texts_of_other_files(text, tmp_path):
    run("clusters", text, "--classes", 4, "-o", tmp_path / "classes.txt")
    lines = TEXT.splitlines()
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps({'text': x})}\n" for x in lines))
    docs = [Doc(Vocab(), words=line.split()) for line in lines]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    for name in ("a.jsonl", "a.spacy"):
        run("clusters", tmp_path / name, "--classes", 4, "-o", tmp_path / "again.txt")
        assert read(tmp_path / "again.txt") == read(tmp_path / "classes.txt")


def test_vectors_are_grouped(text, tmp_path):
    nlp, out = spacy.blank("xx"), tmp_path / "classes.txt"
    words = ["cat", "dog", "the", "zebra"]
    data = np.array([[1, 0], [2, 0.1], [0, 1], [0, 3]], dtype=np.float32)
    keys = [nlp.vocab.strings.add(word) for word in words]
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=keys)
    nlp.to_disk(tmp_path / "model")
    run("clusters", "--vectors", tmp_path / "model", "--classes", 2, "-o", out)
    found = read(out)
    assert found["cat"] == found["dog"] != found["the"] == found["zebra"]
    options = "--vectors", tmp_path / "model", "--classes", 2, "-o", out
    run("clusters", text, *options)
    assert set(read(out)) == {"cat", "dog", "the"}


def test_what_cannot_be_learnt_is_refused(text, tmp_path):
    out = tmp_path / "out"
    assert "SC650" in run("clusters", "-o", out, code=1).output
    assert "SC651" in run("clusters", text, "--classes", 50, "-o", out, code=1).output
    text.write_bytes(b"caf\xe9\n")
    assert "SC610" in run("clusters", text, "-o", out, code=1).output
    assert not out.exists()
