"""`select`: texts for annotation, the most uncertain first."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..cli.commands import run
from ..conftest import Corpus
from ..decoding.span_cases import span_examples
from ..toy import blank_with


@pytest.fixture(scope="module")
def texts(corpus: Corpus) -> list[str]:
    return [" ".join(words) for words, _ in corpus.dev]


def rows_of(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("select", *arguments).stdout.splitlines()]


def test_selected_texts(trained_dir: Path, texts: list[str], tmp_path: Path):
    fitted = spacy.load(trained_dir)
    files = [tmp_path / name for name in ("a.txt.gz", "b.jsonl", "c.spacy", "out/d.jsonl")]
    files[0].write_bytes(gzip.compress("\n".join(["", *texts[:20], "  ", texts[0]]).encode()))
    files[1].write_text("".join(json.dumps({"text": t}) + "\n" for t in texts[10:25]), "utf8")
    DocBin(docs=[fitted.make_doc(text) for text in texts[20:]]).to_disk(files[2])
    run("select", trained_dir, *files[:3], "-n", 10, "-o", files[3])
    rows = [json.loads(line) for line in files[3].read_text("utf8").splitlines()]
    distinct = list(dict.fromkeys(texts))
    pipe: Any = fitted.get_pipe("sparse_crf")
    docs = [fitted.make_doc(text) for text in distinct]
    found = dict(zip(distinct, pipe.uncertainty(docs), strict=True))
    for by, own in ("entropy", rows), ("entity", rows_of(trained_dir, *files[:3], "--by=entity")):
        ranked = sorted(distinct, key=lambda t: -getattr(found[t], by))
        assert [row["text"] for row in own] == ranked[: len(own)]
        score = {"score": round(getattr(found[ranked[0]], by), 6), "by": by}
        assert own[0]["meta"] == score
    assert len(rows) == 10 and len(own) == len(distinct)
    by_margin = rows_of(trained_dir, files[0], "--by", "margin")
    margins = [row["meta"]["score"] for row in by_margin]
    assert margins == sorted(margins)
    of_label = rows_of(trained_dir, files[0], "--label", "VB", "-n", 1)[0]
    most = max(texts[:20], key=lambda text: found[text].by_label["VB"])
    assert of_label["text"] == most and of_label["meta"]["by"] == "VB"
    tags = [token.tag_ for token in fitted(rows[0]["text"])]
    assert [span["label"] for span in rows[0]["spans"]] == tags


def test_layouts_of_entities(texts: list[str], corpus: Corpus, tmp_path: Path):
    nlp = blank_with(factory="sparse_crf_ner")
    examples = span_examples(nlp, corpus.train[:40], "ents")
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(texts[:3]), "utf8")
    given = tmp_path / "model", tmp_path / "texts.txt"
    loaded = spacy.load(tmp_path / "model")
    for prodigy, doccano in zip(rows_of(*given), rows_of(*given, "--layout=doccano"), strict=True):
        doc = loaded(prodigy["text"])
        triples = [[ent.start_char, ent.end_char, ent.label_] for ent in doc.ents]
        assert doccano == {"text": doc.text, "label": triples, "meta": prodigy["meta"]}
        spans = prodigy["spans"]
        assert [[span["start"], span["end"], span["label"]] for span in spans] == triples
        ends = [(span["token_start"], span["token_end"] + 1) for span in spans]
        assert ends == [(ent.start, ent.end) for ent in doc.ents]
        words = [prodigy["text"][token["start"] : token["end"]] for token in prodigy["tokens"]]
        assert words == [token["text"] for token in prodigy["tokens"]] == [t.text for t in doc]


def test_records_and_tokens_are_kept(trained_dir: Path, tmp_path: Path):
    record = {"text": "the plan", "id": 7, "meta": {"page": 3}, "spans": [{"start": 9}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(record), "utf8")
    [row] = rows_of(trained_dir, tmp_path / "a.jsonl", "--layout", "doccano")
    assert row["id"] == 7 and row["meta"]["page"] == 3 and "spans" not in row
    (tmp_path / "a.jsonl").write_text('{"text": "a", "meta": "x", "_task_hash": 1, "p": 1e-12}')
    [row] = rows_of(trained_dir, tmp_path / "a.jsonl")
    assert row["meta"]["given"] == "x" and "_task_hash" not in row and row["p"] == 1e-12
    doc = Doc(Vocab(), words=["the", "pl", "an"], spaces=[True, False, False], tags=["X"] * 3)
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    [row] = rows_of(trained_dir, tmp_path / "a.spacy")
    assert [token["text"] for token in row["tokens"]] == ["the", "pl", "an"]
    assert row["text"] == "the plan"


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "the plan\n", (), "SC648"),
        ("a.jsonl", '{"text": "the plan"}\n{"txt": "a"}\n', (), "SC649.*line 2"),
        ("a.jsonl", '{"text": "a \\ud800"}\n', (), "SC649.*line 1.*surrogates"),
        ("a.spacy.gz", "the plan\n", (), "SC648"),
        ("a.txt", "the plan\n", ("--label", "NOTHERE"), "SC647"),
    ],
)
def test_refusals(name: str, content: str, options: Any, message: str, trained_dir, tmp_path: Path):
    (tmp_path / name).write_text(content, "utf8")
    failed = run("select", trained_dir, tmp_path / name, *options, code=1).stderr
    code, *line = message.split(".*")
    assert code in failed and all(part in failed for part in line)
