"""Conversion between annotated text in columns and Docs, both ways."""

import gzip
import itertools
import os
import re
from pathlib import Path
from threading import Thread

import pytest
import spacy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.interop.column_attributes import parse_columns
from spacy_sparsecrf.interop.columns import BLANKS
from spacy_sparsecrf.interop.docs import STORED, read_docs, write_docs
from spacy_sparsecrf.interop.formats import Format, format_of, open_source
from spacy_sparsecrf.interop.schemes import BadLabelError, ColumnScheme, read_spans, write_spans
from spacy_sparsecrf.interop.text_files import read_lines, unpack

from ..support.commands import run
from ..support.golden import read_golden

pytestmark = pytest.mark.usefixtures("own_extensions")

EVERY_COLUMN = "orth,tag,pos,morph,lemma,ner,chunk,spans:other,space_after,_.custom,_"


def docs_of(path: Path, kind: Format, columns: str = "", **options) -> list[Doc]:
    given = {key: options.pop(key) for key in ("attribute",) if key in options}
    source = open_source(path, kind, parse_columns(columns) if columns else (), **given)
    return [*read_docs(source, Vocab(), **options)]


def stored(docs: list[Doc], path: Path) -> list[Doc]:
    """Return Docs after a round trip through a .spacy file, with another vocab."""
    DocBin(attrs=STORED, store_user_data=True, docs=docs).to_disk(path)
    return [*unpack(path, Vocab())]


def text_of(docs: list[Doc], columns: str, **options) -> str:
    return "".join(write_docs(docs, Path("x.spacy"), parse_columns(columns), **options))


CRFSUITE = "DT\tw[0]=The\tw[1]=a\\:b:0.5\nNN\tb\tw[0]=x\\\\y\\:z:2\n\nVB\tw[0]=Run\n"


@pytest.mark.parametrize(
    ("kind", "options", "text", "columns", "expected"), read_golden(__file__, "converted.jsonl")
)
def test_converted_texts_are_those_of_the_table(tmp_path, kind, options, text, columns, expected):
    """Compare each Doc as columns; options: of the command."""
    path = tmp_path / "a"
    path.write_text(text, encoding="utf8")
    assert [text_of([doc], columns) for doc in docs_of(path, Format(kind), **options)] == expected


@pytest.mark.parametrize("attribute", ["", "w[2]"])
def test_crfsuite_without_words(tmp_path, attribute):
    path = tmp_path / "a.crfsuite"
    path.write_text("X\tw[2]=a\n" + CRFSUITE)
    with pytest.raises(SparseCRFError, match=r"SC624.*line [12].*--columns.*orth=w\[0\],ner"):
        docs_of(path, Format.crfsuite, attribute=attribute)
    path.write_text("B-X\tw=a\n")
    with pytest.raises(SparseCRFError, match="SC614.*tag.*ner"):
        docs_of(path, Format.crfsuite, "orth,tag,ner", attribute="w")
    path.write_text("X\n")
    with pytest.raises(SparseCRFError, match="SC624.*has: no attributes"):
        docs_of(path, Format.crfsuite, attribute="w")


def test_marks_of_documents_are_words_in_conllu(tmp_path):
    path = tmp_path / "a.conllu"
    rows = (f"{i}\t{word}\t_\tX" + "\t_" * 6 for i, word in enumerate(("-DOCSTART-", "a"), 1))
    path.write_text("\n".join(rows))
    (doc,) = docs_of(path, Format.conllu)
    assert [token.text for token in doc] == ["-DOCSTART-", "a"]
    with pytest.raises(SparseCRFError, match="SC619.*Token 1.*orth.*begins a document"):
        text_of([doc], "orth,pos")


def test_lines_of_pipes_are_read_once(tmp_path):
    os.mkfifo(tmp_path / "a.tsv")
    writer = Thread(target=lambda: (tmp_path / "a.tsv").write_text("a\tX\n" * 20_000))
    writer.start()
    assert sum(map(len, read_lines(tmp_path / "a.tsv"))) == 60_000
    writer.join()


def test_documents_of_conllu(tmp_path):
    path, rest = tmp_path / "a.conllu", "\t_" * 8
    heads = "# newdoc id = x\n# text = a\n", "", "# newdoc\n1.1\tgone" + rest + "\n\n", "#newdocs\n"
    texts = [f"{head}1\t{word}{rest}\n" for head, word in zip(heads, "abcd", strict=True)]
    path.write_text("\n".join(texts))
    docs = docs_of(path, Format.conllu, n_sentences=9)
    assert [[token.text for token in doc] for doc in docs] == [["a", "b"], ["c", "d"]]
    assert [doc.user_data["document"] for doc in docs] == ["1", "2"]
    path.write_text("\n".join([texts[0], *(texts[1].replace("b", f"b{i}") for i in range(9))]))
    run("convert", path, tmp_path / "a.spacy", "--dev", "0.2")  # of one document
    assert len([*unpack(tmp_path / "dev.spacy", Vocab())]) == 2


@pytest.mark.parametrize(
    ("kind", "text", "columns", "message"), read_golden(__file__, "bad_columns.jsonl")
)
def test_bad_columns(tmp_path, kind, text, columns, message):
    path = tmp_path / "a.tsv"
    path.write_text(text)
    with pytest.raises(SparseCRFError, match=message):
        docs_of(path, Format(kind), columns)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes("a\tX\nStraße\tX\n".encode("latin1"))
    with pytest.raises(SparseCRFError, match="SC610.*a.tsv, line 2, is not UTF-8"):
        docs_of(path, Format.tsv)
    zipped = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tX\n"))
    assert [doc.text for doc in docs_of(path, Format.tsv, "orth,tag")] == ["a "]
    for damaged in (b"plain", gzip.compress(b"a\tX\n" * 999)[:-9]):
        zipped.write_bytes(damaged)
        with pytest.raises(SparseCRFError, match=r"SC618.*a\.tsv\.gz"):
            docs_of(zipped, Format.tsv)
    for content in (b"", b"no DocBin", gzip.compress(b"x")):
        path.write_bytes(content)
        with pytest.raises(SparseCRFError, match="SC621.*a.tsv"):
            [*unpack(path, Vocab())]
    path.write_bytes("a\tX\n".encode("utf-16")[:-1])
    with pytest.raises(SparseCRFError, match="SC610.*line 1, is not UTF-8: truncated data"):
        docs_of(path, Format.tsv)


@pytest.mark.parametrize(
    ("encoding", "text", "advice"),
    [
        ("latin1", "Die Straße\tO\nfür\tO\n", "-f cp1252`"),
        ("cp1252", "5°\tO\n20 €\tO\n«\xa0où\xa0»\tO\n", "cp1252 "),
        ("cp1250", "Łódź\tB-LOC\nleży\tO\n", "-f cp1250`"),
        ("euc-jp", "これは\tO\n京都\tB-LOC\nです。\tO\n", "euc-jp (これは 京都 です。)"),
        ("shift_jis", "これは\tO\n京都\tB-LOC\nです。\tO\n", "shift_jis (これは"),
        ("cp1251", "мы\tO\nв Москве\tB-LOC\n", "ENCODING.*cp1251 (мы в Москве), koi8-r"),
        ("koi8-r", "мы\tO\nв Москве\tB-LOC\n", "ENCODING.*koi8-r (мы в Москве)"),
        ("euc-kr", "나는 서울에\tO\n", "ENCODING.*euc-kr (나는 서울에)"),
        ("utf-16-le", "Ulm\tB-LOC\nöd\tO\n", "-f utf-16-le`"),
    ],
)
def test_only_encodings_in_which_a_file_is_text_are_proposed(tmp_path, encoding, text, advice):
    path = tmp_path / "a.tsv"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(SparseCRFError, match="SC610") as caught:
        docs_of(path, Format.tsv)
    said = str(caught.value)
    assert re.search(".*".join(map(re.escape, advice.split(".*"))), said), said
    assert encoding in ("latin1", "cp1250", "cp1252") or "cp125" not in said.replace(
        "cp1251", ""
    ).replace("cp1253", "")
    path.write_bytes(bytes(range(1, 256)))
    with pytest.raises(SparseCRFError, match="if it is text, with one of cp1252, cp1250"):
        docs_of(path, Format.tsv)


def test_gold_tokens_of_blanks_are_not_counted_as_cut(tmp_path):
    (tmp_path / "a.tsv").write_text("Ulm\tB-LOC\n \tO\nist\tO\n  \tO\ndo-it\tO\n")
    done = run("convert", tmp_path / "a.tsv", tmp_path / "a.spacy", "--lang", "en")
    assert "splits 1 of 3 tokens (33.33%)" in " ".join(done.stderr.split())
    (tmp_path / "a.tsv").write_text("ผม\tO\n \tO\nไป\tO\n")
    done = run("convert", tmp_path / "a.tsv", tmp_path / "b.spacy", "--columns", "orth,ner")
    assert "splits all 2 tokens" in " ".join(done.stdout.split())


def test_marks_and_ends_of_lines_of_other_systems_and_words_that_begin_as_files_do(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress("\ufeffa\tX\r\n\r\nb\u2028c\tY\x85".encode()))
    docs = docs_of(path, Format.tsv, "orth,tag")
    assert [(t.text, t.tag_) for doc in docs for t in doc] == [("a", "X"), ("b\u2028c", "Y\x85")]
    words, path = ["\ufeffa", "\ufeffb"], tmp_path / "b.tsv"
    path.write_text(text_of([Doc(Vocab(), words)] * 2, "orth"), encoding="utf8")
    assert [[t.text for t in doc] for doc in docs_of(path, Format.tsv, "orth")] == [words] * 2


@pytest.mark.parametrize(("columns", "code"), read_golden(__file__, "bad_lists_of_columns.jsonl"))
def test_bad_lists_of_columns(columns, code):
    with pytest.raises(SparseCRFError, match=code):
        parse_columns(columns)


def make_doc(**arguments) -> Doc:
    return Doc(Vocab(), words=["a", "b c", "d"], **arguments)


def test_values_that_columns_cannot_hold():
    with pytest.raises(SparseCRFError, match="SC619.*Token 2 of Doc 1.*orth: 'b c'"):
        text_of([make_doc()], "orth", separator=BLANKS)
    assert text_of([make_doc()], "orth") == "a\nb c\nd\n\n"
    with pytest.raises(SparseCRFError, match="SC619.*Token 1 of Doc 2.*tag: 'x.ny'"):
        text_of([make_doc(), make_doc(tags=["x\ny", "", ""])], "orth,tag")
    for text in ("a ", " a"):
        with pytest.raises(SparseCRFError, match="SC619.*Token 1.*blank at an end"):
            text_of([Doc(Vocab(), words=[text])], "orth")
    header = Doc(Vocab(), words=["Words", "Words"], lemmas=["word", "word"])
    with pytest.raises(SparseCRFError, match="SC619.*Token 1.*orth: 'Words'.*header"):
        text_of([header], "orth,lemma")
    assert text_of([header], "orth,lemma,tag").startswith("Words\tword\t_\n")
    doc = make_doc()
    doc.spans["sc"] = [doc[0:2], doc[1:3]]
    with pytest.raises(SparseCRFError, match="SC619.*without a label"):
        text_of([doc], "orth,chunk")
    doc.spans["sc"] = [spacy.tokens.Span(doc, *ends, label="X") for ends in ((0, 2), (1, 3))]
    with pytest.raises(SparseCRFError, match="SC619.*Token 2.*overlaps"):
        text_of([doc], "orth,chunk")


def test_a_token_of_blanks_only_would_end_a_sentence():
    doc = Doc(Vocab(), words=["a", " "], tags=["X", " "])
    for columns in ("orth,tag", "orth"):
        with pytest.raises(SparseCRFError, match="SC619.*blanks in all columns"):
            text_of([doc], columns)
    assert text_of([doc], "orth,space_after") == "a\t1\n \t1\n\n"


def test_docs_without_some_of_what_is_written():
    doc = make_doc(ents=["B-X", "I-X", ""])
    assert text_of([Doc(Vocab()), doc], "orth,tag,ner,chunk") == (
        "a\t_\tB-X\tO\nb c\t_\tI-X\tO\nd\t_\t_\tO\n\n"
    )
    # Entities that continue beyond the end of a sentence are cut.
    doc = make_doc(ents=["B-X", "I-X", "I-X"], sent_starts=[True, False, True])
    with pytest.warns(SparseCRFWarning, match="SCW221"):
        assert text_of([doc], "orth,ner") == "a\tB-X\nb c\tI-X\n\nd\tB-X\n\n"


words = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r \ufeff"), min_size=1, max_size=5
)
labels = st.sampled_from(["A", "B-X", "O"])
scheme = st.sampled_from([scheme for scheme in ColumnScheme if scheme is not ColumnScheme.io])


@st.composite
def spans(draw: st.DrawFn, n: int) -> list[tuple[int, int, str]]:
    cuts = sorted(draw(st.sets(st.integers(0, n), max_size=n + 1)))
    pairs = itertools.pairwise(cuts)
    found = [(a, b, draw(labels)) for a, b in pairs if draw(st.booleans())]
    return found


@st.composite
def corpora(draw: st.DrawFn, scheme: ColumnScheme) -> str:
    text = ""
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 6))
        entities, chunks, others = (write_spans(draw(spans(n)), n, scheme) for _ in range(3))
        for i in range(n):
            row = [
                draw(words),
                draw(st.one_of(words, st.just("_"))),
                draw(st.sampled_from(["NOUN", "_", "X"])),
                draw(st.sampled_from(["Case=Nom|Number=Sing", "_"])),
                draw(st.one_of(words, st.just("_"))),
                # An unknown entity label inside another entity would cut it.
                "_" if entities[i] == "O" and draw(st.booleans()) else entities[i],
                chunks[i],
                others[i],
                draw(st.sampled_from("01")),
                draw(st.one_of(words, st.just("_"))),
                "_",
            ]
            text += "\t".join(row) + "\n"
        text += "\n"
    return text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), scheme, st.integers(1, 3))
def test_text_to_docs_and_back(tmp_path, data, scheme, n):
    text = data.draw(corpora(scheme))
    path = tmp_path / "a.tsv"
    path.write_text(text, encoding="utf8", newline="\n")
    docs = docs_of(path, Format.tsv, EVERY_COLUMN, n_sentences=n, scheme=scheme)
    n_sentences = text.count("\n\n")
    assert len(docs) == -(-n_sentences // n)
    assert sum(len([*doc.sents]) for doc in docs) == n_sentences
    back = stored(docs, tmp_path / "a.spacy")
    assert text_of(back, EVERY_COLUMN, scheme=scheme) == text


@given(st.data(), scheme, st.integers(1, 8))
def test_spans_to_labels_and_back(data, scheme, n):
    found = data.draw(spans(n))
    assert read_spans(write_spans(found, n, scheme), scheme) == found


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), max_size=8))
def test_spans_are_those_that_spacy_finds(labels):
    doc = Doc(Vocab(), words=["w"] * len(labels))
    expected = [(s.start, s.end, s.label_) for s in biluo_tags_to_spans(doc, iob_to_biluo(labels))]
    assert read_spans(labels, ColumnScheme.iob1) == expected
    try:
        found = read_spans(labels, ColumnScheme.iob2)
    except BadLabelError as error:
        assert labels[error.index].startswith("I-")
        assert error.index == 0 or labels[error.index - 1][2:] != labels[error.index][2:]
    else:
        assert found == expected


@pytest.mark.parametrize(("scheme", "labels", "index"), read_golden(__file__, "bad_labels.jsonl"))
def test_labels_that_mark_no_spans(scheme, labels, index):
    with pytest.raises(BadLabelError) as caught:
        read_spans(labels, ColumnScheme(scheme))
    assert caught.value.index == index


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"), read_golden(__file__, "files.jsonl")
)
def test_files_are_read_right_or_refused(tmp_path, name, text, options, expected):
    """Compare each Doc as WORD/LABEL, or match the message of an error."""
    path, target = tmp_path / name, tmp_path / "out.spacy"
    path.write_text(text, encoding="utf8", newline="")
    is_refused = isinstance(expected, str)
    done = run("convert", path, target, *options, code=int(is_refused))
    if is_refused:
        assert re.search(expected, done.stderr), done.stderr
        assert not target.exists()
        return
    sentences = text_of([*unpack(target, Vocab())], "orth,ner").split("\n\n")[:-1]
    assert [own.replace("\n", " ").replace("\t", "/") for own in sentences] == expected


def test_formats_show_in_names_and_bmes_is_read_as_bioes(tmp_path):
    names = {"a.tsv.gz": "columns", "b.x.conllu": "conllu", "c.json": "json", "d.doc": "columns"}
    assert {name: format_of(Path(name)).value for name in names} == names
    assert format_of(tmp_path) is Format.brat
    labels = ["B-PER", "M-PER", "E-PER", "S-LOC"]
    assert read_spans(labels, ColumnScheme.bioes) == [(0, 3, "PER"), (3, 4, "LOC")]


def test_io_marks_spans_by_their_labels_alone(tmp_path):
    path, target = tmp_path / "a.tsv", tmp_path / "a.spacy"
    path.write_text("a\tvitamin-B\nb\tvitamin-B\nc\tX\nd\t_\n" + "o\tO\n" * 5)
    assert "SC637" in run("convert", path, target, "--scheme", "io", code=1).stderr
    run("convert", path, target, "--scheme", "io", "--columns", "orth,ner")
    (doc,) = unpack(target, Vocab())
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("a b", "vitamin-B"), ("c", "X")]
    assert doc[3].ent_iob == 0
    assert "not written" in run("convert", target, path, "--scheme", "io", code=2).stderr


def test_what_is_annotated_is_written_and_what_is_done_to_a_file_is_said(tmp_path):
    text = "Token\tNER\n# id = 1\nAnn\tb-PER\nran\tO\n"
    (tmp_path / "a.tsv").write_text(text, encoding="utf8")
    done = run("convert", tmp_path / "a.tsv", tmp_path / "a.spacy")
    for note in (
        "Columns are read as orth,ner",
        "Line 1 is a header and is left out",
        "Comments are left out, such as line 2: # id = 1",
        "Labels such as b-PER are read as B-PER",
    ):
        assert note in done.stdout
    done = run("convert", tmp_path / "a.spacy", tmp_path / "b.tsv")
    assert "Columns are orth,ner" in done.stdout
    assert (
        "csv can be read" in run("convert", tmp_path / "a.spacy", tmp_path / "b.csv", code=2).stderr
    )
    assert (tmp_path / "b.tsv").read_text(encoding="utf8") == "Ann\tB-PER\nran\tO\n\n"
