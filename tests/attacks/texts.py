"""User input of each type: sound examples, and functions that use accepted input.

As in `kinds`, a function raises a coded error if an input is refused, and otherwise returns arrays.
It also checks, by counting in the text itself, that nothing was lost.
"""

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.class_sources import check_sources, read_classes
from spacy_sparsecrf.features.featurizer import Featurizer, PlanFeaturizer
from spacy_sparsecrf.features.naming import NameRecord, hash_names
from spacy_sparsecrf.interop.attributes import DOCSTART, parse_columns
from spacy_sparsecrf.interop.docs import read_docs, write_docs
from spacy_sparsecrf.interop.formats import Format, open_source
from spacy_sparsecrf.interop.patterns.featurizer import CRFPPTemplates, WapitiPatterns

from .kinds import QUIET, Arrays, Kind, assert_same

WORDS = ["the", "The", "dog", "runs", "12", "U.S.", "e-mails", ".", "Straße"]


@dataclass
class Text:
    """A text, and its format."""

    text: str
    note: str = ""

    def to_bytes(self) -> bytes:
        """Return the text as UTF-8, including lone surrogates."""
        return self.text.encode("utf8", "surrogatepass")


# Docs


@dataclass
class Tokens:
    """Arguments of a Doc; words are not empty, as spaCy requires."""

    words: list[str] = field(default_factory=list)
    spaces: list[bool] = field(default_factory=list)
    starts: list[bool | None] = field(default_factory=list)

    def doc(self, vocab: Vocab) -> Doc:
        """Create the Doc."""
        if not self.words:
            return Doc(vocab)
        starts: Any = self.starts
        return Doc(vocab, words=self.words, spaces=self.spaces, sent_starts=starts)


TEMPLATES = ["b:", "u:lower[0]", "u:suffix(3)[0]", "u:prefix(2)[-1]|lower[1]", "u:shape[0]"]
TEMPLATES += [
    'u:regex("[0-9]+")[0]',
    "u:ngrams(1,3)[0]",
    "u:length[0]",
    "u:norm[0]",
    "u:is_title[1]",
]


def config(settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the config of a component."""
    solver = {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", "inner_iterations": 2}
    return {"n_threads": 1, "solver": solver, "l1": 0.1, "l2": 0.1, **(settings or {})}


def examples(nlp: Language) -> list[Example]:
    """Return a few annotated sentences."""
    made = []
    for i in range(12):
        words = [WORDS[(i + 2 * j) % len(WORDS)] for j in range(1 + i % 5)]
        tags = ["N" if word[0].isupper() else "V" if len(word) > 3 else "D" for word in words]
        ents = ["B-X" if tag == "N" else "O" for tag in tags]
        reference = Doc(nlp.vocab, words=words, tags=tags, ents=ents)
        reference.spans["sc"] = list(reference.ents)
        made.append(Example(Doc(nlp.vocab, words=words), reference))
    return made


@cache
def pipeline() -> Language:
    """Return a pipeline with three components after a few training steps."""
    nlp = spacy.blank("xx")
    scored = {"decoding": {"scores": True}}
    templates = {
        "features": {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": TEMPLATES}
    }
    nlp.add_pipe("sparse_crf", config=config(scored | templates))
    nlp.add_pipe("sparse_crf_ner", config=config(scored))
    nlp.add_pipe("sparse_crf_spans", config=config())
    given = examples(nlp)
    nlp.initialize(lambda: given)
    nlp.update(given)
    return nlp


def use_docs(tokens: Tokens, sound: Tokens) -> Arrays:
    """Annotate a Doc alone and among others; check that all tokens are kept, and have labels."""
    nlp = pipeline()
    doc, among = tokens.doc(nlp.vocab), tokens.doc(nlp.vocab)
    plain = Doc(nlp.vocab, words=WORDS)
    with np.errstate(**QUIET):  # type: ignore[call-overload]
        nlp(doc)
        list(nlp.pipe([Doc(nlp.vocab), plain, among]))
    words = tokens.words
    assert [token.text for token in doc] == words and all(token.tag_ for token in doc)
    assert not len(doc) or doc.has_annotation("ENT_IOB")
    scores = [np.array([token._.sparse_crf_score or 0.0 for token in d]) for d in (doc, among)]
    assert ((scores[0] > 0.0) & (scores[0] <= 1.0 + 1e-6)).all()
    labels = [d.to_array(["TAG", "ENT_TYPE", "ENT_IOB"]) for d in (doc, among)]
    assert_same(labels[:1], labels[1:])
    bare = tokens.doc(Vocab())
    for name in ("sparse_crf", "sparse_crf_ner", "sparse_crf_spans"):
        component: Any = nlp.get_pipe(name)
        assert len(component.target.gold(Example(bare, doc))) == len(doc)
    named(component.features, [doc])
    return [labels[0], scores[0]]


def named(features: PlanFeaturizer, docs: Sequence[Doc]) -> np.ndarray:
    """Return the feature hashes of Docs; check that each has a name with the same hash."""
    record = NameRecord(features)
    found = record(docs).hashes
    keys = np.unique(found)
    names = record.names(keys[keys > 0])
    assert sorted(names) == keys[keys > 0].tolist()
    assert hash_names([*names.values()]).tolist() == [*names]
    return found


# Templates and pattern files


@cache
def read_by() -> list[Doc]:
    """Return Docs for testing templates and patterns."""
    vocab = spacy.blank("xx").vocab
    n = len(WORDS)
    return [Doc(vocab, words=WORDS, tags=["T"] * n, pos=["NOUN"] * n), Doc(vocab, words=["é"])]


def use_templates(text: Text, sound: Text) -> Arrays:
    """Read Docs with templates, and with their canonical form."""
    lists = {"a": ["the dog"]}
    features = Featurizer(text.text.split("\n"), phrases=lists)
    found = named(features, read_by())
    again = Featurizer([str(each) for each in features.parsed], phrases=lists)
    assert_same([found], [named(again, read_by())])
    return [found]


def use_patterns(text: Text, sound: Text) -> Arrays:
    """Read Docs with a pattern file; each pattern line must give a column."""
    kind: Any = WapitiPatterns if text.note == "wapiti" else CRFPPTemplates
    features = kind(text=text.text, columns=["orth", "tag"])
    found = named(features, read_by())
    lines = [line for line in re.split("[\r\n]+", text.text) if line.strip()]
    assert found.shape[1] <= 2 * len(lines)
    return [found]


# Files of annotated text


def written(text: str, folder: str, name: str) -> Path:
    """Write a text to a file; lone surrogates give invalid UTF-8."""
    path = Path(folder) / name
    path.write_bytes(Text(text).to_bytes())
    return path


def use_columns(text: Text, sound: Text) -> Arrays:
    """Convert a file and convert it back; each token line must become a token."""
    kind, columns, option = [*text.note.split(" "), "", ""][:3]
    names, vocab = parse_columns(columns) if columns else (), Vocab()
    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        path = written(text.text, folder, "text")
        source = open_source(path, Format(kind), names, option, option == "merge")
        docs = list(read_docs(source, vocab, n_sentences=2))
        lines = re.split("\r*\n|\r", text.text.removeprefix("\ufeff"))
        if kind == "conllu":
            ids = [line.split("\t")[0] for line in lines if line and line[0] != "#"]
            n = sum(number.isdigit() for number in ids)
        else:
            cut = "[ \t]+" if kind == "wapiti" else "\t"
            rows = [re.split(cut, x.strip(" \t") if kind == "wapiti" else x) for x in lines]
            rows = [[value.strip(" ") or value for value in row] for row in rows]
            # A line without a word and without a label but O ends a sentence.
            n = sum(bool(row[0]) or not {*row} <= {"", "O", "_"} for row in rows)
            n -= sum(row[0] == DOCSTART for row in rows)
            n -= sum(
                line.strip(" \t") == "" and bool(row[0])
                for line, row in zip(lines, rows, strict=True)
            )
        n_tokens = sum(map(len, docs))
        is_whole = not any("left out" in note for note in source.notes)
        if kind in ("conllu", "tsv", "wapiti") and not option and is_whole:
            assert n_tokens == n, f"{n} lines of tokens, {n_tokens} tokens"
        names = tuple(x for x in names if x not in ("sentence", "document")) or ("orth", "tag")
        path = written("".join(write_docs(docs, path, names)), folder, "back")
        again = read_docs(open_source(path, Format.tsv, names), vocab)
        both = [[[t.orth, t.tag] for doc in each for t in doc] for each in (docs, again)]
    assert both[0] == both[1], "other tokens come back"
    return [np.array(both[0])]


# Weights as text, word classes


def use_dump(text: Text, sound: Text) -> Arrays:
    """Patch a model with lines; if a line is refused, the model must be unchanged."""
    pipe, data = _component()
    pipe.from_bytes(data)
    before = pipe.model.to_bytes()
    lines = text.text.split("\n")
    try:
        n = pipe.patch(lines)
    except SparseCRFError:
        assert pipe.model.to_bytes() == before
        raise
    given = [line.rstrip("\r\n") for line in lines]
    assert n == sum(bool(line) and line[0] != "#" for line in given)
    told, found = list(pipe.dump()), pipe.model.to_bytes()
    pipe.from_bytes(data)
    pipe.patch(told, replace=True)
    assert list(pipe.dump()) == told and pipe.model.to_bytes() == found
    return [pipe.model.unigram.keys]


_OF_DUMP = ["b:", "u:lower[0]", "u:shape[0]|lower[-1]"]
_TEMPLATES = {"features": {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": _OF_DUMP}}


@cache
def _component() -> Any:
    pipe: Any = spacy.blank("xx").add_pipe("sparse_crf", config=config(_TEMPLATES))
    pipe.cfg["labels"] = ["A", "Ü", "*x"]
    pipe.patch(_DUMP.split("\n"))
    return pipe, pipe.to_bytes(exclude=["vocab"])


def use_classes(text: Text, sound: Text) -> Arrays:
    """Read a file of word classes; each word of a line must have a class."""
    are_paths = text.note == "brown"
    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        source = {"path": str(written(text.text, folder, "classes")), "format": text.note}
        check_sources({"a": source})
        found = read_classes("a", source, "xx")
    lines = [line.rstrip("\r\n") for line in text.text.removeprefix("\ufeff").split("\n")]
    words = [x.split("\t")[1] if are_paths else x.rsplit(None, 1)[0] for x in lines if x]
    codes = np.array([found.find(word) for word in words])
    assert codes.all(), words[int(np.flatnonzero(codes == 0)[0])]
    return [codes]


# Sound examples


def sound_texts(*texts: tuple[str, str]) -> Callable[[], list[Any]]:
    """Return a function that returns sound texts. texts: each with its format."""
    return lambda: [Text(text, note) for text, note in texts]


_MORE = ["u:phrase(a)[0]", "u:pos[0]|tag[-1]", "*:casefold[0]", "u:ngrm(3,fold)"]
_CONLLU = "\n".join(
    f"{i}\t{w}\t{w}\tNOUN\tNN\tCase=Nom\t0\troot\t_\tSpaceAfter=No" for i, w in enumerate(WORDS, 1)
)
_MULTI = "1-2\tdel\t_\t_\t_\t_\t_\t_\t_\t_\n"
COLUMNS = "".join(f"{w}\tNN\t{'B-X' if i % 2 else 'O'}\n" for i, w in enumerate(WORDS))
_PATTERNS = 'U00:%x[0,0]\nu:%x[-1,0]/%x[0,1]\n*:%m[0,0,"^.?.?"]\nU:%t[0,0,"\\u"]\n# no\nB\n'
_BROWN = "0110\tthe\t10\n0111\tDog\t5\n10\tÜ\n"
_DUMP = "u\tlower[0]=a\t#\tA\t1.5\nb\talways\tA\tÜ\t-0.25\nb\talways\t*\tA\t2\n\n# no\n"
_DUMP += "u\t0x0123456789abcdef\t#\t\\*x\t1e-3\nu\tlower[-1]=^1|shape[0]=Xx\\|x\t#\tA\t.5\n"

USER_KINDS = {
    "docs": Kind(lambda: [Tokens(WORDS, [True] * 9, [True] + [None] * 8)], use_docs),
    "templates": Kind(sound_texts(("\n".join([*TEMPLATES, *_MORE]), "")), use_templates),
    "patterns": Kind(
        sound_texts((_PATTERNS, "wapiti"), ("U00:%x[0,0]\nU01:%x[-1,1]/%x[2,0]\nB\n", "crfpp")),
        use_patterns,
    ),
    "columns": Kind(
        sound_texts(
            (COLUMNS + "\n" + COLUMNS, "tsv orth,tag,ner"),
            (COLUMNS.replace("\t", " ") + "\n" + COLUMNS, "wapiti"),
            ("-DOCSTART- -X- O\n\n" + COLUMNS.replace("\t", "  "), "wapiti orth,tag,ner"),
        ),
        use_columns,
    ),
    "conllu": Kind(
        sound_texts(
            (f"# text = x\n{_CONLLU}\n\n{_MULTI}{_CONLLU}\n\n", "conllu"),
            (_MULTI + _CONLLU, "conllu  merge"),
        ),
        use_columns,
    ),
    "dump": Kind(sound_texts((_DUMP, "")), use_dump),
    "class files": Kind(
        sound_texts(
            ("0110\tthe\t10\n0111\tDog\t5\n10\tÜ\n", "brown"), ("the 0\nDog 12\nÜ 3\n", "word2vec")
        ),
        use_classes,
    ),
}
