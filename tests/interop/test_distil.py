"""Texts labelled by teachers: pipelines, functions, and what interrupts them."""

import json
import sys

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin

from spacy_sparsecrf.interop import teachers

from ..support.commands import run
from ..support.toy import ENGLISH

TEXTS = ["Ada met Bo in Rome.", "", "Cy left.", "Nobody came.", "Ada met Bo in Rome.", "Bo ran."]
CHANCES = {"Ada": 0.95, "Bo": np.float32(0.5), "Cy": None}
STOP = {"at": "", "raise": RuntimeError("no network")}
ASKED = []


def names(texts):
    """A teacher, which raises an error at a text."""
    for text in texts:
        ASKED.append(text)
        if text == STOP["at"]:
            raise STOP["raise"]
        yield [
            (text.index(name), text.index(name) + len(name), "PERSON", *([p] if p else []))
            for name, p in CHANCES.items()
            if name in text
        ]


TEACHER = f"{__name__}:names"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty directory with texts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(teachers, "N_ASKED", 2)
    monkeypatch.setitem(STOP, "at", "")
    ASKED.clear()
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf8")
    return tmp_path


def distil(*options, teacher=TEACHER, source="texts.txt", out="out.spacy", code=0):
    arguments = [teacher, source, out, "--lang", "en", *options]
    return " ".join(run("distil", *arguments, code=code).output.split())


def labels(path="out.spacy"):
    docs = DocBin().from_disk(path).get_docs(ENGLISH)
    return [" ".join(token.ent_iob_ or "?" for token in doc) for doc in docs]


def test_spans_that_the_teacher_is_not_sure_of_are_missing():
    output = distil()
    assert labels() == ["B O ? O O O", "B O O", "O O O", "? O O"]
    assert "PERSON 4 2" in output and "2 of 4 spans (50.00%)" in output
    assert "1 PERSON Bo 0.500" in output and "2 blank or repeated texts" in output
    distil("--sure", 0.5, "--force")
    assert labels()[0] == "B O B O O O"
    distil("--annotated", "PERSON,CITY", "--force")
    assert labels() == ["B ? ? ? ? ?", "B ? ?", "? ? ?", "? ? ?"]
    distil("--dev", 0.5, "--force")
    assert len(labels()) == len(labels("dev.spacy")) == 2


def test_an_interrupted_run_is_resumed_with_the_same_bytes(place, monkeypatch):
    distil()
    undisturbed = (place / "out.spacy").read_bytes()
    monkeypatch.setitem(STOP, "at", "Nobody came.")
    output = distil(out="b.spacy", code=1)
    assert "[SC674]" in output and "text 4, 'Nobody came.': no network" in output
    answers = place / "b.spacy.answers"
    answers.write_bytes(answers.read_bytes() + b'["Bo r')  # killed while it wrote
    assert "SC676" in distil(out="b.spacy", teacher="json:loads", code=1)
    monkeypatch.setitem(STOP, "at", "")
    ASKED.clear()
    distil(out="b.spacy")
    assert TEXTS[3:4] == ASKED  # the one after it was answered
    assert (place / "b.spacy").read_bytes() == undisturbed
    assert sorted(x.name for x in place.iterdir()) == ["b.spacy", "out.spacy", "texts.txt"]
    monkeypatch.setitem(STOP, "at", "Cy left.")
    assert "1 texts that the teacher fails at" in distil("--skip-bad", out="c.spacy")
    assert labels("c.spacy") == ["B O ? O O O", "O O O", "? O O"]


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ([(0, 99, "X")], "X 0:99 is not a part of the text of 19 characters"),
        ([(0, 5, "X"), (4, 7, "X")], "overlap"),
        ([(0, 3, "X", "high")], "could not convert string to float: 'high'"),
        ([(0, 3, "X", float("nan"))], "X 0:3 has the probability nan"),
        ([(0, 3, None)], "has the label None"),
        ([(0, 3)], "span 0:3 has the label None"),
        (None, "not iterable"),
    ],
)
def test_bad_answers_are_named_by_their_text(spans, reason, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "names", lambda texts: [spans for _ in texts])
    output = distil(code=1)
    assert "SC674" in output and "text 1, 'Ada met Bo in Rome.'" in output and reason in output


@pytest.mark.parametrize(
    ("teacher", "source", "said"),
    [
        (f"{__name__}:name", "texts.txt", "[SC675] Teacher 'tests.interop.test_distil:name'"),
        ("nowhere:f", "texts.txt", "No module named 'nowhere'"),
        (TEACHER, "gone.txt", "SC672"),
        (TEACHER, "bad.jsonl", "SC624"),
        (TEACHER, "blank.txt", "SC612"),
    ],
)
def test_what_cannot_be_used_is_named(teacher, source, said, place):
    (place / "bad.jsonl").write_text('{"text": "Ada"}\n{"txt": "Bo"}\n', encoding="utf8")
    (place / "blank.txt").write_text(" \n", encoding="utf8")
    assert said in distil(teacher=teacher, source=source, code=1)
    assert not (place / "out.spacy").exists()


def test_a_student_chooses_texts_and_is_a_teacher(place):
    """Pipelines have exact probabilities, if a sparse CRF has set their entities."""
    lines = [json.dumps({"text": text}) for text in TEXTS if text]
    (place / "texts.jsonl").write_text("\n".join(lines), encoding="utf8")
    distil("--sure", 0, source="texts.jsonl")
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf_ner", config={"n_threads": 1})
    docs = DocBin().from_disk("out.spacy").get_docs(nlp.vocab)
    examples = [spacy.training.Example(nlp.make_doc(doc.text), doc) for doc in docs] * 3
    nlp.initialize(lambda: examples)
    for _ in range(5):
        nlp.update(examples)
    nlp.to_disk("student")
    texts = [*dict.fromkeys(filter(None, TEXTS))]
    found = pipe.uncertainty([nlp.make_doc(text) for text in texts])
    order = sorted(range(len(texts)), key=lambda i: -found[i].entropy)
    ASKED.clear()
    distil("--least-sure", "student", 2, "--force")
    assert [texts[i] for i in sorted(order[:2])] == ASKED
    assert "SC614" in distil("--least-sure", "student", 0, "--force", code=1)
    output = distil("--sure", 0, teacher="student", out="again.spacy")
    probability = pipe.confidences(nlp.make_doc("Cy left.")).spans
    assert "no probabilities" not in output and len(probability) == 1
    ruler = spacy.blank("en")
    ruler.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ada"}])
    ruler.to_disk("ruler")
    assert "no probabilities" in distil(teacher="ruler", out="ruled.spacy")
    assert labels("ruled.spacy")[0] == "B O O O O O"


def test_spans_may_be_objects_with_numbers_of_numpy(monkeypatch):
    span = {"start": np.int64(0), "end": np.int32(3), "label": "PERSON", "probability": 0.1}
    monkeypatch.setattr(sys.modules[__name__], "names", lambda texts: [[span] for _ in texts])
    assert "PERSON 4 4" in distil()
