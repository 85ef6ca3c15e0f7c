"""Files of annotation tools: each file format gives the same Docs."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.interop.text_files import unpack

from ..support.commands import run

TEXTS = ("Ann Lee flew to New York.", "Nobody 🙂 saw Bo.")
SPANS = ([(0, 7, "PER"), (16, 24, "LOC")], [(13, 15, "PER")])
CROSSING = [[1, 2, "A"], [7, 14, "B"]]
FOUND = [[("Ann Lee", "PER"), ("New York", "LOC")], [("Bo", "PER")]]


def lines(make: Callable[[str, list[tuple[int, int, str]]], Any]) -> str:
    return "\n".join(json.dumps(make(*each)) for each in zip(TEXTS, SPANS, strict=True)) + "\n\n"


def listed(make: Callable[[str, list[tuple[int, int, str]]], Any]) -> str:
    return json.dumps([make(*each) for each in zip(TEXTS, SPANS, strict=True)], indent=1)


def keyed(text: str, spans: list[tuple[int, int, str]], **names: str) -> list[dict[str, Any]]:
    key = {"start": "start", "end": "end", "label": "label"} | names
    found = [{key["start"]: a, key["end"]: b, key["label"]: label} for a, b, label in spans]
    return [each | {"text": text[a:b]} for each, (a, b, _) in zip(found, spans, strict=True)]


def prodigy(text, spans):
    words, end, tokens = text.replace(".", " .").split(), 0, []
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        tokens.append({"text": word, "start": start, "end": end})
    return {"text": text, "spans": keyed(text, spans), "tokens": tokens, "answer": "accept"}


def label_studio(text, spans):
    results = [
        {"type": "labels", "value": each | {"labels": [each["label"]]}}
        for each in keyed(text, spans)
    ]
    choice = {"type": "choices", "value": {"choices": ["x"]}}
    dropped = {"was_cancelled": True, "result": []}
    return {"data": {"text": text}, "annotations": [dropped, {"result": [*results, choice]}]}


def min_studio(text, spans):
    found = [each | {"labels": [each.pop("label")]} for each in keyed(text, spans)]
    return {"id": 7, "entity_tags": found, "text": text}


def doccano_entities(text, spans):
    found = keyed(text, spans, start="start_offset", end="end_offset")
    return {"id": 1, "text": text, "entities": found, "relations": [{"type": "x"}]}


def offsets_as_text(text, spans):
    found = [{"start": str(start), "end": str(end), "type": label} for start, end, label in spans]
    return {"text": text, "ents": found}


def version_2(text, spans):
    return [text, {"entities": spans}]


def one(**values: Any) -> str:
    return json.dumps({"text": "Ann Lee"} | values)


FILES = {
    "a.jsonl": lines(prodigy),
    "b.jsonl": lines(lambda text, spans: {"id": 1, "text": text, "label": spans}),
    "c.jsonl": lines(lambda text, spans: {"data": text, "labels": spans}),
    "d.jsonl": lines(doccano_entities),
    "e.jsonl": lines(version_2),
    "f.json": listed(label_studio),
    "g.json": listed(min_studio),
    "h.json": listed(version_2),
    "j.txt": lines(doccano_entities),
    "k.jsonl": lines(offsets_as_text),
    "i.json": json.dumps([["\r", {}], *json.loads(listed(version_2))]),
}


def converted(path: Path, *options: str) -> tuple[list[Doc], str]:
    """Return the Docs of a file converted with `--lang xx`, and the output of the command."""
    target = path.parent / "out.spacy"
    done = run("convert", path, target, "--lang", "xx", "--force", *options)
    return [*unpack(target, Vocab())], " ".join((done.stdout + done.stderr).split())


def entities(docs: list[Doc]) -> list[list[tuple[str, str]]]:
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]


@pytest.mark.parametrize("name", FILES)
def test_json_of_every_tool_gives_the_same_entities(tmp_path, name):
    (tmp_path / name).write_text(FILES[name], encoding="utf8")
    docs, said = converted(tmp_path / name)
    assert entities(docs) == FOUND and [doc.text for doc in docs] == [*TEXTS]
    counts = {"d": "2 relations", "f": "2 results that are not", "i": "1 records without text"}
    assert counts.get(name[0], "") in said


def test_json_of_docs_has_their_annotation(tmp_path):
    starts = [True, False, False, True]
    words = ["Ann", "ran", "  ", "."]
    doc = Doc(Vocab(), words, [True, True, False, False], tags=[*"abcd"], sent_starts=starts)
    doc.ents, doc.spans["sc"] = [Span(doc, 0, 1, "PER")], [Span(doc, 0, 2, "X")]
    (tmp_path / "a.jsonl").write_text(json.dumps(doc.to_json()))
    ((read,), _) = converted(tmp_path / "a.jsonl")
    assert read.to_json() == doc.to_json()
    assert [sentence.text for sentence in read.sents] == ["Ann ran   ", "."]

    doc.set_ents([])
    (tmp_path / "b.jsonl").write_text(json.dumps(Doc(Vocab(), ["a"], tags=["X"]).to_json()))
    ((read,), _) = converted(tmp_path / "b.jsonl", "--spans", "own")
    assert "own" in read.spans and read[0].tag_ == "X"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"spans": [{"start": 0, "end": 3, "label": "P"}]}, "1 document"),
        ({"label": [[0, 3, "P"]], "relations": [1]}, "1 relations"),
        ({"ents": [[0, 3, "P"]], "answer": "reject"}, "SC612"),
        ({"ents": [{"start": 0, "end": 3, "label": "P"}], "label": "sports"}, "1 document"),
    ],
)
def test_tagged_tokens_of_tools_are_no_docs(tmp_path, more, said):
    tokens = [{"id": 0, "start": 0, "end": 3, "text": "Ann", "pos": "N"}]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "Ann", "tokens": tokens} | more))
    done = run("convert", tmp_path / "a.jsonl", tmp_path / "a.spacy", code=int("SC" in said))
    assert said in done.output
    if "SC" not in said:
        (doc,) = unpack(tmp_path / "a.spacy", Vocab())
        assert [ent.label_ for ent in doc.ents] == ["P"]


def test_brat(tmp_path):
    (tmp_path / "one.txt").write_text(f"{TEXTS[0]}\n{TEXTS[1]}", encoding="utf8")
    (tmp_path / "one.ann").write_text(
        "T1\tPER 0 7\tAnn Lee\nT2\tLOC 16 24\tNew York\nT3\tPER 39 41\tBo\n"
        "T4\tPER 0 3;8 12\tAnn flew\nR1\tlives Arg1:T1 Arg2:T2\n"
    )
    for path in (tmp_path, tmp_path / "one.ann"):
        docs, said = converted(path)
        assert entities(docs) == [FOUND[0] + FOUND[1]]
        assert docs[0].user_data["document"] == "one"
        assert "1 discontinuous spans" in said and "1 annotations that are not spans" in said


@pytest.mark.parametrize(
    ("spans", "options", "found", "said"),
    [
        (CROSSING, ("--misfit", "drop"), [], "2 of 2 spans (100.00%) do not fit the tokens (left"),
        (
            CROSSING,
            ("--misfit", "expand"),
            ["Ann", "flew to"],
            "(expanded to whole tokens): 'n' in 'Ann' (line 1); 'flew t' in 'flew to' (line 1)",
        ),
        ([[0, 7, "A"], [4, 7, "B"]], (), ["Ann Lee"], "1 spans that overlap longer ones"),
    ],
)
def test_spans_that_overlap_or_do_not_fit_tokens(tmp_path, spans, options, found, said):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXTS[0], "spans": spans}))
    docs, output = converted(tmp_path / "a.jsonl", *options)
    assert [text for text, _ in entities(docs)[0]] == found and said in output
    if len(found) == 1 and not options:
        docs, _ = converted(tmp_path / "a.jsonl", "--spans", "sc")
        assert [span.label_ for span in docs[0].spans["sc"]] == ["A", "B"]


def test_spans_of_one_type_inside_one_another_are_counted(tmp_path):
    spans = [[13, 24, "A"], [16, 24, "A"], [16, 24, "B"], [0, 7, "A"], [0, 7, "A"]]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXTS[0], "spans": spans}))
    docs, output = converted(tmp_path / "a.jsonl", "--spans", "sc")
    assert [(span.start, span.end) for span in docs[0].spans["sc"]] == [(0, 2), (3, 6), (4, 6)]
    assert "1 spans that overlap longer ones of their type" in output


@pytest.mark.parametrize(
    ("name", "text", "code", "options"),
    [
        ("a.ann", "T1\tPER 0 2\tBo\n", "SC624", ()),
        ("b.ann", "T1\t 0 2\tBo\n", "SC624", ()),
        ("a.tsv.gz", "no gzip", "SC618", ()),
        ("a.csv.gz", "", "SC612", ()),
        ("a.jsonl", "[" * 100_000, "SC624", ()),
        ("b.iob", "x B-A\n", "SC614", ("--dev", "0.5")),
    ],
)
def test_other_bad_files_are_refused(tmp_path, name, text, code, options):
    (tmp_path / "b.txt").write_text("Bo")
    (tmp_path / name).write_text(text)
    done = run("convert", tmp_path / name, tmp_path / "refused.spacy", *options, code=1)
    assert code in done.stderr and not (tmp_path / "refused.spacy").exists()


def test_a_share_of_the_documents_is_for_development(tmp_path):
    text = "".join(f"-DOCSTART- O\n\nx{i} B-A\n\ny{i} O\n\n" for i in range(10))
    (tmp_path / "a.iob").write_text(text)
    parts = []
    for _ in range(2):
        _, said = converted(tmp_path / "a.iob", "--dev", "0.2")
        both = [[*unpack(tmp_path / name, Vocab())] for name in ("out.spacy", "dev.spacy")]
        parts.append([{doc.user_data["document"] for doc in docs} for docs in both])
        assert len(both[1]) == 4 and not parts[-1][0] & parts[-1][1]
        assert "Wrote 16 documents to" in said and "Wrote 4 documents to" in said
    assert parts[0] == parts[1]


def test_other_corpora_are_not_overwritten_by_shares_of_the_documents(tmp_path):
    (tmp_path / "a.iob").write_text("".join(f"x{i} B-A\n\n" for i in range(20)))
    shares = ("--dev", "0.2", "--test", "0.1")
    run("convert", tmp_path / "a.iob", tmp_path / "out.spacy", *shares)
    parts = [[*unpack(tmp_path / f"{name}.spacy", Vocab())] for name in ("out", "dev", "test")]
    assert [*map(len, parts)] == [14, 4, 2]
    assert len({doc.text for docs in parts for doc in docs}) == 20
    before = (tmp_path / "test.spacy").read_bytes()
    for option in ("--dev", "--test"):
        done = run("convert", tmp_path / "a.iob", tmp_path / "b.spacy", option, "0.5", code=1)
        assert re.search(rf"SC608.*{option[2:]}.spacy exists.*--force", done.stderr)
        assert (tmp_path / "test.spacy").read_bytes() == before
    assert not (tmp_path / "b.spacy").exists()
    refused = run("convert", tmp_path / "a.iob", tmp_path / "out.spacy", code=1).stderr
    assert re.search(r"SC608.*out.spacy exists.*--force", refused)
    converted(tmp_path / "a.iob", "--test", "0.2")
    assert (tmp_path / "test.spacy").read_bytes() != before
    done = run(
        "convert", tmp_path / "a.iob", tmp_path / "test.spacy", "--test", "0.1", "--force", code=2
    )
    assert "--test writes test.spacy" in " ".join(done.stderr.split())
    done = run(
        "convert", tmp_path / "a.iob", tmp_path / "c.spacy", *shares[:3], "0.9", "--force", code=1
    )
    assert "SC614" in done.stderr


def test_tokens_of_white_space_are_left_out_of_columns(tmp_path):
    (tmp_path / "a.jsonl").write_text(one(text="Ann\nLee ran", spans=[[0, 7, "A"]]))
    converted(tmp_path / "a.jsonl")
    source, target = tmp_path / "out.spacy", tmp_path / "a.tsv"
    run("convert", source, target)
    assert target.read_text() == "Ann\tB-A\nLee\tI-A\nran\tO\n\n"
    doc = Doc(Vocab(), ["\n", "Ann", "ran", "so"], sent_starts=[True, False, False, True])
    doc.ents = [Span(doc, 0, 2, "A"), Span(doc, 2, 4, "B")]
    DocBin(docs=[doc]).to_disk(source)
    with pytest.warns(SparseCRFWarning, match="SCW221.*cross the ends of sentences"):
        run("convert", source, target, "--columns", "orth,ner", "--force")
    assert target.read_text() == "Ann\tB-A\nran\tB-B\n\nso\tB-B\n\n"


PAIR = "Eva Lind met Tom Berg in Graz."
EVA, TOM, GRAZ = [0, 8, "PER"], [13, 21, "PER"], [25, 29, "LOC"]
BINARY = {"_view_id": "ner", "_input_hash": 7}
MANUAL = {"_view_id": "ner_manual", "_input_hash": 7}


def answers(*found: Any) -> str:
    """Return the records of answers about PAIR, each its spans and other keys."""
    rows = ({"text": PAIR, "spans": spans, "answer": "accept"} | keys for spans, keys in found)
    return "\n".join(map(json.dumps, rows))


@pytest.mark.parametrize(
    ("found", "labels", "said"),
    [
        ([([EVA], BINARY), ([TOM], BINARY)], ["BI?BI???"], "2 answers"),
        ([([EVA], {"_is_binary": True})] * 2, ["BI??????"], "2 answers"),
        ([([EVA], MANUAL), ([TOM, GRAZ], MANUAL)], ["BI?BI?B?"], "2 answers"),
        ([([EVA, GRAZ], MANUAL), ([GRAZ, EVA], MANUAL)], ["BIOOOOBO"] * 2, "2 documents"),
        ([([EVA], {}), ([TOM], {})], ["BIOOOOOO", "OOOBIOOO"], "2 documents"),
        (
            [([EVA], MANUAL), ([TOM], MANUAL | {"answer": "reject"})],
            ["BIOOOOOO"],
            "1 records whose",
        ),
        (
            [([TOM], BINARY), ([EVA], BINARY | {"answer": "reject"})],
            ["???BI???"],
            "1 rejected spans",
        ),
        (
            [([EVA], BINARY), ([TOM], BINARY | {"answer": "ignore"})],
            ["BI??????"],
            "1 records whose",
        ),
        (
            [([EVA], BINARY), ([EVA], BINARY | {"answer": "reject"}), ([GRAZ], BINARY)],
            ["??????B?"],
            "1 contradictory spans (the later answer is right): PER 'Eva Lind' (line 2)",
        ),
        (
            [([[13, 21, "ORG"]], BINARY), ([[17, 21, "PER"]], BINARY), ([TOM], BINARY)],
            ["???BI???"],
            "2 contradictory spans (the later answer is right): ORG 'Tom Berg' (line 2); PER",
        ),
        (
            [([GRAZ], BINARY | {"answer": "reject"}), ([GRAZ], BINARY)],
            ["??????B?"],
            "1 contradictory spans",
        ),
    ],
)
def test_answers_about_parts_of_a_text_leave_the_rest_open(tmp_path, found, labels, said):
    (tmp_path / "a.jsonl").write_text(answers(*found))
    docs, output = converted(tmp_path / "a.jsonl")
    assert ["".join("?IOB"[token.ent_iob] for token in doc) for doc in docs] == labels
    assert said in output
    docs, _ = converted(tmp_path / "a.jsonl", "--spans", "sc")
    assert len(docs) == len(labels)


def shifted(text: str, *found: tuple[str, int, int]) -> dict[str, Any]:
    """Return a record whose offsets of words differ by numbers at their start and end."""
    starts = [(text.index(word), text.index(word) + len(word), *by) for word, *by in found]
    return {"text": text, "entities": [[a + x, b + y, "X"] for a, b, x, y in starts]}


def in_units(text: str, words: list[str], encoding: str, size: int) -> dict[str, Any]:
    ends = [(text.index(word), text.index(word) + len(word)) for word in words]
    count = [[len(text[:i].encode(encoding)) // size for i in pair] for pair in ends]
    return {"text": text, "entities": [[*pair, "X"] for pair in count]}


@pytest.mark.parametrize(
    ("record", "code", "cause"),
    [
        (
            shifted("We saw Ida in Kiel.", ("Ida", 1, 1), ("Kiel", 1, 1)),
            "SC626",
            "from 1$|from 1\\.",
        ),
        (shifted("We saw Ida in Kiel.", ("Ida", 1, 0), ("Kiel", 1, 0)), "SC626", "from 1 and an"),
        (
            shifted("Ida saw Kiel today", ("Ida", 0, -1), ("Kiel", 0, -1)),
            "SC626",
            "fit: an end is",
        ),
        (in_units("🙂 saw Ida 🙂 in Kiel ok", ["Ida", "Kiel"], "utf-16-le", 2), "SC626", "UTF-16"),
        (in_units("🙂🙂🙂 in Kiel", ["Kiel"], "utf-16-le", 2), "SC624", "UTF-16"),
        (in_units("Zoë saw Renée", ["Zoë", "Renée"], "utf8", 1), "SC624", "bytes of UTF-8"),
        (shifted("約翰在北京工作", ("約翰", 0, 0), ("北京", 0, 0)), "SC626", "--lang zh"),
        (shifted("สมชายอยู่กรุงเทพ", ("สมชาย", 0, 0), ("กรุงเทพ", 0, 0)), "SC626", "--lang th"),
        (
            shifted("Ida saw Kiel today", ("Id", 0, 0), ("iel", 0, 0)),
            "SC626",
            "None makes them fit",
        ),
        (
            shifted("Ida saw Kiel", ("Ida", 0, 0), ("Kiel", 0, 9)),
            "SC624",
            "12 characters; errors in all: 1",
        ),
    ],
)
def test_the_cause_why_spans_do_not_fit_is_tried_on_the_file(tmp_path, record, code, cause):
    path, target = tmp_path / "a.jsonl", tmp_path / "a.spacy"
    path.write_text(json.dumps(record) + "\n", encoding="utf8")
    said = run("convert", path, target, "--lang", "en", code=1).stderr
    assert re.search(f"{code}.*{cause}", said), said
    assert not target.exists()
    assert " or " not in said.partition("Likely cause")[2].partition(". ")[0]


def test_up_to_a_fifth_of_the_spans_may_not_fit(tmp_path):
    fits = shifted("Ida saw Kiel and Ulm.", ("Ida", 0, 0), ("Kiel", 0, 0), ("Ulm", 0, 0))
    odd = shifted("Ida saw Kiel", ("Ida", 0, 0), ("Ki", 0, 0))
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, [fits, odd])))
    _, said = converted(path)
    assert "1 of 5 spans (20.00%) do not fit the tokens (expanded to whole tokens): 'Ki' in" in said
    path.write_text("\n".join(map(json.dumps, [fits, odd, odd])))
    done = run("convert", path, tmp_path / "b.spacy", code=1)
    assert re.search(r"SC626.*2 of 7 spans \(28.57%\).*'Ki' in 'Kiel' \(line 2\)", done.stderr)


def test_all_invalid_records_are_named_at_once_or_left_out(tmp_path):
    good = one(spans=[[0, 3, "A"], [3, 4, "B"]])
    bad = [one(spans=[[i, 30, "A"]]) for i in range(3)] + [
        "{",
        one(spans=[[0, 3, 7]]),
        one(spans=5),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join([good, *bad, one(spans=[[9, 8, "A"]])]))
    done = run("convert", tmp_path / "a.jsonl", tmp_path / "a.spacy", code=1)
    for part in (
        "cannot be read: line 2: A 0:30",
        "line 3: A 1:30",
        "line 5: Expecting",
        "line 6: span",
        "errors in all: 7",
    ):
        assert part in done.stderr
    assert "line 7" not in done.stderr and not (tmp_path / "a.spacy").exists()
    docs, said = converted(tmp_path / "a.jsonl", "--skip-bad")
    assert entities(docs) == [[("Ann", "A")]]
    assert "7 records that cannot be read" in said and "1 spans of blanks (left out)" in said
    parts = ([EVA], BINARY), ([[0, 99, "PER"]], BINARY), ([GRAZ], BINARY)
    (tmp_path / "a.jsonl").write_text(answers(*parts))
    docs, said = converted(tmp_path / "a.jsonl", "--skip-bad")
    assert entities(docs) == [[("Eva Lind", "PER"), ("Graz", "LOC")]]
    assert "contradictory" not in said
    (tmp_path / "c.jsonl").write_text(
        one(spans=[{"start": 0, "end": 3, "label": "A", "text": "Lee"}])
    )
    done = run("convert", tmp_path / "c.jsonl", tmp_path / "c.spacy", code=1)
    assert re.search(
        "'Ann' in the text, not 'Lee', which begins at 4.*of another text", done.stderr
    )
    (tmp_path / "b.ann").write_text("T1\tA 0 3\tAnn\nT2\tA x\nT3\tA 4 9\tLee\n")
    (tmp_path / "b.txt").write_text("Ann Lee")
    done = run("convert", tmp_path / "b.ann", tmp_path / "b.spacy", code=1)
    assert re.search("SC624.*b.ann cannot be read: b.ann: line 2", done.stderr)


COLUMNS, SPANNED = "a\tB-X\n", one(spans=[[0, 3, "A"]])


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (COLUMNS, ("--spans", "sc")),
        (SPANNED, ("--docs", "2")),
        (COLUMNS, ("--misfit", "drop")),
        (COLUMNS, ("--skip-bad",)),
        (COLUMNS, ("--unannotated", "skip")),
        (SPANNED, ("--scheme", "iob1")),
    ],
)
def test_options_without_effect_are_refused(tmp_path, text, options):
    path = tmp_path / ("a.tsv" if text is COLUMNS else "a.jsonl")
    path.write_text(text)
    done = run("convert", path, tmp_path / "a.spacy", *options, code=2)
    assert f"{options[0]} has no effect" in done.stderr


REJECTED = lines(prodigy) + json.dumps(prodigy(TEXTS[0], SPANS[0]) | {"answer": "reject"})
TOKEN = {"start": 0, "end": 1, "pos": "N"}
DATA = {"data": {"id": 7, "body": "Ann"}, "annotations": [{"result": []}]}
BOTH = [{"text": "A", "x": [{"start": 0, "end": 1, "labels": ["P", "Q"]}]}]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", one(text="a", tokens=[TOKEN], ents=[[0, 1, "P"]]), "1 doc"),
        ("a.jsonl", one(ents=[[0, 3, "P"]], spans={}), "1 doc"),
        ("a.json", json.dumps(DATA), "1 doc"),
        # An empty list of spans does not hide another; labels of one span are counted.
        ("a.jsonl", one(ents=[], entities=[[0, 3, "A"]]), "1 doc"),
        ("a.json", json.dumps(BOTH), "1 span"),
        ("a.jsonl", REJECTED, "1 records whose answer is reject or ignore"),
        ("a.tsv", "10mg\tB-DOSE\nof\tO\naspirin\tO\n", "splits 1 of 3 tokens (33.33%) differently"),
    ],
)
def test_odd_files_lose_nothing_that_is_not_said(tmp_path, name, text, said):
    (tmp_path / name).write_text(text, encoding="utf8")
    docs, output = converted(tmp_path / name)
    assert said in output
    assert len(docs) == (2 if text is REJECTED else 1)
    if "entities" in text:
        assert entities(docs) == [[("Ann", "A")]]
