"""`annotate` writes what the pipeline predicts, and makes nothing twice."""

from pathlib import Path

import spacy
from spacy.tokens import DocBin

from ..cli.commands import run
from ..conftest import Corpus
from ..toy import docs_of, tags_of


def read(path: Path) -> list[list[str]]:
    return tags_of(list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)))


def test_files_are_annotated_and_those_that_are_there_stay(
    trained_dir: Path, corpus: Corpus, tmp_path: Path
) -> None:
    nlp, source = spacy.load(trained_dir), tmp_path / "in"
    source.mkdir()
    docs = docs_of(nlp, corpus.dev)
    DocBin(docs=docs[:10]).to_disk(source / "a.spacy")
    lines = [" ".join(words) for words, _ in corpus.dev[10:20]]
    (source / "b.txt").write_text("\n\n".join(lines), encoding="utf8")
    output = tmp_path / "out"
    run("annotate", trained_dir, source, "-o", output)
    assert read(output / "a.spacy") == tags_of(list(nlp.pipe(docs[:10])))
    assert read(output / "b.spacy") == tags_of(list(nlp.pipe(lines)))
    (output / "a.spacy").unlink()
    (output / "b.spacy").write_bytes(b"kept")
    assert "1 files are in" in run("annotate", trained_dir, source, "-o", output).output
    assert read(output / "a.spacy") == tags_of(list(nlp.pipe(docs[:10])))
    assert (output / "b.spacy").read_bytes() == b"kept"


def test_files_that_cannot_be_annotated_are_told(trained_dir: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "x.csv"
    wrong.write_text("a", encoding="utf8")
    given = trained_dir, wrong, "-o", tmp_path / "out"
    assert "SC920" in run("annotate", *given, code=1).output
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text("a", encoding="utf8")
    given = trained_dir, tmp_path / "one", tmp_path / "two", "-o", tmp_path / "out"
    assert "SC921" in run("annotate", *given, code=1).output
    bad = tmp_path / "bad.spacy"
    bad.write_bytes(b"no")
    assert "SC621" in run("annotate", trained_dir, bad, "-o", tmp_path / "out", code=1).output
    assert not (tmp_path / "out").exists()
