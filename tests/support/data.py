"""Real data for tests, if available."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.encoded import Observations

DATA = Path(os.environ.get("SPARSECRF_DATA", "../shared/data"))
ORACLE = DATA.parent / "oracle"
Sentence = list[list[str]]


def needs(path: Path) -> pytest.MarkDecorator:
    """Skip a test if a file is absent."""
    return pytest.mark.skipif(
        not path.exists(), reason=f"{path} is absent: set SPARSECRF_DATA to the data directory"
    )


def read_columns(path: Path) -> list[Sentence]:
    """Read sentences of a gzipped file: one token per line, tab-separated, blank line between."""
    with gzip.open(path, "rt", encoding="utf8", newline="\n") as lines:
        blocks = lines.read().split("\n\n")
    return [[line.split("\t") for line in block.split("\n")] for block in blocks if block.strip()]


def read_oracle() -> dict[str, Any]:
    return json.loads((ORACLE / "oracle.json").read_text(encoding="utf8"))


def crfpp_observations(sentences: list[Sentence], templates: list[str]) -> Observations:
    """Return observations by CRF++ templates, with numbers for hashes and no start label."""
    numbers: dict[str, int] = {}

    def value(sentence: Sentence, t: int, column: int) -> str:
        if t < 0:
            return f"_B{t}"
        if t >= len(sentence):
            return f"_B+{t - len(sentence) + 1}"
        return sentence[t][column]

    rows = []
    for sentence in sentences:
        for t in range(len(sentence)):
            row = []
            for template in templates:
                test = re.sub(
                    r"%x\[(-?\d+),(\d+)\]",
                    lambda m: value(sentence, t + int(m[1]), int(m[2])),  # noqa: B023
                    template,
                )
                row.append(numbers.setdefault(test, len(numbers) + 1))
            rows.append(row)
    unigram = [i for i, template in enumerate(templates) if template.startswith("U")]
    bigram = [i for i, template in enumerate(templates) if template.startswith("B")]
    return Observations(
        hashes=np.array(rows, dtype=np.uint64),
        offsets=np.cumsum([0, *map(len, sentences)]).astype(np.int64),
        unigram_columns=np.array(unigram, dtype=np.int32),
        bigram_columns=np.array(bigram, dtype=np.int32),
        start_label=False,
    )
