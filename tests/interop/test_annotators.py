"""What annotators did is kept: types that they looked for, texts that they left out, variants."""

import json
import random
import warnings
from collections.abc import Iterable
from pathlib import Path

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.interop.text_files import unpack

from ..support.commands import run

NAMES, TOWNS = ["Ida", "Otto", "Nora", "Finn", "Mia"], ["Rom", "Prag", "Wien", "Lyon"]


def records(n: int, types: str, seed: int = 0) -> list[dict[str, object]]:
    """Return texts with names and towns, of which one of `types` are annotated."""
    draw, made = random.Random(seed), []
    for i in range(n):
        name, town = draw.choice(NAMES), draw.choice(TOWNS)
        text = f"{name} came to {town}." if i % 4 else "Nobody came."
        spans = [[text.index(x), text.index(x) + len(x), x] for x in (name, town) if x in text]
        label = {name: "NAME", town: "TOWN"}
        found = [[start, end, label[x]] for start, end, x in spans if label[x] in types]
        made.append({"text": text, "label": found})
    return made


def write(path: Path, made: Iterable[object]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in made))
    return path


def said(done) -> str:
    return " ".join(done.stderr.split())


def docs_in(path: Path) -> list[Doc]:
    return [*unpack(path, Vocab())]


def ends_of(docs: Iterable[Doc]) -> list[list[tuple[str, str]]]:
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train on an old project with towns only, and a new one, as each way of conversion does."""
    path = tmp_path_factory.mktemp("types")
    old, new = write(path / "old.jsonl", records(60, "TOWN")), records(16, "TOWN NAME", 1)
    write(path / "new.jsonl", new)
    run("convert", write(path / "dev.jsonl", records(20, "TOWN NAME", 2)), path / "dev.spacy")
    run("config", "ner", "--lang", "xx", "-o", path / "ner.cfg")
    runs = {"outside": ((), ()), "open": (("TOWN",), ()), "never": (("TOWN",), ("TOWN",))}
    scores, notes = {}, {}
    for name, of_files in runs.items():
        (path / name).mkdir()
        for source, types in zip((old, path / "new.jsonl"), of_files, strict=True):
            options = [word for x in types for word in ("--annotated", x)]
            run("convert", source, path / name / f"{source.stem}.spacy", "--lang", "xx", *options)
        paths = "--paths.train", path / name, "--paths.dev", path / "dev.spacy"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            done = run("train", path / "ner.cfg", "--output", path / f"of-{name}", *paths)
        notes[name] = " ".join(str(x.message) for x in caught) + done.output
        meta = json.loads((path / f"of-{name}" / "model-best" / "meta.json").read_text())
        scores[name] = meta["performance"]["ents_per_type"]
    return scores, notes, path


def test_a_type_that_part_of_the_data_leaves_open_is_learnt_from_the_rest(trained):
    scores, notes, _ = trained
    assert scores["open"]["NAME"]["f"] > 0.95 and scores["open"]["TOWN"]["f"] > 0.95
    assert scores["outside"]["NAME"]["f"] < 0.6
    assert "SCW251" not in notes["open"] and "SCW252" not in notes["open"]
    assert "NAME is in 12 of 16 Docs of" in notes["outside"]
    assert "in none of 60 others" in notes["outside"]
    assert "--annotated TOWN" in notes["outside"]
    assert "SCW252" in notes["never"] and "all spans of NAME" in notes["never"]


def test_debug_names_types_of_one_file(trained):
    _, _, path = trained
    with pytest.warns(SparseCRFWarning, match="SCW251.*NAME is in 12 of 16"):
        run("debug", path / "ner.cfg", path / "outside", "--steps", "0")


@pytest.mark.parametrize("options", [(), ("--spans", "sc")])
def test_types_that_annotators_looked_for_are_stored(tmp_path, options):
    source = write(tmp_path / "a.jsonl", records(4, "TOWN"))
    options = (*options, "--annotated", "TOWN,PLACE")
    done = run("convert", source, tmp_path / "a.spacy", *options)
    assert "--annotated PLACE: no span has this type" in said(done)
    for doc in docs_in(tmp_path / "a.spacy"):
        assert [*doc.user_data["annotated"]] == ["TOWN", "PLACE"]
        assert all(token.ent_iob == 0 for token in doc if not token.ent_type)
    (tmp_path / "a.tsv").write_text("Ida\tO\nhere\t_\n\nRom\tB-TOWN\n\nso\tO\n\n")
    run("convert", tmp_path / "a.tsv", tmp_path / "b.spacy", *options[-2:])
    open_, town, other = docs_in(tmp_path / "b.spacy")
    assert "annotated" not in open_.user_data and not open_.has_annotation("ENT_IOB")
    assert town.ents and "annotated" in town.user_data and "annotated" in other.user_data


def test_a_type_in_a_run_of_the_texts_is_named(tmp_path):
    made = records(80, "TOWN") + records(20, "TOWN NAME", 1)
    done = run("convert", write(tmp_path / "a.jsonl", made), tmp_path / "a.spacy")
    assert "NAME is in 15 of the 19 texts 82 to 100, in none of the other 81" in said(done)
    random.Random(0).shuffle(made)
    done = run("convert", write(tmp_path / "b.jsonl", made), tmp_path / "b.spacy")
    assert "texts" not in said(done)


SOME = {"text": "Ida", "label": [[0, 3, "NAME"]]}
NONE = {"text": "Rom"}


@pytest.mark.parametrize(
    ("others", "is_gap"),
    [
        ([NONE], True),
        ([NONE | {"label": None}], True),
        ([NONE | {"entities": None}], True),
        ([["Rom", {}]], True),
        ([NONE | {"label": []}], False),
        ([["Rom", {"entities": []}]], False),
        ([NONE | {"answer": "accept", "_input_hash": 1}], False),
        ([NONE | {"annotation_id": 7, "annotator": 1}], False),
        ([{"data": NONE, "annotations": [{"result": []}]}], False),
        ([{"text": ""}], False),
    ],
)
def test_records_without_annotation_are_counted_or_read_as_asked(tmp_path, others, is_gap):
    source = write(tmp_path / "a.jsonl", [SOME, SOME, *others])
    done = run("convert", source, tmp_path / "a.spacy", code=int(is_gap))
    assert is_gap == ("SC671" in done.stderr)
    if not is_gap:
        return
    assert "2 records have annotation, and 1 have none" in said(done)
    expected = {"outside": [2, 2, 2], "missing": [2, 2, 0], "skip": [2, 2]}
    for how, iob in expected.items():
        done = run(
            "convert", source, tmp_path / "b.spacy", "--unannotated", how, "--force", "--lang", "xx"
        )
        docs = docs_in(tmp_path / "b.spacy")
        assert [doc[-1].ent_iob or 0 for doc in docs][2:] == iob[2:] and len(docs) == len(iob)
        assert "1 records without annotation" in said(done)


def test_unannotated_records_stay_open_with_types(tmp_path):
    source = write(tmp_path / "a.jsonl", [SOME, NONE])
    options = "--unannotated", "missing", "--annotated", "NAME"
    run("convert", source, tmp_path / "a.spacy", *options)
    name, nothing = docs_in(tmp_path / "a.spacy")
    assert "annotated" in name.user_data and "annotated" not in nothing.user_data


VARIANTS = ["NAME", "Name", "name", "na-me", "NA_ME", "TOWN"]


def test_variants_of_a_label_are_named_and_joined(tmp_path):
    made = [SOME | {"label": [[0, 3, label]]} for label in (*VARIANTS, "NAME")]
    source = write(tmp_path / "a.jsonl", made)
    text = said(run("convert", source, tmp_path / "a.spacy"))
    assert "NAME (2), Name (1), name (1), na-me (1), NA_ME (1)" in text and "TOWN" not in text
    options = [word for x in VARIANTS[1:5] for word in ("--map", f"{x}=NAME")]
    done = run("convert", source, tmp_path / "b.spacy", *options, "--map", "TOWN=")
    assert "differ" not in said(done)
    found = ends_of(docs_in(tmp_path / "b.spacy"))
    assert found == [[("Ida", "NAME")]] * 5 + [[]] + [[("Ida", "NAME")]]


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.tsv", "Ida\tB-Name\n\nRom\tB-TOWN\n", ()),
        ("a.tsv", "Ida\tName\n\nRom\tTOWN\n", ("--columns", "orth,tag")),
        ("a.jsonl", '{"text": "Ida Rom", "ents": [[0, 3, "Name"], [4, 7, "TOWN"]]}', ()),
        ("a.jsonl", '{"text": "Ida Rom", "ents": [[0, 3, "B-Name"], [4, 7, "O"]]}', ()),
    ],
)
def test_labels_of_every_format_are_renamed(tmp_path, name, text, options):
    (tmp_path / name).write_text(text)
    options = *options, "--map", "Name=NAME", *(("--map", "TOWN=") if "TOWN" in text else ())
    run("convert", tmp_path / name, tmp_path / "a.spacy", *options)
    tokens = [token for doc in docs_in(tmp_path / "a.spacy") for token in doc]
    assert [token.ent_type_ or token.tag_ for token in tokens] == ["NAME", ""]


def test_labels_of_docs_are_renamed(tmp_path):
    doc = Doc(Vocab(), ["Ida", "met", "Rom"], ents=["B-Name", "", "B-TOWN"])
    write(tmp_path / "a.jsonl", [doc.to_json()])
    options = "--map", "Name=NAME", "--map", "TOWN="
    run("convert", tmp_path / "a.jsonl", tmp_path / "a.spacy", *options)
    assert ends_of(docs_in(tmp_path / "a.spacy")) == [[("Ida", "NAME")]]


@pytest.mark.parametrize("pair", ["Nam=NAME", "NAME", "=NAME"])
def test_new_names_of_no_label_are_refused(tmp_path, pair):
    source = write(tmp_path / "a.jsonl", [SOME])
    done = run("convert", source, tmp_path / "a.spacy", "--map", pair, code=1)
    assert "SC614" in done.stderr and ("Did you mean NAME" in done.stderr) == ("Nam=" in pair)
    assert not (tmp_path / "a.spacy").exists()


def converted(path: Path, text: str, *options: str, code: int = 0) -> tuple[list[Doc], str]:
    """Write a text to a file and convert it. RETURNS: its Docs, and all output."""
    if text:
        path.write_bytes(text.encode())
    target = path.with_suffix(".spacy")
    done = run("convert", path, target, "--lang", "xx", "--force", *options, code=code)
    return [] if code else docs_in(target), " ".join(done.output.split())


TEXT = "Ida\r\nmet\r\nNora in Rom.\r\n"


@pytest.mark.parametrize(
    ("text", "offsets", "what"),
    [
        (TEXT, TEXT, ""),
        (TEXT.replace("\r", ""), TEXT, "a line end as two characters"),
        (TEXT, TEXT.replace("\r", ""), "a line end of two characters as one"),
        (TEXT.replace("\r", ""), TEXT.replace("\r", ""), ""),
    ],
)
@pytest.mark.parametrize("kind", ["brat", "jsonl"])
def test_line_ends_count_as_one_or_two_characters(tmp_path, text, offsets, what, kind):
    starts = [offsets.index(word) for word in ("Ida", "Nora", "Rom")]
    spans = [(i, i + len(w), "X") for i, w in zip(starts, ("Ida", "Nora", "Rom"), strict=True)]
    source = tmp_path / "a.jsonl"
    if kind == "brat":
        source = tmp_path / "a.ann"
        (tmp_path / "a.txt").write_bytes(text.encode())
        words = ("Ida", "Nora", "Rom")
        lines = (f"T1\tX {a} {b}\t{word}\n" for (a, b, _), word in zip(spans, words, strict=True))
        docs, output = converted(source, "".join(lines))
    else:
        docs, output = converted(source, json.dumps({"text": text, "label": spans}))
        assert (what in output) and ("texts whose offsets" in output) == bool(what)
    assert ends_of(docs) == [[("Ida", "X"), ("Nora", "X"), ("Rom", "X")]]


@pytest.mark.parametrize("ends", [(0.0, 3.0), ("0", "3"), ("0.0", "3.0"), (0, 3)])
def test_whole_numbers_are_offsets_however_they_are_written(tmp_path, ends):
    docs, _ = converted(tmp_path / "a.jsonl", json.dumps({"text": "Ida", "label": [[*ends, "X"]]}))
    assert ends_of(docs) == [[("Ida", "X")]]


@pytest.mark.parametrize("ends", [(0.5, 3), ("nan", 3), ("inf", 3), (True, 3), ("x", 3)])
def test_other_numbers_are_no_offsets(tmp_path, ends):
    text = json.dumps({"text": "Ida", "label": [[*ends, "X"]]})
    assert "SC624" in converted(tmp_path / "a.jsonl", text, code=1)[1]


def test_the_first_of_two_labels_of_a_span_is_read(tmp_path):
    record = {"text": "Ida", "label": [[0, 3, "B"], [0, 3, "A"]]}
    docs, output = converted(tmp_path / "a.jsonl", json.dumps(record))
    assert ends_of(docs) == [[("Ida", "B")]] and "1 spans have two labels, B and A" in output
    docs, output = converted(tmp_path / "a.jsonl", "", "--map", "B=")
    assert ends_of(docs) == [[("Ida", "A")]] and "two labels" not in output


TASK = {"id": 1, "data": {"text": "Ida"}}


@pytest.mark.parametrize(
    ("task", "what"),
    [
        (TASK | {"annotations": [], "predictions": [{}]}, "predictions only"),
        (TASK | {"predictions": [{}]}, "predictions only"),
        (TASK | {"annotations": [{"was_cancelled": True}]}, "were skipped, cancelled"),
        (TASK | {"completions": [{"skipped": True}]}, "were skipped, cancelled"),
        (TASK | {"annotations": [{"reviews": [{"accepted": False}]}]}, "or rejected"),
        (TASK | {"annotations": []}, "nobody annotated"),
        ({"text": "Ida", "spans": [], "answer": "ignore"}, "reject or ignore"),
    ],
)
def test_what_is_left_out_is_named_where_nothing_is_read(tmp_path, task, what):
    _, output = converted(tmp_path / "a.json", json.dumps([task, task]), code=1)
    assert "SC612" in output and "Left out: 2" in output and what in output


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.xml", "<l>\n\n<a>Ida</a>\n\t<b>x</b>\n</l>", "is XML"),
        ("a.txt", "<NAME>Ida</NAME> came.\n", "is XML"),
        ("a.tsv", "#FORMAT=WebAnno TSV 3.2\n\n1-1\t0-3\tIda\t_\n", "WebAnno TSV"),
        ("a.txt", "Ida/B-X came/O\n\nRom/B-Y ?/O\n", "words with their tags"),
        ("a.txt", "Ida_NNP came_VBD\nRom_NNP ._.\n", "words with their tags"),
        ("seq.in", "who came\nIda came\n", "seq.out"),
        ("a.txt", "who came ?\nIda\nso it goes on\n", "a sentence in each line"),
    ],
)
def test_other_formats_are_named(tmp_path, name, text, said):
    _, output = converted(tmp_path / name, text, code=1)
    assert "SC673" in output and said in output and "read-any-other-format" in output


WORDS = {"tokens": ["Ida", "saw", "Rom"], "ner_tags": ["B-X", "O", "B-Y"]}


@pytest.mark.parametrize(
    ("record", "options"),
    [
        (WORDS, ()),
        ({"words": WORDS["tokens"], "labels": WORDS["ner_tags"], "id": 7}, ()),
        (WORDS | {"pos_tags": ["N", "V", "N"], "chunk_tags": ["B-NP", "O", "O"]}, ()),
        (WORDS | {"ner_tags": ["U-X", "O", "U-Y"]}, ("--scheme", "biluo")),
        (WORDS | {"x": [1, 2, 3]}, ("--columns", "orth,ner,_")),
    ],
)
def test_lists_of_tokens_are_read(tmp_path, record, options):
    empty = {name: [] for name in record}
    for text in (json.dumps([record, empty, record]), f"{json.dumps(record)}\n" * 2):
        docs, _ = converted(tmp_path / "a.json", text, *options)
        assert ends_of(docs) == [[("Ida", "X"), ("Rom", "Y")]] * 2


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (WORDS | {"ner_tags": [1, 0, 2]}, "numbers: see"),
        (WORDS | {"ner_tags": ["N", "V", "N"]}, "--columns"),
        (WORDS | {"ner_tags": ["I-X", "O", "O"]}, "SC615"),
    ],
)
def test_other_lists_of_tokens_are_refused(tmp_path, record, said):
    _, output = converted(tmp_path / "a.json", json.dumps([record, record]), code=1)
    assert said in output
    uneven = WORDS | {"ner_tags": ["O"]}
    _, output = converted(tmp_path / "b.json", json.dumps([WORDS, uneven]), code=1)
    assert "record 2: tokens, ner_tags are not lists of one length" in output


ROWS = [
    ("Sentence #", "Word", "POS", "Tag"),
    ("Sentence: 1", "Ida", "N", "B-X"),
    ("", '"', "Q", "O"),
    ("Sentence: 2", "Rom", "N", "B-Y"),
    ("", ",", "Q", "O"),
]


def quoted(cell: str) -> str:
    return {'"': '""""', ",": '","'}.get(cell, cell)


@pytest.mark.parametrize("sign", [",", ";", "|", "\t"])
@pytest.mark.parametrize("options", [(), ("--columns", "sentence,orth,_,ner")])
@pytest.mark.parametrize("are_filled", [False, True])
def test_sentences_of_csv_are_numbered(tmp_path, sign, options, are_filled):
    rows, number = [], ""
    for first, *others in ROWS:
        number = first or number
        rows.append([number if are_filled else first, *others])
    text = "\r\n".join(sign.join(map(quoted, row)) for row in rows)
    if sign == "\t":
        text = text.replace('""""', '"').replace('","', ",")
    docs, _ = converted(tmp_path / "a.csv", text, *options)
    assert [[token.text for token in doc] for doc in docs] == [["Ida", '"'], ["Rom", ","]]
    assert ends_of(docs) == [[("Ida", "X")], [("Rom", "Y")]]


def test_a_quote_that_is_not_closed_is_named(tmp_path):
    _, output = converted(tmp_path / "a.csv", 'word,tag\nIda,B-X\n",O\nRom,B-Y\n', code=1)
    assert "SC624" in output and "line 3" in output and "quote" in output


def test_wrong_ends_of_sentences_are_named(tmp_path):
    text = "Ida\tB-X\n\nNora\tI-X\ncame\tO\n\nMia\tI-X\n"
    _, output = converted(tmp_path / "a.tsv", text, code=1)
    assert "SC615" in output and "In 2 of 3 sentences the first label is I-" in output


@pytest.mark.parametrize(
    "command",
    [
        ("convert", "gone.jsonl", "a.spacy"),
        ("convert", "gone.tsv", "a.spacy"),
        ("convert", "gone", "a.spacy", "-f", "brat"),
        ("convert", "gone.spacy", "a.tsv"),
        ("import", "gone.model", "a"),
    ],
)
def test_missing_paths_have_a_code(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    done = run(*command, code=1)
    assert "SC672" in done.stderr and "gone" in done.stderr and "Errno" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("label", "model", "in.tsv", "out"),
        ("export", "model", "out", "--format", "wapiti"),
        ("import", "in.model", "out"),
        ("patch", "model", "in.tsv", "out"),
        ("dump", "model", "-o", "out"),
        ("errors", "model", ".", "--html", "out"),
        ("explain", "model", "--html", "out"),
        ("calibrate", "model", ".", "--output", "out"),
        ("convert", "in.tsv", "out.spacy"),
    ],
)
def test_no_command_overwrites_without_force(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name in ("out", "out.spacy"):
        (tmp_path / name).write_text("old")
    assert "SC608" in run(*command, code=1).stderr
    assert "SC608" not in run(*command, "--force", code=1).stderr
    assert (tmp_path / "out").read_text() == "old"


def test_answers_of_spans(tmp_path):
    """Prodigy keeps an answer with each span where answers are merged."""
    spans = [
        {"start": start, "end": start + 3, "label": "NAME", "answer": answer}
        for start, answer in ((0, "accept"), (8, "reject"))
    ]
    record = {"text": "Ida and Ulm", "answer": "accept", "spans": spans}
    [doc], output = converted(tmp_path / "a.jsonl", json.dumps(record))
    assert [x.text for x in doc.ents] == ["Ida"] and [x.ent_iob for x in doc] == [3, 0, 0]
    assert "1 rejected spans" in output


def test_the_annotation_that_a_reviewer_accepted_is_read(tmp_path):
    accepted = [{"value": {"start": 0, "end": 3, "labels": ["NAME"]}}]
    reviews = [[{"accepted": False}], [{"accepted": False}, {"accepted": True}]]
    made = [{"result": [], "reviews": reviews[0]}, {"result": accepted, "reviews": reviews[1]}]
    docs, output = converted(tmp_path / "a.json", json.dumps([TASK | {"annotations": made}]))
    assert ends_of(docs) == [[("Ida", "NAME")]] and "further annotations" not in output


def test_empty_files_of_brat_are_counted(tmp_path):
    for name, spans in (("a", "T1\tNAME 0 3\tIda\n"), ("b", "")):
        (tmp_path / f"{name}.txt").write_text("Ida came.")
        (tmp_path / f"{name}.ann").write_text(spans)
    (tmp_path / "c.txt").write_text("Nobody looked.")
    done = run("convert", tmp_path, tmp_path / "out.spacy")
    assert ends_of(docs_in(tmp_path / "out.spacy")) == [[("Ida", "NAME")], []]
    assert "1 texts whose .ann is empty" in said(done) and "1 texts without .ann" in said(done)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.ann"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_texts_in_utf16_are_read(tmp_path, name, encoding):
    texts = {
        "a.csv": "word,tag\r\nЙда,B-X\r\n",
        "a.tsv": "Йда\tB-X\n",
        "a.jsonl": '{"text": "Йда", "label": [[0, 3, "X"]]}\n',
        "a.ann": "T1\tX 0 3\tЙда\n",
    }
    texts = {name: texts[name]} | ({"a.txt": "Йда\n"} if name == "a.ann" else {})
    for file, text in texts.items():
        mark = "\ufeff" * (encoding == "utf-16-be")
        (tmp_path / file).write_bytes((mark + text).encode(encoding))
    docs, _ = converted(tmp_path / name, "")
    assert ends_of(docs) == [[("Йда", "X")]]


def test_parts_of_a_span_of_brat_over_a_line_end(tmp_path):
    (tmp_path / "a.txt").write_text("Ida\nBerg met Bo .\n")
    parts = "T1\tNAME 0 3;4 8\tIda Berg\nT2\tNAME 0 3;13 15\tIda Bo\n"
    [doc], output = converted(tmp_path / "a.ann", parts)
    assert [x.text for x in doc.ents] == ["Ida\nBerg"] and "1 discontinuous" in output


def test_equal_texts_are_in_one_part(tmp_path):
    made = [SOME] * 4 + records(40, "TOWN NAME") + [NONE | {"label": []}] * 30
    source = write(tmp_path / "a.jsonl", made)
    run("convert", source, tmp_path / "a.spacy", "--dev", "0.2", "--test", "0.1")
    parts = [docs_in(tmp_path / f"{name}.spacy") for name in ("a", "dev", "test")]
    texts = [{doc.text for doc in part} for part in parts]
    assert sum(map(len, texts)) == len(set().union(*texts))
    assert len(parts[1]) < 26 and sum(map(len, parts)) == len(made)
