"""Files of annotation tools and tables: each file format gives the same Docs."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_sparsecrf.cli.files import unpack
from spacy_sparsecrf.errors import SparseCRFWarning

from ..cli.commands import run

TEXTS = ("Ann Lee flew to New York.", "Nobody 🙂 saw Bo.")
SPANS = ([(0, 7, "PER"), (16, 24, "LOC")], [(13, 15, "PER")])
FOUND = [[("Ann Lee", "PER"), ("New York", "LOC")], [("Bo", "PER")]]
ROWS = [
    [("Ann", "B-PER"), ("Lee", "I-PER"), ("flew", "O"), ("to", "O"), ("New", "B-LOC")],
    [("Nobody", "O"), ("🙂", "O"), ("saw", "O"), ("Bo", "B-PER")],
]


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


def version_2(text, spans):
    return [text, {"entities": spans}]


def trained(text, spans):
    tokens = [
        {"id": i, "orth": w, "ner": n, "space": " "} for i, (w, n) in enumerate([("Bo", "U-PER")])
    ]
    return {"id": 0, "paragraphs": [{"raw": "Bo ", "sentences": [{"tokens": tokens}]}]}


FILES = {
    "a.jsonl": lines(prodigy),
    "b.jsonl": lines(lambda text, spans: {"id": 1, "text": text, "label": spans}),
    "c.jsonl": lines(lambda text, spans: {"data": text, "labels": spans}),
    "d.jsonl": lines(doccano_entities),
    "e.jsonl": lines(version_2),
    "f.json": listed(label_studio),
    "g.json": listed(min_studio),
    "h.json": listed(version_2),
    "j.json": lines(version_2),
    "i.json": json.dumps(
        {"classes": ["PER"], "annotations": [None, ["\r", {}], *json.loads(listed(version_2))]}
    ),
}


def converted(path: Path, *options: str) -> tuple[list[Doc], str]:
    """Return the Docs of a file converted with `--lang en`, and the output of the command."""
    target = path.parent / "out.spacy"
    done = run("convert", path, target, "--lang", "en", *options)
    return [*unpack(target, Vocab())], " ".join((done.stdout + done.stderr).split())


def entities(docs: list[Doc]) -> list[list[tuple[str, str]]]:
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]


@pytest.mark.parametrize("name", FILES)
def test_json_of_every_tool_gives_the_same_entities(tmp_path: Path, name: str):
    (tmp_path / name).write_text(FILES[name], encoding="utf8")
    docs, said = converted(tmp_path / name)
    assert entities(docs) == FOUND and [doc.text for doc in docs] == [*TEXTS]
    counts = {
        "d": "2 relations",
        "f": "2 results that are not spans",
        "i": "1 records without text",
    }
    assert counts.get(name[0], "") in said


def test_json_of_spacy_has_its_tokens_and_annotation(tmp_path: Path):
    (tmp_path / "a.json").write_text(json.dumps([trained("", [])]))
    assert entities(converted(tmp_path / "a.json")[0]) == [[("Bo", "PER")]]


def test_json_of_docs_has_their_annotation(tmp_path: Path):
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
        ({"spans": [{"start": 0, "end": 3, "label": "P"}]}, "1 docs"),
        ({"label": [[0, 3, "P"]], "relations": [1]}, "1 relations"),
        ({"ents": [[0, 3, "P"]], "answer": "reject"}, "SC612"),
        ({"ents": [{"start": 0, "end": 3, "label": "P"}], "label": "sports"}, "1 docs"),
    ],
)
def test_tagged_tokens_of_tools_are_no_docs(tmp_path: Path, more: dict[str, Any], said: str):
    tokens = [{"id": 0, "start": 0, "end": 3, "text": "Ann", "pos": "N"}]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "Ann", "tokens": tokens} | more))
    done = run("convert", tmp_path / "a.jsonl", tmp_path / "a.spacy", code=int("SC" in said))
    assert said in done.output
    if "SC" not in said:
        (doc,) = unpack(tmp_path / "a.spacy", Vocab())
        assert [ent.label_ for ent in doc.ents] == ["P"]


def test_answers_that_were_rejected_are_counted(tmp_path: Path):
    rejected = prodigy(TEXTS[0], SPANS[0]) | {"answer": "reject"}
    (tmp_path / "a.jsonl").write_text(lines(prodigy) + json.dumps(rejected), encoding="utf8")
    docs, said = converted(tmp_path / "a.jsonl")
    assert len(docs) == 2 and "1 records whose answer is reject or ignore" in said


def test_brat(tmp_path: Path):
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


@pytest.mark.parametrize("options", [(), ("--columns", "_,_,orth,tag,ner")])
def test_csv_with_documents(tmp_path: Path, options: tuple[str, ...]):
    text = "doc_id,sentence_id,word,pos,label\na,1,Ann,N,B-P\na,1,ran,V,O\nb,1,Bo,N,B-P\n"
    (tmp_path / "a.csv").write_text(text + "b,2,sat,V,O\n")
    docs, said = converted(tmp_path / "a.csv", "--docs", "2", *options)
    assert [(doc.text, doc.user_data["document"]) for doc in docs] == [
        ("Ann ran ", "1"),
        ("Bo sat ", "2"),
    ]
    assert entities(docs) == [[("Ann", "P")], [("Bo", "P")]] and docs[0][0].tag_ == "N"
    assert options or "_,_,orth,tag,ner" in said


@pytest.mark.parametrize("every_row", [False, True])
@pytest.mark.parametrize("encoding", ["utf8", "cp1252"])
def test_csv_with_a_column_of_sentences(tmp_path: Path, every_row: bool, encoding: str):
    word = "“José”" if encoding == "cp1252" else "🙂"
    text = "Sentence #,Word,POS,Tag\n"
    for i, rows in enumerate(ROWS):
        for j, (token, label) in enumerate(rows):
            number = f"Sentence: {i}" if every_row or j == 0 else ""
            text += f"{number},{token.replace('🙂', word)},NN,{label}\n"
    (tmp_path / "a.csv").write_text(text, encoding=encoding)
    docs, said = converted(tmp_path / "a.csv")
    assert entities(docs) == [[("Ann Lee", "PER"), ("New", "LOC")], FOUND[1]]
    assert docs[1][1].text == word and docs[0][0].tag_ == "NN"
    assert ("read as Windows-1252" in " ".join(said.split())) == (encoding == "cp1252")


def of_lists(**more: Any) -> str:
    """Return sentences as JSON of the package datasets; more: added to the first record."""
    records = [
        {"id": "0", "tokens": [*words], "pos_tags": ["NN"] * len(words), "ner_tags": [*labels]}
        for words, labels in (zip(*rows, strict=True) for rows in ROWS)
    ]
    first = {"id": "1", "tokens": [], "pos_tags": [], "ner_tags": []}
    return "\n".join(map(json.dumps, [first, records[0] | more, records[1]]))


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_json_with_lists_of_tokens(tmp_path: Path, name: str):
    (tmp_path / name).write_text(of_lists(text="Ann Lee"), encoding="utf8")
    docs, said = converted(tmp_path / name)
    assert entities(docs) == [[("Ann Lee", "PER"), ("New", "LOC")], FOUND[1]]
    assert docs[0][0].tag_ == "NN" and "read as orth,tag,ner by" in said
    docs, _ = converted(tmp_path / name, "--columns", "orth,_,spans:x")
    assert [span.text for span in docs[0].spans["x"]] == ["Ann Lee", "New"] and not docs[0].ents
    labels = {"ner_tags": [1, 2, 0, 0, 3]}
    (tmp_path / name).write_text(of_lists(**labels))
    refused(tmp_path / name, "SC635")
    assert converted(tmp_path / name, "--columns", "orth,tag,_")[0][0][0].tag_ == "NN"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('{"tokens": ["A"]}', "'ner_tags' is None, not a list of 1 values"),
        ('{"tokens": 3, "ner_tags": []}', "'tokens' is 3, not a list of 0 values"),
        ('{"tokens": ["A"], "ner_tags": "O"}', "'ner_tags' is 'O'"),
        ('{"tokens": [{}], "ner_tags": ["O"]}', "a list contains {}"),
        ('{"tokens": ["\\ud800"], "ner_tags": ["O"]}', "not Unicode"),
        ("[1]", "it is [1], not an object with lists"),
        ("{", "line 2, cannot be read"),
    ],
)
def test_bad_lists_are_refused_with_their_place(tmp_path: Path, more: str, said: str):
    (tmp_path / "a.jsonl").write_text('{"tokens": ["A"], "ner_tags": ["B-X"]}\n' + more)
    done = run("convert", tmp_path / "a.jsonl", tmp_path / "a.spacy", code=1)
    assert f"SC624] {tmp_path}/a.jsonl, line 2" in done.stderr and said in done.stderr


@pytest.mark.parametrize("are_numbers", [False, True])
def test_parquet(tmp_path: Path, are_numbers: bool):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = ["O", "B-PER", "I-PER", "B-LOC"]
    labels: Any = [[label for _, label in rows] for rows in ROWS]
    metadata = {}
    if are_numbers:
        labels = [[names.index(label) for label in own] for own in labels]
        feature = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}
        metadata = {"huggingface": json.dumps({"info": {"features": {"ner_tags": feature}}})}
    words = [[word for word, _ in rows] for rows in ROWS]
    table = pa.table({"id": ["0", "1"], "tokens": words, "ner_tags": labels})
    # Other lists do not matter: of structs, of another length.
    table = table.append_column("spans", pa.array([[{"start": 0}]] * 2))
    table = table.append_column("keywords", pa.array([["x"], None]))
    parquet.write_table(table.replace_schema_metadata(metadata), tmp_path / "a.parquet")
    docs, _ = converted(tmp_path / "a.parquet")
    assert entities(docs) == [[("Ann Lee", "PER"), ("New", "LOC")], FOUND[1]]
    data = (tmp_path / "a.parquet").read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    (tmp_path / "a.parquet").write_bytes(data[:4] + bytes(footer - 4) + data[footer:])
    refused(tmp_path / "a.parquet", "SC624")
    if are_numbers:
        parquet.write_table(table.replace_schema_metadata({}), tmp_path / "b.parquet")
        refused(tmp_path / "b.parquet", "SC635")


@pytest.mark.parametrize(
    ("tags", "metadata", "said"),
    [
        ([[0], [0, 2]], {}, "SC624.*from row 2 on.*has class 2, and the file names 2"),
        ([[0], [0]], {}, "SC624.*from row 2 on.*not a list of 2"),
        ([None, [0, 1]], {}, "SC624.*from row 1 on.*not a list of 1"),
        ([[0], [0, 1, 0]], {}, "SC624.*from row 2 on.*not a list of 2"),
        ([[0, 1], [0, 1]], {}, "SC624.*from row 1 on.*not a list of 1"),
        ([[0], [0, 1]], {"ner_tags": {"names": 3}}, "SC635"),
        ([[0], [0, 1]], 3, "SC635"),
    ],
)
def test_bad_parquet_is_refused_with_its_place(tmp_path: Path, tags: Any, metadata: Any, said: str):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    if metadata == {}:
        metadata = {"ner_tags": {"feature": {"names": ["O", "B-PER"]}}}
    table = pa.table({"tokens": [["Ann"], ["Bo", "ran"]], "ner_tags": tags})
    stored = {"huggingface": json.dumps({"info": {"features": metadata}})}
    parquet.write_table(table.replace_schema_metadata(stored), tmp_path / "a.parquet")
    done = run("convert", tmp_path / "a.parquet", tmp_path / "a.spacy", code=1)
    assert re.search(said, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("alignment", "found", "said"),
    [
        ("strict", [], "2 spans that do not fit the tokens (left out)"),
        ("contract", ["flew"], "1 spans that do not fit the tokens (left out)"),
        ("expand", ["Ann", "flew to"], "2 spans that do not fit the tokens (expanded"),
    ],
)
def test_spans_that_do_not_fit_tokens(tmp_path: Path, alignment: str, found: list, said: str):
    spans = [[1, 2, "A"], [7, 14, "B"]]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXTS[0], "spans": spans}))
    docs, output = converted(tmp_path / "a.jsonl", "--alignment", alignment)
    assert [text for text, _ in entities(docs)[0]] == found and said in output


def test_spans_that_overlap(tmp_path: Path):
    spans = [[0, 7, "A"], [4, 7, "B"]]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXTS[0], "spans": spans}))
    docs, said = converted(tmp_path / "a.jsonl")
    assert entities(docs) == [[("Ann Lee", "A")]] and "1 spans that overlap longer ones" in said
    docs, _ = converted(tmp_path / "a.jsonl", "--spans", "sc")
    assert [span.label_ for span in docs[0].spans["sc"]] == ["A", "B"]


def refused(path: Path, code: str, *options: str) -> None:
    done = run("convert", path, path.parent / "refused.spacy", *options, code=1)
    assert code in done.stderr
    assert not (path.parent / "refused.spacy").exists()


def one(**values: Any) -> str:
    return json.dumps({"text": "Ann Lee"} | values)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (one(spans=[[0, 9, "A"]]), "SC623] "),
        (one(spans=[[3, 4, "A"]]), "SC623] "),
        (one(spans=[{"start": 0, "end": 3, "label": "A", "text": "Lee"}]), "not 'Lee'"),
        (one(spans=[[0, 3, "A"]], tokens=[[0, 3]]), "text behind 3"),
        (one(spans=[[-3, 3, "A"]]), "SC623] "),
        (one(spans=[[0.0, 3, "A"]]), "SC624] "),
        (one(spans=[[0, 3]]), "has the label None"),
        (one(spans=[[0, 3, ""]]), "has the label ''"),
        (one(label=["positive"]), "'positive' has no offsets"),
        (one(label="positive"), "and not a list of spans"),
        (one(), "SC625"),
        (json.dumps({"words": []}), "its keys are words"),
        (json.dumps({"words": ["A"], "label": ["B", "C"]}), "its keys are words"),
        (json.dumps({"words": [[0, 1]], "label": ["B"]}), "its keys are words"),
        (one(text=""), "SC625"),
        (one(text=" ", spans=[[0, 1, "A"]]), "its text is ' '"),
        (one(text=3), "its text is 3"),
        (one(text=["x" * 99]), "its text is ['" + "x" * 58 + ". Correct"),
        ('{"text": "\\ud800", "spans": []}', "is not Unicode"),
        ('{"text": "A", "doc_id": "\\ud800", "spans": []}', "document's name is not Unicode"),
        ("nonsense", "line 1, cannot be read"),
        ("[" * 100_000, "line 1, cannot be read"),
        ("3", "and not text with spans"),
        ("", "SC612"),
    ],
)
def test_bad_json_is_refused_with_its_place(tmp_path: Path, text: str, code: str):
    (tmp_path / "a.jsonl").write_text(text)
    refused(tmp_path / "a.jsonl", code)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.json", "{}", "it has no text"),
        ("a.json", '"x"', "not a list of records"),
        ("a.json", json.dumps([{"paragraphs": 3}]), "spaCy cannot read its paragraphs"),
        ("a.csv", "word,tag\na,b\n", "SC628"),
        ("a.csv", "sentence,word,tag\n1,a\n", "SC611"),
        ("a.csv", "sentence,word,tag\n", "SC612"),
        ("a.ann", "T1\tPER 0 2\tBo\n", "SC626"),
        ("b.ann", "T1\t 0 2\tBo\n", "SC624"),
        ("a.txt", "This is text.\nThis is another line of it.\n", "SC636"),
        ("a.txt", "\n".join(f"word{i} value{i}" for i in range(12)), "SC637"),
        ("a.txt", "The/DT dog/NN\n" * 5 + "runs fast/RB\n", "SC638"),
    ],
)
def test_other_bad_files_are_refused(tmp_path: Path, name: str, text: str, code: str):
    (tmp_path / "b.txt").write_text("Bo")
    (tmp_path / name).write_text(text)
    refused(tmp_path / name, code)


def test_labels_that_differ_in_each_line_can_be_forced(tmp_path: Path):
    (tmp_path / "a.txt").write_text("\n".join(f"word{i} value{i}" for i in range(12)))
    docs, _ = converted(tmp_path / "a.txt", "--columns", "orth,tag")
    assert docs[0][11].tag_ == "value11"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The/DT dog/NN\n1/2/CD runs/VB\n", "Words have tags behind a slash"),
        ("1 The DT\n2 dog NN\n\n1 1/2 CD\n2 runs VB\n", "Column 1 numbers the tokens"),
        ("0.\tThe\tDT\n1.\tdog\tNN\n\n0.\t1/2\tCD\n1.\truns\tVB\n", "Column 1 numbers the tokens"),
    ],
)
def test_text_with_slashes_and_numbered_tokens(tmp_path: Path, text: str, said: str):
    (tmp_path / "a.txt").write_text(text)
    docs, output = converted(tmp_path / "a.txt")
    found = [[(token.text, token.tag_) for token in doc] for doc in docs]
    assert found == [[("The", "DT"), ("dog", "NN")], [("1/2", "CD"), ("runs", "VB")]]
    assert said in output


def test_a_share_of_the_documents_is_for_development(tmp_path: Path):
    text = "".join(f"-DOCSTART- O\n\nx{i} B-A\n\ny{i} O\n\n" for i in range(10))
    (tmp_path / "a.iob").write_text(text)
    parts = {}
    for seed in ("0", "0", "1"):
        _, said = converted(tmp_path / "a.iob", "--dev", "0.2", "--seed", seed)
        both = [[*unpack(tmp_path / name, Vocab())] for name in ("out.spacy", "dev.spacy")]
        documents = [{doc.user_data["document"] for doc in docs} for docs in both]
        assert len(both[1]) == 4 and not documents[0] & documents[1]
        assert "16 docs are in" in said and "4 docs are in" in said
        assert parts.setdefault(seed, documents) == documents
    assert parts["0"] != parts["1"]
    (tmp_path / "b.iob").write_text("x B-A\n")
    refused(tmp_path / "b.iob", "SC627", "--dev", "0.5")


def test_tokens_of_white_space_can_be_left_out_of_columns(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text(one(text="Ann\nLee ran", spans=[[0, 7, "A"]]))
    converted(tmp_path / "a.jsonl")
    source, target = tmp_path / "out.spacy", tmp_path / "a.tsv"
    assert "--skip-space" in run("convert", source, target, code=1).stderr
    run("convert", source, target, "--skip-space")
    assert target.read_text() == "Ann\tB-A\nLee\tI-A\nran\tO\n\n"
    doc = Doc(Vocab(), ["\n", "Ann", "ran", "so"], sent_starts=[True, False, False, True])
    doc.ents = [Span(doc, 0, 2, "A"), Span(doc, 2, 4, "B")]
    DocBin(docs=[doc]).to_disk(source)
    with pytest.warns(SparseCRFWarning, match="SCW221.*cross the ends of sentences"):
        run("convert", source, target, "--skip-space", "--columns", "orth,ner")
    assert target.read_text() == "Ann\tB-A\nran\tB-B\n\nso\tB-B\n\n"


def test_a_tokenizer_that_cuts_otherwise_is_warned_of(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("10mg\tB-DOSE\nof\tO\naspirin\tO\n")
    _, said = converted(tmp_path / "a.tsv")
    assert "splits 1 of 3 tokens (33.33%) differently: '10mg' (1)" in said


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.tsv", "a\tB-X\n", ("--spans", "sc")),
        ("a.jsonl", one(spans=[[0, 3, "A"]]), ("--docs", "2")),
        ("a.tsv", "a\tB-X\n", ("--skip-space",)),
        ("a.tsv", "a\tB-X\n", ("--alignment", "strict")),
        ("a.tsv", "a\tB-X\n", ("--merge-subtokens",)),
        ("a.tsv", "a\tB-X\n", ("--seed", "1")),
        ("a.jsonl", one(spans=[[0, 3, "A"]]), ("--scheme", "iob1")),
    ],
)
def test_options_without_effect_are_refused(
    tmp_path: Path, name: str, text: str, options: tuple[str, ...]
):
    (tmp_path / name).write_text(text)
    done = run("convert", tmp_path / name, tmp_path / "a.spacy", *options, code=2)
    assert f"{options[0]} has no effect" in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("a.tsv", "a\tB-X\nb\tO\n", ("--scheme", "io"), "labels of io have no prefix"),
        ("a.tsv", "a\tB-X:0.7|O\n", ("--soft", "--columns", "orth,ner"), "no weight such as"),
    ],
)
def test_labels_of_another_form_are_refused(
    tmp_path: Path, name: str, text: str, options: tuple[str, ...], said: str
):
    (tmp_path / name).write_text(text)
    assert said in run("convert", tmp_path / name, tmp_path / "a.spacy", *options, code=1).stderr


def test_an_empty_list_of_spans_does_not_hide_another(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text(one(ents=[], entities=[[0, 3, "A"]]))
    assert entities(converted(tmp_path / "a.jsonl")[0]) == [[("Ann", "A")]]


SPAN = '"spans": [[0, 3, "P"]]'
HEADER = "Sentence #,Word,POS,Tag\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"text": "Ann", "tokens": 5, ' + SPAN + "}", "SC624.*tokens"),
        ("a.jsonl", '{"text": "Ann", "relations": 5, ' + SPAN + "}", "SC624.*relations"),
        ("a.jsonl", '{"text": "Ann", "spans": [[0, 3, "\\ud800"]]}', "SC624.*label"),
        ("a.json", '[{"data": {"text": "Ann"}, "annotations": ["x"]}]', "SC624.*annotations"),
        ("a.csv", HEADER + '1,"' + "a,b\n" * 40_000, "SC624.*field"),
        ("a.csv", '"' + HEADER * 10_000, "SC624.*field"),
        ("a.csv", HEADER + "1,A\0n,N,O\n", "SC610.*utf-16"),
        ("a.csv.gz", "no gzip", "SC618"),
        ("a.csv", HEADER + "1,,N,O\n", "SC616.*line 2.*is empty"),
        ("a.jsonl", '{"tokens": ["Ann", ""], "tags": ["N", "V"]}', "SC616.*line 1.*is empty"),
        ("a.jsonl", '{"tokens": ["Ann"], "ner_tags": ["O"], "x": ["B-X"]}', "orth,ner,_"),
        ("a.jsonl", '{"tokens": ["Ann"], "upos": ["VERB"], "misc": ["x"]}', "orth,pos,_"),
        ("a.jsonl", '{"tokens": ["Ann"], "pos_tags": ["N"], "own": ["B-X"]}', "orth,tag,ner"),
        ("a.csv", "sentence,word,pos,chunk,ner\n1,a,N,B-NP,O\n", "_,orth,tag,spans:sc,ner"),
        ("a.csv", "sentence,word,pos,head\n1,a,N,3\n", "_,orth,tag,_"),
        ("a.tsv", "Ann;B-P\nran;O\n", "There are no labels"),
        (
            "a.jsonl",
            '{"text": "a", "tokens": [{"id": 0, "start": 3, "end": 5, "tag": "N"}]}',
            "SC624.*Doc",
        ),
        (
            "a.jsonl",
            '{"text": "ab", "tokens": [{"id": 0, "start": 0, "end": 1, "tag": "N"}]}',
            "SC624.*read this Doc",
        ),
        ("a.jsonl", '{"tokens": ["a"], "pos": [1], "ner_tags": ["B-P"]}', "orth,_,ner"),
        ("a.jsonl", '{"tokens": ["a"], "pos": ["N"], "ner_tags": [1]}', "SC635.*ner_tags"),
        ("a.csv", "sentence,word,chunk,pos\n1,a,NP,N\n", "_,orth,_,tag"),
        ("a.csv", "sentence,word,pos,chunk\n1,a,N,O\n", "_,orth,tag,spans:sc"),
        ("a.csv", "sentence,word,pos,ne\n1,a,N,PER\n1,b,V,O\n", "_,orth,_,tag"),
        ("a.tsv", "word\tchunk\tne\na\tB-NP\tO\n", "orth,spans:sc,ner"),
        ("a.csv", "sentence,word,ne,label\n1,a,_,B-PER\n1,b,_,O\n", "_,orth,_,ner"),
        ("a.csv", "sentence,word,pos,chunk\n1,a,N,NP\n1,b,V,VP\n", "_,orth,tag,_"),
        (
            "a.jsonl",
            '{"text": "a", "tokens": [{"start": 0, "end": 1, "pos": "N"}], "ents": [[0, 1, "P"]]}',
            "1 doc",
        ),
        ("a.tsv", "Gold\tNE\nAnn\tVB\n", "orth,tag"),
        ("a.csv", HEADER + "1,Ann,N,O\n,ran,V,O\n", "_,orth,tag,ner"),
        ("a.jsonl", '{"text": "Ann", "ents": [[0, 3, "P"]], "spans": {}}', "1 doc"),
        (
            "a.json",
            '[{"text": "A", "x": [{"start": 0, "end": 1, "labels": ["P", "Q"]}]}]',
            "1 span",
        ),
        ("a.json", '{"data": {"id": 7, "body": "Ann"}, "annotations": [{"result": []}]}', "1 doc"),
        ("a.csv", "sentence,document,doc_id,word,tag\n1,x,a,Ann,N\n1,x,b,Bo,N\n", "2 docs"),
    ],
)
def test_odd_files_have_a_coded_error_or_lose_nothing(
    tmp_path: Path, name: str, text: str, said: str
):
    (tmp_path / name).write_text(text, encoding="utf8")
    done = run("convert", tmp_path / name, tmp_path / "a.spacy", code=int(said.startswith("SC")))
    assert re.search(said, done.output)


def test_latin_1_has_no_other_ends_of_lines(tmp_path: Path):
    text = HEADER.encode() + b"1,a\x85b,N,B-P\n,ran,V,\x81\n"
    (tmp_path / "a.csv").write_bytes(text)
    done = run("convert", tmp_path / "a.csv", tmp_path / "a.spacy", "--columns", "_,orth,_,tag")
    assert "read as Latin-1" in " ".join(done.stdout.split())
    (doc,) = unpack(tmp_path / "a.spacy", Vocab())
    assert [token.text for token in doc] == ["a\x85b", "ran"]
