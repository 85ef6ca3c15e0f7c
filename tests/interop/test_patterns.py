"""Pattern files of Wapiti and CRF++ against the reference, and saved with a component."""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_sparsecrf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.interop.patterns.featurizer import (
    PatternFeaturizer,
    WapitiPatterns,
)
from spacy_sparsecrf.solvers.base import BatchSolver
from spacy_sparsecrf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.solvers.owlqn import OWLQN

from ..golden import read_golden
from ..reference import Problem
from ..runs import training_of
from ..toy import ENGLISH, blank_with, examples_of, train, vocab_of
from .reference_patterns import Table, expand, lines_of, search

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


def test_every_feature_of_the_language() -> None:
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


@settings(deadline=None, max_examples=150)
@given(st.lists(patterns(), min_size=1, max_size=5), st.lists(tables, min_size=1, max_size=3))
def test_equals_the_reference(lines: list[str], sentences: list[Table]) -> None:
    check_wapiti("\n".join(lines), sentences)


@pytest.mark.parametrize("row", read_golden(__file__, "expressions.jsonl"))
def test_expressions_find_what_those_of_wapiti_find(row: list[str]):
    expression, text, found = row
    assert search(expression, text) == found


def test_texts_of_several_vocabs() -> None:
    vocabs = [VOCAB, vocab_of("es")]
    docs = [Doc(vocab, words=["Xyz"], tags=["Tagged"]) for vocab in vocabs]
    docs[1:1] = [Doc(vocabs[0]), Doc(vocabs[1])]
    features = WapitiPatterns(text='u:%M[0,1,"^..."]/%X[0,0]', columns=COLUMNS)
    hashes = features(docs).hashes
    assert len(hashes) == 2 and hashes[0] == hashes[1]


@pytest.mark.parametrize("solver", [OWLQN, BCD])
def test_solvers_count_twice_what_is_on_twice(solver: Callable[..., BatchSolver]) -> None:
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
def test_saved_pipelines_need_no_pattern_file(by: str, instead: str | None, tmp_path: Path) -> None:
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
