"""Pipelines imported from models of other programs label as these programs do."""

import json
import re
import struct
import tracemalloc
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Token

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.interop.importing import import_model, names_by_patterns
from spacy_sparsecrf.interop.patterns.macros import parse_patterns
from spacy_sparsecrf.interop.patterns.pattern_featurizer import WAPITI

from ..support.commands import run
from ..support.golden import read_golden
from ..support.peers import PEERS, TESTS, crfsuite
from ..support.sequences import make_xy

MODELS = ["crf.wapiti", "memm.wapiti", "maxent.wapiti", "crfpp.txt"]
WAPITI_MODEL = "#mdl#2#1\n#rdr#1/0/0\n2:u0,\n#qrk#1\n1:A,\n#qrk#1\n2:u0,\n"


def labels_of(directory: Path, sentences: Iterable[list[list[str]]], attr: str) -> list[list[str]]:
    """Return a pipeline's labels of sentences of words and tags."""
    nlp = spacy.load(directory)
    docs = []
    for rows in sentences:
        words, tags = [row[0] for row in rows], [row[1] for row in rows]
        docs.append(Doc(nlp.vocab, words=words, tags=tags if attr != "tag" else None))
    found = [*nlp.pipe(docs)]
    if attr == "tag":
        return [[token.tag_ for token in doc] for doc in found]
    return [[token._.get(attr.removeprefix("_.")) for token in doc] for doc in found]


def test_columns_of_extensions_are_registered(tmp_path, own_extensions):
    """The column beside the words is an extension attribute that nobody has registered."""
    options = "--columns", "orth,_.given", "--target", "_.chunk"
    run("import", PEERS / MODELS[0], tmp_path / "in", *options)
    Token.remove_extension("given")
    nlp = spacy.load(tmp_path / "in")
    block, *_ = (PEERS / "labels.txt").read_text(encoding="utf8").split("\n\n")
    rows = [line.split(" ") for line in block.split("\n")]
    doc = Doc(nlp.vocab, words=[row[0] for row in rows])
    for token, row in zip(doc, rows, strict=True):
        token._.given = row[1]
    assert [token._.chunk for token in nlp(doc)] == [row[2] for row in rows]


@pytest.mark.parametrize("model", MODELS)
def test_labels_are_those_of_wapiti_and_crfpp(model, tmp_path):
    run("import", PEERS / model, tmp_path, "--columns", "orth,tag", "--target", "_.chunk")
    blocks = (PEERS / "labels.txt").read_text(encoding="utf8").split("\n\n")
    sentences = [[line.split(" ") for line in block.split("\n")] for block in blocks if block]
    column = 2 + MODELS.index(model)
    expected = [[row[column] for row in rows] for rows in sentences]
    assert len({label for labels in expected for label in labels}) > 3
    assert labels_of(tmp_path, sentences, "_.chunk") == expected


@pytest.mark.parametrize(
    "form", [repr, "{:.17e}".format, lambda value: f"+{value!r}".replace("+-", "-")]
)
def test_decimal_weights_and_a_header_without_a_type_are_read_as_by_wapiti(form, tmp_path):
    text = (PEERS / "crf.wapiti").read_text(encoding="utf8")
    decimal = re.sub(r"(?<==)-?0x.*", lambda found: form(float.fromhex(found[0])), text)
    assert "0x" not in decimal
    (tmp_path / "a").write_text(decimal.replace("#mdl#2#", "#mdl#", 1), encoding="utf8")
    (tmp_path / "b").write_text(text, encoding="utf8")
    for name in "ab":
        run(
            "import",
            tmp_path / name,
            tmp_path / f"{name}.model",
            "--columns",
            "orth,tag",
            "--target",
            "_.x",
        )
    dumps = [run("dump", tmp_path / f"{name}.model").stdout for name in "ab"]
    assert dumps[0] == dumps[1]


def test_missing_columns_are_warned_of(tmp_path):
    given = "import", PEERS / MODELS[0], tmp_path / "model", "--columns", "orth,tag"
    names = tmp_path / "names.json"
    names.write_text("{}")
    done = run(*given, "--target", "_.chunk", "--features", names, code=2)
    assert "--features is for models of CRFsuite" in done.output
    run(*given, "--target", "_.chunk")
    nlp = spacy.load(tmp_path / "model")
    with pytest.warns(SparseCRFWarning, match="SCW206.*tag"):
        nlp(Doc(nlp.vocab, words=["a", "b"] * 20))


def test_labels_are_those_of_crfsuite(tmp_path):
    X, Y = make_xy(40)
    tagger = crfsuite(X, Y, tmp_path / "model")
    (tmp_path / "tests.json").write_text(json.dumps(TESTS))
    run("import", tmp_path / "model", tmp_path / "out", "--features", tmp_path / "tests.json")
    X, _ = make_xy(60, seed=2)
    sentences = [[[token["word"], ""] for token in tokens] for tokens in X]
    # Shorter words have no suffix of three characters.
    X = [
        [{k: v for k, v in token.items() if not k.endswith("end") or len(v) == 3} for token in own]
        for own in X
    ]
    found = labels_of(tmp_path / "out", sentences, "tag")
    assert found == [tagger.tag(tokens) for tokens in X]


@pytest.mark.parametrize(("feature", "names"), read_golden(__file__, "features_of_patterns.jsonl"))
def test_a_feature_is_each_test_that_becomes_its_text(feature, names):
    text = 'u1:%x[0,0]/%x[0,1]\nu2:%t[0,0,"a"]%m[0,0,"b*"]\nu3:%x[0,0]%x[0,1]\nb\n'
    patterns = parse_patterns(text, WAPITI, 2, "here")
    assert names_by_patterns(feature, patterns, repeat(None, 10_000)) == names


def damaged(name: str, old: str, new: str) -> str:
    text = (PEERS / name).read_text(encoding="utf8")
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a word\n", (), "SC630"),
        (damaged("crf.wapiti", "#rdr#11", "#rdr#x"), (), "SC631.*Wapiti.*expected"),
        (damaged("crf.wapiti", "#mdl#2#", "#mdl#2#1"), (), "SC631.*weights, not 1"),
        (damaged("crf.wapiti", "11:u01:", "12:u01:"), (), "SC631.*end of a text"),
        ("#mdl#2#1\n", (), "SC631"),
        ("#mdl#2#0\n#rdr#0/0/0\n#qrk#1\n1:A,\n#qrk#1\n2:ua,\n", (), "SC631.*no patterns"),
        (damaged("crf.wapiti", "10:u:%x[-1,1]", "13:u:%x[-1,9999]"), (), "SC152.*9999.* 999"),
        (WAPITI_MODEL + "0=0x1p+9999\n", (), "SC631.*too large"),
        (WAPITI_MODEL + "0=nan\n", (), "SC631.*not finite"),
        (WAPITI_MODEL + "0=1e999\n", (), "SC631.*not finite"),
        (WAPITI_MODEL + "0=0.8p\n", (), "SC631.*Wapiti"),
        (damaged("crfpp.txt", "maxid: ", "maxid: 1"), (), "SC631.*numbers of its features"),
        (damaged("crfpp.txt", "maxid: ", f"maxid: {10**30}"), (), "SC631.*too large"),
        ("version: 100\n\nA\n", (), "SC631.*CRF"),
        (damaged("crfpp.txt", "xsize: 2", "xsize: 1"), ("--columns", "orth,pos"), "SC614.*1 col"),
        (
            WAPITI_MODEL + "0=1\n",
            ("--columns", "orth, tag", "--target", "tag"),
            "SC614.*--target 'tag'",
        ),
        ("lCRF and nothing else, really", (), "SC631.*CRFsuite"),
        ("FILEHEADER = {\n}\n\nLABELS = {\n  what\n", (), "SC630"),
        (WAPITI_MODEL + "0=1\n", ("--columns", "orth,tag"), "SC614.*--target 'tag'"),
        ("a word\n", ("--features", PEERS / "labels.txt"), "SC614.*--features"),
        (
            damaged("crf.wapiti", "10:u:%x[-1,1]", "10:u:%x[-1,2]"),
            ("--columns", "orth,_.column2"),
            "SC614.*--columns '_.column2'.*further columns",
        ),
    ],
)
def test_what_cannot_be_imported(text, options, message, tmp_path):
    source = tmp_path / "model"
    source.write_text(text, encoding="utf8")
    result = run("import", source, tmp_path / "out", *options, code=1)
    assert re.search(message, result.output), result.output
    assert not (tmp_path / "out").exists()


def test_features_of_crfsuite_that_are_no_tests(tmp_path):
    crfsuite(*make_xy(20), tmp_path / "model")
    result = run("import", tmp_path / "model", tmp_path / "out", code=1)
    assert "SC810" in result.output and "--features" in result.output


@pytest.mark.parametrize("last", ["", '%t[0,0,"z"]', "/"])
def test_texts_that_patterns_generate_in_too_many_ways_are_refused(tmp_path, last):
    """Of five macros in a row, also if none of the ways fits the rest."""
    pattern, feature = "u:" + 5 * "%x[0,0]" + last, "u:" + "q" * 200
    texts = [f"{len(text)}:{text},\n" for text in (pattern, "A", "B", feature)]
    lines = "#mdl#2#1\n#rdr#1/1/0\n{}#qrk#2\n{}{}#qrk#1\n{}0=0x1p+0\n".format(*texts)
    (tmp_path / "model").write_text(lines, encoding="utf8")
    with pytest.raises(SparseCRFError, match="SC631.*too many ways"):
        import_model(tmp_path / "model", ["orth"], {}, "float64")


def test_names_that_share_bytes_may_not_be_longer_than_the_file(tmp_path):
    """A database of 5,000 names, each of which is the same text of 100,000 bytes."""
    order = 0x62445371
    names = struct.pack("<4s5I5000I", b"CQDB", 0, 0, order, 5000, 24, *[24 + 4 * 5000] * 5000)
    names += struct.pack("<II", 0, 100_001) + b"q" * 100_000 + b"\0"
    weights = struct.pack("<4sII", b"FEAT", 12, 0)
    places, size = (48, 60, 60, 0, 0), 60 + len(names)
    head = struct.pack("<4sI4s9I", b"lCRF", size, b"FOMC", 100, 0, 0, 0, *places)
    (tmp_path / "model").write_bytes(head + weights + names)
    tracemalloc.start()
    with pytest.raises(SparseCRFError, match="SC631.*longer than the file"):
        import_model(tmp_path / "model", ["orth"], {}, "float64")
    assert tracemalloc.get_traced_memory()[1] < 1 << 23
    tracemalloc.stop()
