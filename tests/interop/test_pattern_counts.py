"""Numbers of features of pattern files, compared with Wapiti's counts."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from spacy.tokens import Doc

from spacy_sparsecrf.interop.patterns.featurizer import WapitiPatterns

from ..data import DATA, Sentence, needs, read_columns
from ..toy import ENGLISH
from .reference_patterns import expand, lines_of
from .test_patterns import EVERYTHING

LETTERS = DATA / "nettalk.train.tsv.gz"
CHUNKS = DATA / "conll2000.train7936.tsv.gz"


class Counts(NamedTuple):
    """Observations conjoined with labels, with label pairs, and with either."""

    unigram: int
    bigram: int
    either: int

    def n_features(self, n_labels: int) -> int:
        """Return the number of potential weights as Wapiti counts them: without a start label."""
        return self.unigram * n_labels + self.bigram * n_labels**2


def centred(n: int) -> str:
    """Return the n-grm patterns of Lavergne et al. (2010), section 5.1.1."""
    windows = [range(-(k // 2), k // 2 + 1) for k in range(1, n + 1, 2)]
    joined = ["".join(f"%x[{i},0]" for i in window) for window in windows]
    return "\n".join(
        ["*", *(f"*:{len(w)}:{text}" for w, text in zip(windows, joined, strict=True))]
    )


CHUNKING = Path(__file__).with_name("chunking.wapiti").read_text(encoding="utf8")


def docs_of(sentences: Sequence[Sentence], columns: Sequence[str]) -> list[Doc]:
    made = [
        {"words": [row[0] for row in rows], "tags": [row[1] for row in rows]} for rows in sentences
    ]
    return [Doc(ENGLISH, **one) if "tag" in columns else Doc(ENGLISH, one["words"]) for one in made]


def count(text: str, sentences: Sequence[Sentence], columns: Sequence[str]) -> Counts:
    """Count our observations of all tokens, as Wapiti counts bigrams of first tokens too."""
    made = WapitiPatterns(text=text, columns=columns)(docs_of(sentences, columns), "docs")
    unigram = np.unique(made.hashes[:, made.unigram_columns])
    bigram = np.unique(made.hashes[:, made.bigram_columns])
    assert 0 not in unigram and 0 not in bigram
    return Counts(len(unigram), len(bigram), len(np.union1d(unigram, bigram)))


def count_texts(text: str, sentences: Sequence[Sentence]) -> Counts:
    """Count the distinct texts of the reference."""
    lines = lines_of(text)
    texts = {
        expand(line, rows, t) for rows in sentences for t in range(len(rows)) for line in lines
    }
    unigram = sum(text[0] in "u*" for text in texts)
    bigram = sum(text[0] in "b*" for text in texts)
    return Counts(unigram, bigram, len(texts))


class Case(NamedTuple):
    """Data and patterns; printed: labels, observations and features according to Wapiti."""

    path: Path
    text: str
    columns: list[str]
    n_sentences: int  # 0 for all
    printed: tuple[int, int, int]


CASES = {
    "nettalk-3grm": Case(LETTERS, centred(3), ["orth"], 0, (51, 5306, 14071512)),
    "conll2000": Case(CHUNKS, CHUNKING, ["orth", "tag"], 0, (22, 315097, 6932596)),
    "everything": Case(CHUNKS, EVERYTHING, ["orth", "tag"], 500, (19, 26371, 600989)),
}


def read(path: Path, columns: Sequence[str], n: int) -> list[Sentence]:
    """Return sentences with the columns that patterns read, followed by the label."""
    sentences = read_columns(path)
    return [[row[: len(columns) + 1] for row in rows] for rows in sentences[: n or None]]


@needs(LETTERS)
@needs(CHUNKS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_counts_equal_the_reference_and_what_wapiti_printed(case: Case) -> None:
    sentences = read(case.path, case.columns, 200)
    assert count(case.text, sentences, case.columns) == count_texts(case.text, sentences)
    counts = count(case.text, read(case.path, case.columns, case.n_sentences), case.columns)
    n_labels, n_blocks, n_features = case.printed
    assert (counts.either, counts.n_features(n_labels)) == (n_blocks, n_features)
