"""Columns with soft labels, as in B-PER:0.7|O:0.3 -> Docs with weights.

The labels of each token divide the interval from 0 to 1, in the order in which they are written.
Each part of the interval in which no token's label changes is one labelling of the sentence; its
weight is the part's length. The expected count of a label is thus exactly its weight in the cell,
and the labels of the first annotator, written first, are in the same labelling.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError
from ..pipeline.settings import SOFT_WEIGHT, register_soft_weight
from .attributes import DOCSTART, WORDS
from .columns import Sentence, Source
from .docs import read_docs
from .schemes import ColumnScheme

_PART = re.compile(r"(.+):(\d*\.?\d+)")
# Permitted deviation of a sum from 1, because weights are written with few digits.
_TOLERANCE = 0.02
_DIGITS = 9


def read_soft_docs(source: Source, vocab: Vocab, scheme: ColumnScheme) -> Iterator[Doc]:
    """Create Docs from a file, one for each labelling of a sentence; see `read_docs`.

    RAISES: SparseCRFError if the weights of a cell do not sum to 1, and as `read_docs`.
    """
    register_soft_weight()
    weights: deque[float] = deque()

    def labellings() -> Iterator[Sentence]:
        for sentence in source.sentences:
            for weight, rows in _labellings(source, sentence):
                if len(rows) > 1 or rows[0].values[0] != DOCSTART:
                    weights.append(weight)
                yield rows

    for doc in read_docs(replace(source, sentences=labellings()), vocab, scheme=scheme):
        weight = weights.popleft()
        if weight != 1.0:
            doc._.set(SOFT_WEIGHT, weight)
        yield doc


def _labellings(source: Source, sentence: Sentence) -> Iterator[tuple[float, Sentence]]:
    """Yield the labellings of a sentence and their weights."""
    table = [
        [
            [(value, 1.0)] if name == WORDS else _parse(source.path, row.line, name, value)
            for name, value in zip(source.columns, row.values, strict=False)
        ]
        for row in sentence
    ]
    ends = {end for cells in table for cell in cells for _, end in cell if end > 0.0}
    for begin, end in pairwise([0.0, *sorted(ends)]):
        rows = [
            row._replace(values=[next(x for x, last in cell if end <= last) for cell in cells])
            for row, cells in zip(sentence, table, strict=True)
        ]
        # Only the first labelling keeps the mark, so that a document begins once.
        yield end - begin, rows[1:] if begin and rows[0].values[0] == DOCSTART else rows


def _parse(path: Path, line: int, column: str, cell: str) -> list[tuple[str, float]]:
    """Return the labels of a cell, each with its end in the interval from 0 to 1."""
    parts = [_PART.fullmatch(part) for part in cell.split("|")]
    where = {"path": path, "line": line, "value": cell, "column": column}
    if None in parts:
        if any(parts):
            reason = "some of its labels have no weight such as :0.7"
            raise SparseCRFError(Errors.SC616.format(**where, reason=reason))
        return [(cell, 1.0)]
    labels, weights = zip(*(part.groups() for part in parts if part), strict=True)
    total = sum(map(float, weights))
    if abs(total - 1.0) > _TOLERANCE:
        reason = f"its weights sum to {total:g} and not to 1"
        raise SparseCRFError(Errors.SC616.format(**where, reason=reason))
    ends = np.round(np.cumsum([float(weight) / total for weight in weights]), _DIGITS)
    return list(zip(labels, ends.tolist(), strict=True))
