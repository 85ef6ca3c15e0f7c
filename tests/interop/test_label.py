"""Column files labelled by pipelines, as by `wapiti label` and `crf_test`."""

import gzip
import re
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ..support.commands import run
from ..support.peers import PEERS
from ..support.processes import run_python
from ..support.toy import make_sentences

pytestmark = pytest.mark.usefixtures("own_extensions")

FIVE = (PEERS / "five.txt").read_text(encoding="utf8")
ALL = ",".join(["orth", *(f"_.c{i}" for i in range(1, 5))])
SEEN = [("Ann saw Bo Lee .", "NNP VB NNP NNP .", "B-PER O B-PER I-PER O")]
SEEN += [("the cat saw Ann", "DT NN VB NNP", "O O O B-PER"), ("Bo ran", "NNP VB", "B-PER O")]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A pipeline of tags, which it replaces, of entities and spans by tags, and of a merger."""
    nlp, kind = spacy.blank("xx"), {"@crf_features": "spacy_sparsecrf.Templates.v1"}
    words, tags = ({**kind, "templates": [f"u:{x}[0]", "b:"]} for x in ("orth", "tag"))
    tagger = {"features": words, "overwrite": True}
    for factory, name, config in (
        ("sparse_crf", "tags", tagger),
        ("sparse_crf_ner", "ner", {"features": tags}),
        ("sparse_crf_spans", "people", {"features": tags}),
    ):
        nlp.add_pipe(factory, name, config=config)
    examples = []
    for text, own, ents in SEEN * 5:
        words, given = text.split(), {"tags": own.split(), "ents": ents.split()}
        gold = Doc(nlp.vocab, words=words, **given)
        gold.spans["sc"] = [Span(gold, x.start, x.end, label="WHO") for x in gold.ents]
        examples.append(Example(Doc(nlp.vocab, words=words, tags=given["tags"]), gold))
    nlp.initialize(lambda: examples)
    for _ in range(4):
        nlp.update(examples)
    nlp.add_pipe("merge_entities")
    path = tmp_path_factory.mktemp("labelled") / "model"
    nlp.to_disk(path)
    return path


@pytest.mark.parametrize("columns", ["", "orth,tag", ALL])
@pytest.mark.parametrize("trained", ["five.wapiti", "five_crfpp.txt"])
def test_columns_that_patterns_read_are_named_and_labelled_as_by_the_peers(
    trained, columns, tmp_path
):
    """A value _ is a text for Wapiti and CRF++, and changes labels."""
    given = ["--columns", columns] if columns else []
    done = run("import", PEERS / trained, tmp_path / "model", "--target", "_.label", *given)
    named = [*(columns or "orth").split(",")]
    named += [f"_.column{i}" for i in range(len(named), 5)]
    assert (",".join(named) in done.output.replace("\n", "")) == (columns != ALL)
    for name in named:
        if name.startswith("_."):
            Token.remove_extension(name[2:])
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_text(re.sub(r" \S+$", "", FIVE, flags=re.M), encoding="utf8")
    run("label", tmp_path / "model", source, out)
    assert out.read_text(encoding="utf8") == FIVE
    source.write_text(FIVE, encoding="utf8")  # with gold labels, which are ignored
    run("label", tmp_path / "model", source, out, "--force")
    assert out.read_text(encoding="utf8") == re.sub(r"( \S+)$", r"\1\1", FIVE, flags=re.M)


def test_a_fresh_process_labels_by_an_imported_model(tmp_path):
    """It says what it reads; columns that the file lacks are refused, as is the target's column."""
    for line in (
        ["import", PEERS / "five.wapiti", "model", "--target", "_.y"],
        ["label", "model", PEERS / "five.txt", "out"],
    ):
        assert "_.column4" in run_python("-m", "spacy_sparsecrf", *line, cwd=tmp_path).stdout
    found = (tmp_path / "out").read_text(encoding="utf8").splitlines()
    assert [line.split(" ")[-1:] for line in found] == [
        line.split(" ")[-1:] for line in FIVE.splitlines()
    ]
    (tmp_path / "few").write_text("glim x im\n")
    done = run("label", tmp_path / "model", tmp_path / "few", tmp_path / "no", code=1)
    assert re.search(r"SC611.*3 columns, but 5 .*orth,_.column1", done.stderr), done.stderr
    given = "import", PEERS / "five.wapiti", tmp_path / "no", "--target", "_.column1"
    assert "SC614" in run(*given, code=1).stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("name", "options", "text", "expected"),
    [
        # Headers, comments, documents, line ends and no-break spaces.
        (
            "a.tsv",
            "-c ner --columns orth,tag,ner",
            "Token\tTag\tNER\r\n# Ann\r\nAnn\tNNP\tI-X\r\nsaw\tVB\tB-PER\r\n\r\n"
            "-DOCSTART-\r\n\r\nthe\tDT\tO\r\n10\u00a0000\tNNP\t_\r\n",
            "Token\tTag\tNER\n# Ann\nAnn\tNNP\tI-X\tB-PER\nsaw\tVB\tB-PER\tO\n\n"
            "-DOCSTART-\n\nthe\tDT\tO\tO\n10\u00a0000\tNNP\t_\tB-PER\n",
        ),
        # One column is words; the tags are the pipeline's.
        ("a.txt.gz", "-c ner", "Bo\nran\n\n\n \nthe", "Bo\tB-PER\nran\tO\n\n\n \nthe\tO\n"),
        ("a.txt", "-c people", "saw\nAnn\n", "saw\tO\nAnn\tB-WHO\n"),
        # Tags in the file count, and not those of the pipeline, except if it writes them.
        ("a", "-c ner --columns orth,tag", "Ann  DT \nthe NNP", "Ann  DT O\nthe NNP B-PER\n"),
        ("a", "-c tags --columns orth,tag", "Bo  DT \nran\tNNP", "Bo  DT NNP\nran\tNNP\tVB\n"),
        # By default, words are found as `convert` does, and empty last fields left out.
        (
            "a",
            "-c tags",
            "1\tthe\tO\n2\tcat\tO\t\n\n1\tBo\tB-X\n",
            "1\tthe\tO\tDT\n2\tcat\tO\tNN\n\n1\tBo\tB-X\tNNP\n",
        ),
        # Each line is a token.
        ("a", "-c tags -f wapiti --columns orth,_", "# x\nAnn y", "# x VB\nAnn y NNP\n"),
    ],
)
def test_lines_are_kept_with_one_more_column(model, name, options, text, expected, tmp_path):
    source, out = tmp_path / name, tmp_path / f"out.{name}"
    packs, unpacks = (gzip.compress, gzip.decompress) if name.endswith(".gz") else (bytes, bytes)
    source.write_bytes(packs(text.encode()))
    run("label", model, source, out, *options.split())
    assert unpacks(out.read_bytes()).decode() == expected


def test_labels_are_those_of_the_pipeline_on_the_same_words(model, tmp_path):
    sentences = [words for words, _ in make_sentences(1500, seed=8)]
    sentences += [text.split() for text, _, _ in SEEN]
    text = "\n".join("".join(f"{word}\n" for word in words) for words in sentences)
    (tmp_path / "in").write_text(text, encoding="utf8")
    nlp = spacy.load(model, disable=["merge_entities"])
    docs = [*nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences)]
    of_ner = ["-".join(filter(None, (x.ent_iob_, x.ent_type_))) for doc in docs for x in doc]
    for name, labels in (("tags", [x.tag_ for doc in docs for x in doc]), ("ner", of_ner)):
        run("label", model, tmp_path / "in", tmp_path / "out", "-c", name, "--force")
        lines = (tmp_path / "out").read_text(encoding="utf8").splitlines()
        assert [line.split("\t")[1] for line in lines if line] == labels


@Language.component("spoil_annotation")
def spoil_annotation(doc: Doc) -> Doc:
    for token in doc:
        token.tag_, token.lemma_, token._.c1 = "QQ", "nn", "zz"
    return doc


def test_no_pipe_replaces_annotation_of_the_file(tmp_path):
    given = PEERS / "five.wapiti", tmp_path / "a", "--target", "_.label"
    run("import", *given, "--columns", "orth,_.c1,lemma,tag,_.c4")
    nlp = spacy.load(tmp_path / "a")
    nlp.add_pipe("spoil_annotation", first=True)
    nlp.to_disk(tmp_path / "b")
    run("label", tmp_path / "b", PEERS / "five.txt", tmp_path / "out")
    found = [line.split() for line in (tmp_path / "out").read_text().splitlines() if line]
    assert [row[-1] for row in found] == [row[-2] for row in found]


@pytest.mark.parametrize(
    ("name", "options", "text", "code", "message"),
    [
        ("a", "", "Ann\n", 1, "SC602.*tags, ner, people"),
        ("a", "-c ner", "\n", 1, "SC612.*no tokens"),
        ("a", "-c ner", "Ann NNP\n", 1, "SC637.*--columns orth,tag"),
        ("a", "-c ner --columns orth", "Ann NNP\n", 1, "SC611"),
        ("a.conllu", "-c ner", "Ann\n", 2, "conllu"),
    ],
)
def test_files_that_cannot_be_labelled(model, name, options, text, code, message, tmp_path):
    (tmp_path / name).write_text(text)
    done = run("label", model, tmp_path / name, tmp_path / "out", *options.split(), code=code)
    assert re.search(message, done.stderr), done.stderr
    assert not (tmp_path / "out").exists()
