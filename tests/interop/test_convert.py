"""Annotated text in columns <-> Docs."""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import spacy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Token
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab

from spacy_sparsecrf.cli.files import unpack
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.attributes import parse_columns
from spacy_sparsecrf.interop.columns import BLANKS, TAB, read_columns
from spacy_sparsecrf.interop.docs import STORED, read_docs, write_docs
from spacy_sparsecrf.interop.formats import Format, guess_format, open_source
from spacy_sparsecrf.interop.schemes import BadLabelError, ColumnScheme, read_spans, write_spans

EVERY_COLUMN = "orth,tag,pos,morph,lemma,ner,chunk,spans:other,space_after,_.custom,_"


@pytest.fixture(autouse=True)
def _no_extension_is_left() -> Iterator[None]:
    yield
    if Token.has_extension("custom"):
        Token.remove_extension("custom")


def docs_of(path: Path, kind: Format, columns: str = "", **options) -> list[Doc]:
    given = {key: options.pop(key) for key in ("attribute", "merge_subtokens") if key in options}
    source = open_source(path, kind, parse_columns(columns) if columns else (), **given)
    return [*read_docs(source, Vocab(), **options)]


def stored(docs: list[Doc], path: Path) -> list[Doc]:
    """Docs as they come back from a .spacy file, with another vocab."""
    DocBin(attrs=STORED, store_user_data=True, docs=docs).to_disk(path)
    return [*unpack(path, Vocab())]


def text_of(docs: list[Doc], columns: str, **options) -> str:
    return "".join(write_docs(docs, Path("x.spacy"), parse_columns(columns), **options))


# Every format

TSV = "The\tDT\tB-X\n#\tNN\tI-X\n\nRun\tVB\tO\n\n"
WAPITI = "The x1 DT\n#  x2\tNN \n\n\n  \nRun x3 VB"
CRFSUITE = "DT\tw[0]=The\tw[1]=a\\:b:0.5\nNN\tb\tw[0]=x\\\\y\\:z:2\n\nVB\tw[0]=Run\n"
CONLLU = """# text = I don't.
1\tI\tI\tPRON\tPRP\tCase=Nom|Number=Sing\t0\troot\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\t_\t_\t_
3\tn't\tnot\tPART\t_\t_\t0\t_\t_\tX=Y
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t0\t_\t_\tCorrection=Yes|SpaceAfter=No

# only = comments

1\t#\t_\t_\t_\t_\t_\t_\t_\t_
"""


def test_columns_with_tabs(tmp_path: Path):
    path = tmp_path / "a.tsv"
    path.write_text(TSV)
    first, second = docs_of(path, Format.tsv, "orth,tag,ner")
    assert [(t.text, t.tag_) for t in first] == [("The", "DT"), ("#", "NN")]
    assert [(e.text, e.label_) for e in first.ents] == [("The #", "X")]
    assert [t.ent_iob_ for t in second] == ["O"]
    assert text_of([first, second], "orth,tag,ner") == TSV


@pytest.mark.parametrize("kind", [Format.wapiti, Format.crfpp])
def test_columns_with_blanks(tmp_path: Path, kind: Format):
    path = tmp_path / "a.txt"
    path.write_text(WAPITI)
    first, second = docs_of(path, kind)
    assert [(t.text, t.tag_) for t in first] == [("The", "DT"), ("#", "NN")]
    assert [(t.text, t.tag_) for t in second] == [("Run", "VB")]
    written = text_of([first, second], "orth,_,tag", separator=BLANKS)
    assert written == "The _ DT\n# _ NN\n\nRun _ VB\n\n"


def test_the_separator_shows_in_the_first_line(tmp_path: Path):
    path = tmp_path / "a.txt"
    for text in ("a b\tX\nc d\tY\n", "\n\na b X\n"):
        path.write_text(text)
        assert next(t.tag_ for doc in docs_of(path, Format.columns) for t in doc) == "X"
    assert next(iter(read_columns(path, (), TAB).sentences))[0].values == ["a b X"]


def test_crfsuite(tmp_path: Path):
    path = tmp_path / "a.crfsuite"
    path.write_text(CRFSUITE)
    first, second = docs_of(path, Format.crfsuite, attribute="w[0]")
    assert [(t.text, t.tag_) for t in first] == [("The", "DT"), ("x\\y:z", "NN")]
    assert [(t.text, t.tag_) for t in second] == [("Run", "VB")]
    path.write_text("B-X\tw=a\n")
    (doc,) = docs_of(path, Format.crfsuite, "orth,_,ner", attribute="w")
    with pytest.raises(SparseCRFError, match="SC606.*tag, ner"):
        docs_of(path, Format.crfsuite, "orth,tag,ner", attribute="w")
    assert [e.label_ for e in doc.ents] == ["X"]


@pytest.mark.parametrize("attribute", ["", "w[2]"])
def test_crfsuite_without_words(tmp_path: Path, attribute: str):
    path = tmp_path / "a.crfsuite"
    path.write_text("X\tw[2]=a\n" + CRFSUITE)
    with pytest.raises(SparseCRFError, match=r"SC617.*line [12].*--attribute.*w\[0\]"):
        docs_of(path, Format.crfsuite, attribute=attribute)
    path.write_text("X\n")
    with pytest.raises(SparseCRFError, match="SC617.*has: no attributes"):
        docs_of(path, Format.crfsuite, attribute="w")


def test_conllu(tmp_path: Path):
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU)
    first, second = docs_of(path, Format.conllu)
    assert first.text == "I don't."
    assert [t.text for t in first] == ["I", "do", "n't", "."]
    assert [t.pos_ for t in first] == ["PRON", "AUX", "PART", "PUNCT"]
    assert [t.tag_ for t in first] == ["PRP", "VBP", "", "."]
    assert [t.lemma_ for t in first] == ["I", "do", "not", "."]
    assert str(first[0].morph) == "Case=Nom|Number=Sing" and not first[1].morph
    assert (second.text, second[0].tag_, second[0].pos_) == ("# ", "", "")
    written = text_of([first], "orth,pos,tag,morph,space_after")
    assert written.splitlines()[2] == "n't\tPART\t_\t_\t0"


def conllu(*words: str) -> str:
    """A sentence. words: ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD and MISC, by blanks."""
    fields = (word.split() for word in words)
    return "".join("\t".join([*f[:7], "_", "_", f[7]]) + "\n" for f in fields) + "\n"


MULTIWORD = conllu(
    "1 cerca cerca ADV RG _ 0 _",
    "2-3 del _ _ _ _ _ _",
    "2 de de ADP SP _ 4 _",
    "3 el el DET DA Definite=Def|Number=Sing 4 _",
    "4-6 dámelo _ _ _ _ _ SpaceAfter=No",
    "4 da dar VERB V Number=Sing 1 _",
    "5 me yo PRON P Number=Plur 4 _",
    "6 lo _ PRON _ _ 4 _",
    "7 . . PUNCT FP _ 1 _",
)


def test_multiword_tokens_are_merged(tmp_path: Path):
    path = tmp_path / "a.conllu"
    path.write_text(MULTIWORD + CONLLU)
    merged, first, _ = docs_of(path, Format.conllu, merge_subtokens=True)
    assert merged.text == "cerca del dámelo. "
    found = [(t.text, t.lemma_, t.pos_, t.tag_, str(t.morph)) for t in merged][1:3]
    assert found[0] == ("del", "de el", "ADP", "SP_DA", "Definite=Def|Number=Sing")
    assert found[1] == ("dámelo", "dar yo", "VERB", "V_P", "Number=Plur,Sing")
    assert [t.text for t in first] == ["I", "don't", "."]


@pytest.mark.parametrize("merge", [False, True])
def test_multiword_tokens_are_counted(tmp_path: Path, merge: bool):
    path = tmp_path / "a.conllu"
    path.write_text(MULTIWORD + CONLLU)
    source = open_source(path, Format.conllu, merge_subtokens=merge)
    assert [len(rows) for rows in source.sentences] == ([4, 3, 1] if merge else [7, 4, 1])
    assert source.n_multiword == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\ta\t_", "SC611.*line 2.*3 columns, but 10"),
        ("x" + "\ta" * 9, "SC616.*line 2.*'x'.*ID"),
        ("1-" + "\ta" * 9, "SC616.*line 2.*'1-'"),
        ("0\ta" + "\t_" * 8, "SC616.*line 2.*'0'.*ID"),
        ("1" * 5000 + "\ta" + "\t_" * 8, "SC616.*line 2.*'1111.*ID"),
        ("1\ta\ta\tNOPE" + "\t_" * 6, "SC616.*line 2.*'NOPE'.*pos"),
        ("1\ta\ta\tNOUN\t_\tCase" + "\t_" * 4, "SC616.*line 2.*'Case'.*morph"),
        ("1\ta\ta\tNOUN\t_\tCase==A" + "\t_" * 4, "SC616.*line 2.*'Case==A'.*morph"),
        ("1\t" + "\t_" * 8, "SC616.*line 2.*'' cannot be a value of orth"),
    ],
)
def test_bad_conllu(tmp_path: Path, line: str, message: str):
    path = tmp_path / "a.conllu"
    path.write_text(f"# text\n{line}\n")
    with pytest.raises(SparseCRFError, match=message):
        docs_of(path, Format.conllu)


def test_marks_of_documents_are_words_in_conllu(tmp_path: Path):
    path = tmp_path / "a.conllu"
    path.write_text(conllu("1 -DOCSTART- _ X _ _ 0 _", "2 a _ X _ _ 1 _"))
    (doc,) = docs_of(path, Format.conllu)
    assert [token.text for token in doc] == ["-DOCSTART-", "a"]
    with pytest.raises(SparseCRFError, match="SC619.*Token 1.*orth.*begins a document"):
        text_of([doc], "orth,pos")


def test_a_word_that_begins_as_a_file_does_comes_back(tmp_path: Path):
    words = ["\ufeffa", "\ufeffb"]
    path = tmp_path / "a.tsv"
    path.write_text(text_of([Doc(Vocab(), words)] * 2, "orth"), encoding="utf8")
    assert [[t.text for t in doc] for doc in docs_of(path, Format.tsv, "orth")] == [words] * 2


# Bad input


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a\tX\n\nb\tX\tY\n", "", "SC611.*a.tsv, line 3, has 3 columns, but 2.*as in line 1"),
        ("a\tX\n", "orth,_,tag", "SC611.*line 1, has 2 columns, but 3.*--columns"),
        ("", "", "SC612.*a.tsv has no tokens"),
        ("\n\n", "orth", "SC612"),
        ("a\t\n", "", "SC616.*line 1: '' cannot be a value of tag"),
        ("a\tNN\n", "orth,pos", "SC616.*line 1: 'NN' cannot be a value of pos"),
        ("a\t2\n", "orth,space_after", "SC616.*space_after"),
        ("a\t_\n", "orth,space_after", "SC616.*space_after"),
        ("a\tB-X\nb\tI-Y\n", "orth,ner", "SC615.*line 2: 'I-Y'.*iob2.*--scheme"),
        ("a\tO\n\nb\tI-Y\n", "orth,chunk", "SC615.*line 3: 'I-Y'"),
        ("a\tX\n", "orth,ner", "SC615.*line 1: 'X'"),
    ],
)
def test_bad_columns(tmp_path: Path, text: str, columns: str, message: str):
    path = tmp_path / "a.tsv"
    path.write_text(text)
    with pytest.raises(SparseCRFError, match=message):
        docs_of(path, Format.columns, columns)


def test_files_that_are_no_text(tmp_path: Path):
    path = tmp_path / "a.tsv"
    path.write_bytes("a\tX\nStraße\tX\n".encode("latin1"))
    with pytest.raises(SparseCRFError, match="SC610.*a.tsv, line 2, is not UTF-8"):
        docs_of(path, Format.tsv)
    zipped = tmp_path / "a.tsv.gz"
    for damaged in (b"plain", gzip.compress(b"a\tX\n" * 999)[:-9]):
        zipped.write_bytes(damaged)
        with pytest.raises(SparseCRFError, match=r"SC618.*a\.tsv\.gz"):
            docs_of(zipped, Format.tsv)
    for content in (b"", b"no DocBin", gzip.compress(b"x")):
        path.write_bytes(content)
        with pytest.raises(SparseCRFError, match="SC621.*a.tsv"):
            [*unpack(path, Vocab())]


def test_marks_and_ends_of_lines_of_other_systems(tmp_path: Path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress("\ufeffa\tX\r\n\r\nb\u2028c\tY\x85".encode()))
    docs = docs_of(path, Format.tsv)
    assert [(t.text, t.tag_) for doc in docs for t in doc] == [("a", "X"), ("b\u2028c", "Y\x85")]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ("orth,nope", "SC614.*'nope'"),
        ("orth,spans:", "SC614"),
        ("orth,_.a-b", "SC614"),
        ("orth,,tag", "SC614"),
        ("tag,ner", "SC622"),
        ("orth,tag,tag", "SC622"),
        ("orth,chunk,spans:sc", "SC622"),
    ],
)
def test_bad_lists_of_columns(columns: str, code: str):
    with pytest.raises(SparseCRFError, match=code):
        parse_columns(columns)


def test_formats_show_in_names():
    assert guess_format(Path("a.tsv.gz")) is Format.tsv
    assert guess_format(Path("b.x.conllu")) is Format.conllu
    for name in ("a", "a.gz", "a.doc", "a.spacy"):
        with pytest.raises(SparseCRFError, match=f"SC613.*{name}.*--format.*conllu"):
            guess_format(Path(name))


def make_doc(**arguments) -> Doc:
    return Doc(Vocab(), words=["a", "b c", "d"], **arguments)


def test_values_that_columns_cannot_hold():
    with pytest.raises(SparseCRFError, match="SC619.*Token 2 of Doc 1.*orth: 'b c'"):
        text_of([make_doc()], "orth", separator=BLANKS)
    assert text_of([make_doc()], "orth") == "a\nb c\nd\n\n"
    with pytest.raises(SparseCRFError, match="SC619.*Token 1 of Doc 2.*tag: 'x.ny'"):
        text_of([make_doc(), make_doc(tags=["x\ny", "", ""])], "orth,tag")
    doc = make_doc()
    doc.spans["sc"] = [doc[0:2], doc[1:3]]
    with pytest.raises(SparseCRFError, match="SC619.*without a label"):
        text_of([doc], "orth,chunk")
    doc.spans["sc"] = [spacy.tokens.Span(doc, *ends, label="X") for ends in ((0, 2), (1, 3))]
    with pytest.raises(SparseCRFError, match="SC619.*Token 2.*overlaps"):
        text_of([doc], "orth,chunk")


def test_docs_without_some_of_what_is_written():
    doc = make_doc(ents=["B-X", "I-X", ""])
    assert text_of([Doc(Vocab()), doc], "orth,tag,ner,chunk") == (
        "a\t_\tB-X\tO\nb c\t_\tI-X\tO\nd\t_\t_\tO\n\n"
    )
    # Entities that go on behind the end of a sentence are cut.
    doc = make_doc(ents=["B-X", "I-X", "I-X"], sent_starts=[True, False, True])
    assert text_of([doc], "orth,ner") == "a\tB-X\nb c\tI-X\n\nd\tB-X\n\n"


# Round trips

words = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r \ufeff"), min_size=1, max_size=5
)
labels = st.sampled_from(["A", "B-X", "O"])
scheme = st.sampled_from(ColumnScheme)


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
                # An entity that is unknown in the middle of another would cut it.
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


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), scheme, st.integers(1, 3))
def test_text_to_docs_and_back(tmp_path: Path, data: st.DataObject, scheme: ColumnScheme, n: int):
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
def test_spans_to_labels_and_back(data: st.DataObject, scheme: ColumnScheme, n: int):
    found = data.draw(spans(n))
    assert read_spans(write_spans(found, n, scheme), scheme) == found


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), max_size=8))
def test_spans_are_those_that_spacy_finds(labels: list[str]):
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


@pytest.mark.parametrize(
    ("scheme", "labels", "index"),
    [
        (ColumnScheme.iob2, ["O", "I-X"], 1),
        (ColumnScheme.iob2, ["B-X", "_", "I-X"], 2),
        (ColumnScheme.iob2, ["U-X"], 0),
        (ColumnScheme.iob2, ["B-"], 0),
        (ColumnScheme.iob2, ["B"], 0),
        (ColumnScheme.iob1, ["E-X"], 0),
        (ColumnScheme.biluo, ["B-X"], 0),
        (ColumnScheme.biluo, ["B-X", "O"], 1),
        (ColumnScheme.biluo, ["B-X", "U-X"], 1),
        (ColumnScheme.biluo, ["L-X"], 0),
        (ColumnScheme.biluo, ["B-X", "I-X"], 1),
        (ColumnScheme.biluo, ["B-X", "L-Y"], 1),
        (ColumnScheme.bioes, ["B-X", "L-X"], 1),
    ],
)
def test_labels_that_mark_no_spans(scheme: ColumnScheme, labels: list[str], index: int):
    with pytest.raises(BadLabelError) as caught:
        read_spans(labels, scheme)
    assert caught.value.index == index


def test_bioes():
    spans = [(0, 1, "A"), (1, 4, "B"), (5, 7, "B")]
    labels = ["S-A", "B-B", "I-B", "E-B", "O", "B-B", "E-B"]
    assert write_spans(spans, 7, ColumnScheme.bioes) == labels
    assert read_spans(labels, ColumnScheme.bioes) == spans
