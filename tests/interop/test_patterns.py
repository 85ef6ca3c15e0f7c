"""Pattern files of Wapiti and CRF++ against the reference, and saved with a component."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.model.names import (
    read_feature,
    read_hash,
    read_name,
    read_pattern_name,
    write_pattern_name,
)
from spacy_sparsecrf.crf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.interop.patterns.pattern_featurizer import (
    CRFPPTemplates,
    PatternFeaturizer,
    WapitiPatterns,
)
from spacy_sparsecrf.pipeline.features.naming import templates_by_kind

from ..reference import Problem
from ..support.data import DATA, needs, read_columns
from ..support.golden import read_golden
from ..support.names_cases import names_of
from ..support.reference_patterns import (
    Table,
    crfpp_outside,
    expand,
    lines_of,
    search,
    wapiti_outside,
)
from ..support.runs import training_of
from ..support.toy import ENGLISH, blank_with, examples_of, train, vocab_of

VOCAB = ENGLISH
COLUMNS = ["orth", "tag"]
SENTENCES = [
    [["Ms.", "NNP"], ["Straße", "NNP"], ["sold", "VBD"], ["12", "CD"], ["e-mails", "NNS"]],
    [["_x-1", "NN"], ["ÉTÉ", "NN"], ["été", "nn"]],
    [["a", "DT"]],
]
EVERYTHING = Path(__file__).with_name("everything.wapiti").read_text(encoding="utf8")


def docs_of(sentences: Sequence[Table]) -> list[Doc]:
    return [
        Doc(VOCAB, words=[row[0] for row in rows], tags=[row[1] for row in rows])
        for rows in sentences
    ]


def assert_same_features(features: PatternFeaturizer, texts: list[list[str]], docs: list[Doc]):
    """Check that features are equal if and only if their texts are."""
    observations = features(docs, "docs")
    assert observations.hashes.shape == (len(texts), len(texts[0]))
    pairs = {*zip(observations.hashes.ravel().tolist(), chain.from_iterable(texts), strict=True)}
    assert len({hashed for hashed, _ in pairs}) == len({text for _, text in pairs}) == len(pairs)
    assert 0 not in {hashed for hashed, _ in pairs}
    kinds = [text[0].lower() for text in texts[0]]
    of = {"unigram": observations.unigram_columns, "bigram": observations.bigram_columns}
    assert of["unigram"].tolist() == [i for i, kind in enumerate(kinds) if kind in "u*"]
    assert of["bigram"].tolist() == [i for i, kind in enumerate(kinds) if kind in "b*"]


def check_wapiti(text: str, sentences: Sequence[Table]) -> None:
    lines = lines_of(text)
    tokens = [(rows, t) for rows in sentences for t in range(len(rows))]
    texts = [[expand(line, rows, t) for line in lines] for rows, t in tokens]
    assert_same_features(WapitiPatterns(text=text, columns=COLUMNS), texts, docs_of(sentences))


def test_every_feature_of_the_language():
    check_wapiti(EVERYTHING, SENTENCES)


words = st.sampled_from(
    ["a", "A", "b", "12", "1", "Ab-1", "é", "É", "ß", "$", "_x-1", "_x+2", "_x-#", "true", "-", "٣"]
)
rows = st.tuples(words, st.sampled_from(["NN", "nn", "CD", "$", "true"]))
tables = st.lists(rows, min_size=1, max_size=7)
pieces = st.tuples(
    st.sampled_from([".", "a", "-", r"\a", r"\A", r"\d", r"\D", r"\l", r"\L", r"\p", r"\P"])
    | st.sampled_from(
        [r"\u", r"\U", r"\w", r"\W", r"\s", r"\S", r"\.", r"\$", r"\\", "^", "$", "["]
    ),
    st.sampled_from(["", "?", "*"]),
).map("".join)
expressions = st.tuples(
    st.sampled_from(["", "^"]),
    st.lists(pieces, max_size=4).map("".join).filter(lambda text: not text.startswith("^")),
    st.sampled_from(["", "$"]),
).map("".join)


@st.composite
def macros(draw: st.DrawFn) -> str:
    command = draw(st.sampled_from("xXtTmM"))
    place = f"{draw(st.sampled_from(['', '@']))}{draw(st.integers(-9, 9))}"
    argument = f',"{draw(expressions)}"' if command in "tTmM" else ""
    return f"%{command}[{place},{draw(st.integers(0, 1))}{argument}]"


@st.composite
def patterns(draw: st.DrawFn) -> str:
    # Separators occur in no text, so that joined texts are unambiguous.
    kind = draw(st.sampled_from("uUbB*"))
    parts = draw(st.lists(macros(), max_size=3))
    name = draw(st.sampled_from(["", "1:", "2:", "é:"])) if parts else "bias"
    return kind + name + "/".join(parts)


@given(st.lists(patterns(), min_size=1, max_size=5), st.lists(tables, min_size=1, max_size=3))
def test_equals_the_reference(lines, sentences):
    check_wapiti("\n".join(lines), sentences)


@pytest.mark.parametrize("row", read_golden(__file__, "expressions.jsonl"))
def test_expressions_find_what_those_of_wapiti_find(row):
    expression, text, found = row
    assert search(expression, text) == found


def test_texts_of_several_vocabs():
    vocabs = [VOCAB, vocab_of("es")]
    docs = [Doc(vocab, words=["Xyz"], tags=["Tagged"]) for vocab in vocabs]
    docs[1:1] = [Doc(vocabs[0]), Doc(vocabs[1])]
    features = WapitiPatterns(text='u:%M[0,1,"^..."]/%X[0,0]', columns=COLUMNS)
    hashes = features(docs).hashes
    assert len(hashes) == 2 and hashes[0] == hashes[1]


@pytest.mark.parametrize("solver", [OWLQN, BCD])
def test_solvers_count_twice_what_is_on_twice(solver):
    rng = np.random.default_rng(0)
    words = [["ab"[i] for i in rng.integers(0, 2, 4)] for _ in range(8)]
    text = "u%x[0,0]\nu%x[-1,0]\nu%x[1,0]\nb%x[0,0]\nb%x[-1,0]\nb"
    observations = WapitiPatterns(text=text)([Doc(VOCAB, words=row) for row in words])
    builder = CorpusBuilder()
    builder.add(observations, rng.integers(0, 3, 32).astype(np.int32))
    corpus = builder.build()
    rows = np.split(corpus.uni_indices, corpus.uni_indptr[1:-1])
    assert max(np.bincount(row).max() for row in rows) == 3
    training = training_of(
        corpus, ["A", "B", "C"], solver(tolerance=1e-7, window=0.0), l1=0.3, l2=0.1
    )
    assert any(training.step().converged for _ in range(300))
    theta = np.zeros(corpus.n_potential(3))
    coordinates, values = training.weights
    theta[coordinates] = values
    # By enumeration of all label sequences, the weights are a minimum.
    _, gradient = Problem(corpus, 3, theta).loss()
    gradient += 0.1 * theta + 0.3 * np.sign(theta)
    active = theta != 0
    assert active.sum() > 10
    assert np.abs(gradient[active]).max() < 1e-4
    assert np.abs(gradient[~active]).max() < 0.3 + 1e-4


def write(path: Path, text: str = EVERYTHING) -> str:
    path.write_text(text, encoding="utf8")
    return str(path)


def tagger(path: str) -> spacy.Language:
    config = {"@crf_features": "spacy_sparsecrf.WapitiPatterns.v1", "path": path}
    return blank_with(features=config)


def trained(nlp: spacy.Language) -> spacy.Language:
    train(nlp, examples_of(nlp, [(["a", "b", "a", "c"], ["X", "Y", "X", "Z"])] * 5), 3)
    return nlp


PATTERNS = "u:%x[0,0]\nu:%x[-1,0]\nb\n"


@pytest.mark.parametrize("instead", [None, "u:%q[broken"])
@pytest.mark.parametrize("by", ["disk", "bytes"])
def test_saved_pipelines_need_no_pattern_file(by, instead, tmp_path):
    path = tmp_path / "patterns"
    nlp = trained(tagger(write(path, PATTERNS)))
    tags = [token.tag_ for token in nlp("a b c a")]
    assert tags[:2] == ["X", "Y"]
    nlp.to_disk(tmp_path / "saved")
    data = nlp.to_bytes()
    if instead is None:
        path.unlink()
    else:
        write(path, instead)
    loaded = spacy.load(tmp_path / "saved") if by == "disk" else tagger(str(path)).from_bytes(data)
    assert [token.tag_ for token in loaded("a b c a")] == tags
    # And after a second round trip.
    loaded.to_disk(tmp_path / "again")
    assert [token.tag_ for token in spacy.load(tmp_path / "again")("a b c a")] == tags


texts = st.text(st.characters(codec="utf-8")) | st.text(st.sampled_from("\\\t\n\r|=^$01{} au"))


def without_braces(name: str) -> str:
    """Return a name in the notation of the other program."""
    literals, values = read_pattern_name(name)
    return "".join(x + y for x, y in zip(literals, [*values, ""], strict=True))


@given(st.sampled_from("ub*"), st.lists(texts, min_size=1).filter(lambda x: len(x) % 2))
def test_a_name_is_read_as_it_was_written(kind, pieces):
    pieces[0] = kind + pieces[0]
    name = write_pattern_name(pieces[::2], pieces[1::2])
    assert read_pattern_name(name) == (pieces[::2], pieces[1::2])
    assert read_feature(name).values == pieces[1::2]
    assert not set("\t\n\r") & set(name)
    assert read_hash(name) is None
    bad = ["u{", "u}", "u{a", "u{{a}}", "u{a}}", "u\\", "u|", "x{a}", ""]
    for read, text in ((read_name, name), *((read_feature, each) for each in bad)):
        with pytest.raises(ValueError):
            read(text)


CRFPP = "U0:%x[-8,0]/%x[8,1]\nU1=%x[0,0]\nU2:%x[0,0]|{%x[-1,1]}\nB%x[0,1]\nB"


@pytest.mark.parametrize(
    ("make", "text", "outside"),
    [(WapitiPatterns, EVERYTHING, wapiti_outside), (CRFPPTemplates, CRFPP, crfpp_outside)],
)
def test_names_are_the_texts_of_the_reference(make, text, outside):
    rows = names_of(make(text=text, columns=COLUMNS), docs_of(SENTENCES), "docs")
    assert [[without_braces(name) for name in row] for row in rows] == [
        [expand(line, rows, t, outside) for line in lines_of(text)]
        for rows in SENTENCES
        for t in range(len(rows))
    ]


def test_names_of_columns_of_all_kinds():
    doc = Doc(Vocab(), words=["Ab", "c", "d"], spaces=[True, False, False], ents=["B-X", "I-X", ""])
    if not Token.has_extension("pattern_named"):
        Token.set_extension("pattern_named", default=None)
    doc[0]._.pattern_named, doc[1]._.pattern_named = "Word", -12
    doc.spans["found"] = [Span(doc, 1, 3, label="Y")]
    columns = ["_.pattern_named", "span(found)", "glued", "ent_iob", "is_title", "length"]
    text = 'u:%X[0,0]\nu:%m[0,1,"^."]\nu:%x[0,2]\nu:%x[0,3]\nu:%t[0,3,"3"]\nu:%x[-1,4]%x[0,5]'
    assert names_of(WapitiPatterns(text=text, columns=columns), [doc]) == [
        ["u:{word}", "", "u:{0}", "u:{3}", "u:{true}", "u:{_x-1}{2}"],
        ["u:{-12}", "u:{B}", "u:{1}", "u:{1}", "u:{false}", "u:{1}{1}"],
        ["", "u:{I}", "u:{0}", "", "", "u:{0}{1}"],
    ]
    features = WapitiPatterns(text='u:%m[0,0,"x*"]%x[0,0]')
    assert names_of(features, [Doc(Vocab(), words=["a"])]) == [["u:{}{a}"]]
    assert templates_by_kind(WapitiPatterns(text="u:%x[0,0]\n*:%x[0,0]\nb")) == {
        "u": {'["u:", ""]', '["*:", ""]'},
        "b": {'["*:", ""]', '["b"]'},
    }


LETTERS = DATA / "nettalk.train.tsv.gz"
CHUNKS = DATA / "conll2000.train7936.tsv.gz"


def centred(n: int) -> str:
    """Return the n-grm patterns of Lavergne et al. (2010), section 5.1.1."""
    windows = [range(-(k // 2), k // 2 + 1) for k in range(1, n + 1, 2)]
    joined = ["".join(f"%x[{i},0]" for i in window) for window in windows]
    return "\n".join(
        ["*", *(f"*:{len(w)}:{text}" for w, text in zip(windows, joined, strict=True))]
    )


CHUNKING = Path(__file__).with_name("chunking.wapiti").read_text(encoding="utf8")


class Count(NamedTuple):
    """Data and patterns; printed: labels, observations and features according to Wapiti."""

    path: Path
    text: str
    columns: list[str]
    n_sentences: int  # 0 for all
    printed: tuple[int, int, int]


COUNTS = {
    "nettalk-3grm": Count(LETTERS, centred(3), ["orth"], 0, (51, 5306, 14071512)),
    "conll2000": Count(CHUNKS, CHUNKING, ["orth", "tag"], 0, (22, 315097, 6932596)),
    "everything": Count(CHUNKS, EVERYTHING, ["orth", "tag"], 500, (19, 26371, 600989)),
}


@needs(LETTERS)
@needs(CHUNKS)
@pytest.mark.parametrize("case", COUNTS.values(), ids=COUNTS)
def test_counts_equal_what_wapiti_printed(case):
    """Wapiti counts potential weights without a start label, but bigrams of first tokens too."""
    docs = docs_of(read_columns(case.path)[: case.n_sentences or None])
    made = WapitiPatterns(text=case.text, columns=case.columns)(docs, "docs")
    columns = made.unigram_columns, made.bigram_columns
    unigram, bigram = (np.unique(made.hashes[:, own]) for own in columns)
    n_labels, n_blocks, n_features = case.printed
    assert len(np.union1d(unigram, bigram)) == n_blocks
    assert len(unigram) * n_labels + len(bigram) * n_labels**2 == n_features
