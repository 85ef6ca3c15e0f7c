"""Stored inputs of each type, of which fuzzing found many, are refused with a code, or used.

A row of `corpus.jsonl` is a type, a format, an input (compressed), and the outcome: "refused", or
what `USES` returns, such as the number of tokens.
"""

import base64
import json
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.corpus.blanks import words_of
from spacy_sparsecrf.crf.model.names import Names
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.interop.column_attributes import parse_columns
from spacy_sparsecrf.interop.docs import STORED, read_docs, write_docs
from spacy_sparsecrf.interop.fitting import Misfit, RecordReader
from spacy_sparsecrf.interop.formats import Format, open_records, open_source
from spacy_sparsecrf.interop.importing import import_model, set_weights
from spacy_sparsecrf.interop.patterns.pattern_featurizer import CRFPPTemplates, WapitiPatterns
from spacy_sparsecrf.pipeline.features.class_sources import check_sources, read_classes
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer, PlanFeaturizer
from spacy_sparsecrf.pipeline.features.naming import NameRecord, hash_names

from ..support.file_types import QUIET, use_classes, use_model
from ..support.toy import blank_with, train

ROWS = [
    json.loads(row)
    for row in Path(__file__).with_name("corpus.jsonl").read_text(encoding="utf8").splitlines()
]
WORDS = ["the", "The", "dog", "runs", "12", "U.S.", "e-mails", ".", "Straße"]
# Blanks, marks, other alphabets, combined characters and numbers, as words of a Doc.
DIFFICULT = [" ", "\t", "\n", "\0", "\\", '"', "\u2028", "\u0085", "\x1c", "\ufeff", "\u200d"]
DIFFICULT += ["\u0301", "\u202e", "İ", "ǅ", "ﬃ", "٣", "Ⅷ", "½", "漢字", "שלום", "😀", "\U0010ffff"]
DIFFICULT += ["1e308", "nan", "9" * 20, "B-X", "-DOCSTART-", "\u00a0", "a" * 100_000]


def text_of(data: bytes) -> str:
    return data.decode("utf8", "surrogatepass")


@contextmanager
def file_of(data: bytes) -> Iterator[Path]:
    """Write a file; yield its path."""
    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        yield path


def use_names(data: bytes, note: str) -> str:
    """Read names, write them, and read them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SparseCRFWarning)
        try:
            len(found := Names(data))
        except SparseCRFWarning as warning:
            raise SparseCRFError(str(warning)) from warning
    keys = np.array([7, 2**40, 2**63 + 5], np.uint64)
    again = Names(found.to_bytes(keys))
    assert [found[key] for key in keys.tolist()] == [again[key] for key in keys.tolist()]
    return "used"


def named(features: PlanFeaturizer, docs: list[Doc]) -> np.ndarray:
    """Return the feature hashes of Docs; check that each has a name with the same hash."""
    record = NameRecord(features)
    found = record(docs).hashes
    keys = np.unique(found)
    names = record.names(keys[keys > 0])
    assert sorted(names) == keys[keys > 0].tolist()
    assert hash_names([*names.values()]).tolist() == [*names]
    return found


@cache
def read_by() -> list[Doc]:
    """Return Docs for testing templates and patterns."""
    vocab, n = spacy.blank("xx").vocab, len(WORDS)
    return [Doc(vocab, words=WORDS, tags=["T"] * n, pos=["NOUN"] * n), Doc(vocab, words=["é"])]


def use_templates(data: bytes, note: str) -> int:
    """Read Docs with templates, and with their canonical form."""
    lists = {"a": ["the dog"]}
    features = Featurizer(text_of(data).split("\n"), phrases=lists)
    found = named(features, read_by())
    again = Featurizer([str(each) for each in features.parsed], phrases=lists)
    np.testing.assert_array_equal(found, named(again, read_by()))
    return found.shape[1]


def use_patterns(data: bytes, note: str) -> int:
    make: Any = WapitiPatterns if note == "wapiti" else CRFPPTemplates
    return named(make(text=text_of(data), columns=["orth", "tag"]), read_by()).shape[1]


def use_columns(data: bytes, note: str) -> int:
    """Convert a file and convert it back. RETURNS: the number of tokens."""
    kind, columns, option = [*note.split(" "), "", ""][:3]
    names, vocab = parse_columns(columns) if columns else (), Vocab()
    with file_of(data) as path:
        source = open_source(path, Format(kind), names, option)
        docs = list(read_docs(source, vocab, n_sentences=2))
        names = names or ("orth", "tag")
        back = "".join(write_docs(docs, path, names))
        path.write_bytes(back.encode("utf8", "surrogatepass"))
        again = read_docs(open_source(path, Format.tsv, names), vocab)
        both = [[(t.orth, t.tag) for doc in each for t in doc] for each in (docs, again)]
    assert both[0] == both[1], "other tokens come back"
    return len(both[0])


@cache
def blank() -> Language:
    nlp = spacy.blank("xx")
    # The default tokenizer takes ten seconds for thousands of punctuation marks.
    nlp.tokenizer = Tokenizer(nlp.vocab)
    return nlp


def annotation(docs: list[Doc]) -> list[object]:
    tokens = [[(t.text, t.tag_, t.ent_type_, t.ent_iob) for t in doc] for doc in docs]
    return [tokens, [{k: [*map(str, v)] for k, v in doc.spans.items()} for doc in docs]]


def use_records(data: bytes, note: str) -> int:
    """Convert texts with spans into Docs of a .spacy file. RETURNS: the number of spans."""
    kind, _, key = note.partition(" ")
    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        # A form feed separates the .txt and .ann files of brat.
        plain, _, marks = data.rpartition(b"\f") if kind == "brat" else (b"", b"", data)
        (Path(folder) / "a.txt").write_bytes(plain)
        (Path(folder) / "a.ann").write_bytes(marks)
        source = open_records(Path(folder) / "a.ann", Format(kind), "xx")
        given = [*source.entries()]
    source.reader = lambda _: given
    docs = [*RecordReader(source, blank(), key, misfit=Misfit.expand).docs()]
    spans = [[*doc.ents, *doc.spans.get(key, [])] for doc in docs]
    for entry, doc, own in zip(given, docs, spans, strict=True):
        if entry.doc is None:
            assert doc.text == entry.text, "another text"
            assert {span.label_ for span in own} <= {mark.label for mark in entry.marks}
    stored = DocBin(STORED, store_user_data=True, docs=docs).to_bytes()
    back = [*DocBin().from_bytes(stored).get_docs(Vocab())]
    assert annotation(docs) == annotation(back), "other spans come back"
    return sum(map(len, spans))


def use_imported(data: bytes, note: str) -> list[str]:
    """Import a model. RETURNS: its labels of `WORDS`, which are those of its saved copy."""
    with file_of(data) as path:
        imported = import_model(path, ["orth", "pos"], {"w": "orth[0]"}, "float64")
    config = {
        "features": imported.features,
        "model": imported.model.kind,
        "learning": {"dtype": "float64"},
    }
    pipes: list[Any] = [blank().create_pipe("sparse_crf", config=config) for _ in range(2)]
    set_weights(pipes[0], imported.model, imported.names, "model")
    pipes[1].from_bytes(pipes[0].to_bytes())
    with np.errstate(**QUIET):  # type: ignore[call-overload]
        docs = [pipe(Doc(pipe.vocab, words=WORDS)) for pipe in pipes]
    found = [[token.tag_ for token in doc] for doc in docs]
    assert found[0] == found[1], "other labels when loaded"
    return found[0]


@cache
def patched() -> tuple[Any, bytes]:
    """Return a component with weights, and its bytes."""
    pipe: Any = blank_with(["b:", "u:lower[0]", "u:shape[0]|lower[-1]"]).get_pipe("sparse_crf")
    for label in ("A", "Ü", "*x"):
        pipe.add_label(label)
    pipe.patch(text_of(data_of(next(row for row in ROWS if row[0] == "dump"))).split("\n"))
    return pipe, pipe.to_bytes(exclude=["vocab"])


def use_dump(data: bytes, note: str) -> int:
    """Patch a model with lines; if a line is refused, the model must be unchanged."""
    pipe, own = patched()
    pipe.from_bytes(own)
    before, lines = pipe.model.to_bytes(), text_of(data).split("\n")
    try:
        n: int = pipe.patch(lines)
    except SparseCRFError:
        assert pipe.model.to_bytes() == before
        raise
    told, found = list(pipe.dump()), pipe.model.to_bytes()
    pipe.from_bytes(own)
    pipe.patch(told, replace=True)
    assert list(pipe.dump()) == told and pipe.model.to_bytes() == found
    return n


def use_class_files(data: bytes, note: str) -> int:
    """Read a file of word classes. RETURNS: the number of words, each of which has a class."""
    with file_of(data) as path:
        source = {"path": str(path), "format": note}
        check_sources({"a": source})
        found = read_classes("a", source, "xx")
    lines = [line.rstrip("\r\n") for line in text_of(data).removeprefix("\ufeff").split("\n")]
    words = [x.split("\t")[1] if note == "brown" else x.rsplit(None, 1)[0] for x in lines if x]
    assert all(found.find(word) for word in words)
    return len(words)


USES: dict[str, Callable[[bytes, str], Any]] = {
    "model": lambda data, note: len(use_model(data)),
    "clusters": lambda data, note: len(use_classes(data)),
    "names": use_names,
    "templates": use_templates,
    "patterns": use_patterns,
    "columns": use_columns,
    "conllu": use_columns,
    "tables": use_columns,
    "json": use_records,
    "brat": use_records,
    "imported": use_imported,
    "dump": use_dump,
    "class files": use_class_files,
}


def data_of(row: list[Any]) -> bytes:
    return zlib.decompress(base64.b85decode(row[2]))


def outcome(row: list[Any]) -> Any:
    """Return what the use of an input returns, "refused", or an exception without a code."""
    try:
        return USES[row[0]](data_of(row), row[1])
    except SparseCRFError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:500]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", USES)
def test_stored_inputs_are_used_or_refused_with_a_code(kind):
    found = [(row, outcome(row)) for row in ROWS if row[0] == kind]
    assert len(found) > 5
    assert [(data_of(row), own, row[3]) for row, own in found if own != row[3]] == []


@cache
def pipeline() -> Language:
    """Return a pipeline with three components after a training step."""
    nlp, examples = spacy.blank("xx"), []
    for name in ("sparse_crf", "sparse_crf_ner", "sparse_crf_spans"):
        decoding = {"scores": name != "sparse_crf_spans"}
        nlp.add_pipe(name, config={"n_threads": 1, "l1": 0.1, "decoding": decoding})
    for i in range(12):
        words = [WORDS[(i + 2 * j) % len(WORDS)] for j in range(1 + i % 5)]
        tags = ["N" if word[0].isupper() else "V" if len(word) > 3 else "D" for word in words]
        ents = ["B-X" if t == "N" else "O" for t in tags]
        reference = Doc(nlp.vocab, words, tags=tags, ents=ents)
        reference.spans["sc"] = list(reference.ents)
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    train(nlp, examples, 1)
    return nlp


@pytest.mark.filterwarnings("ignore:.*SCW")
@pytest.mark.parametrize("start", [True, False, None])
@pytest.mark.parametrize(
    "words", [[], WORDS, DIFFICULT, DIFFICULT[::-1], [" "], [" ", "\n", "\u3000"], ["x"] * 2_000]
)
def test_docs_of_any_characters_are_annotated(words, start):
    """Alone and among others, all tokens are kept, and words have labels."""
    nlp, n = pipeline(), len(words)
    starts: Any = [start] * n

    def make(vocab: Vocab) -> Doc:
        spaces = [i % 3 > 0 for i in range(n)]
        return Doc(vocab, words=words, spaces=spaces, sent_starts=starts) if n else Doc(vocab)

    doc, among = make(nlp.vocab), make(nlp.vocab)
    with np.errstate(**QUIET):  # type: ignore[call-overload]
        nlp(doc)
        list(nlp.pipe([Doc(nlp.vocab), Doc(nlp.vocab, words=WORDS), among]))
    seen = {*words_of(doc).tolist()}
    assert [token.text for token in doc] == words
    assert seen == {token.i for token in doc if token.tag_}  # blanks have no tag
    assert not n or doc.has_annotation("ENT_IOB")
    assert all(0.0 < token._.sparse_crf_score <= 1.0 + 1e-6 for d in (doc, among) for token in d)
    labels = [d.to_array(["TAG", "ENT_TYPE", "ENT_IOB"]) for d in (doc, among)]
    np.testing.assert_array_equal(*labels)
    for name in nlp.pipe_names:
        component: Any = nlp.get_pipe(name)
        assert len(component.target.gold(Example(make(Vocab()), doc))) == n
    named(nlp.get_pipe("sparse_crf").features, [doc])
