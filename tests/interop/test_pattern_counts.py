"""Numbers of features of pattern files, compared with those that Wapiti printed."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from spacy.tokens import Doc

from spacy_sparsecrf.interop.patterns.featurizer import WapitiPatterns

from ..data import DATA, Sentence, needs, read_columns
from ..toy import ENGLISH
from .test_patterns import EVERYTHING

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


def docs_of(sentences: Sequence[Sentence], columns: Sequence[str]) -> list[Doc]:
    made = [
        {"words": [row[0] for row in rows], "tags": [row[1] for row in rows]} for rows in sentences
    ]
    return [Doc(ENGLISH, **one) if "tag" in columns else Doc(ENGLISH, one["words"]) for one in made]


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


@needs(LETTERS)
@needs(CHUNKS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_counts_equal_what_wapiti_printed(case: Case) -> None:
    """Wapiti counts potential weights without a start label, but bigrams of first tokens too."""
    docs = docs_of(read_columns(case.path)[: case.n_sentences or None], case.columns)
    made = WapitiPatterns(text=case.text, columns=case.columns)(docs, "docs")
    columns = made.unigram_columns, made.bigram_columns
    unigram, bigram = (np.unique(made.hashes[:, own]) for own in columns)
    n_labels, n_blocks, n_features = case.printed
    assert len(np.union1d(unigram, bigram)) == n_blocks
    assert len(unigram) * n_labels + len(bigram) * n_labels**2 == n_features
