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
from spacy_sparsecrf.pipeline.type_counts import SOURCE, TypeCounts

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
    run("config", "ner", "--lang", "en", "-o", path / "ner.cfg")
    runs = {"outside": ((), ()), "open": (("TOWN",), ()), "never": (("TOWN",), ("TOWN",))}
    scores, notes = {}, {}
    for name, of_files in runs.items():
        (path / name).mkdir()
        for source, types in zip((old, path / "new.jsonl"), of_files, strict=True):
            options = [word for x in types for word in ("--annotated", x)]
            run("convert", source, path / name / f"{source.stem}.spacy", "--lang", "en", *options)
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


def test_counts_of_parts_are_those_of_all_texts():
    draw, joined, all_texts = random.Random(0), TypeCounts(), TypeCounts()
    for _ in range(3):
        part = TypeCounts()
        for _ in range(9):
            names = {name: draw.randrange(3) for name in "AB"}
            for counts in (part, all_texts):
                counts.add(names, {SOURCE: draw.choice("xy") if counts is part else ""})
        joined.join(part)
    for key in ("n", "n_units", "with_type", "bounds"):
        assert getattr(joined, key) == getattr(all_texts, key)


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
            "convert", source, tmp_path / "b.spacy", "--unannotated", how, "--force", "--lang", "en"
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
