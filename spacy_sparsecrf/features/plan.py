"""Templates laid out as arrays, and where their values come from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH, SENT_START  # type: ignore[import-not-found]

from ..readings import Conjunctions, Templates
from .attributes import ANNOTATION
from .templates import Template


@dataclass(frozen=True)
class Plan:
    """Templates as the hashing kernels take them, and the columns of values that they read.

    words: [L] word attributes with their affix length, columns 0..L-1 of values.
    annotations: [A] spaCy attribute ids, columns L..L+A-1 of values; the first two are ORTH and
        SENT_START, which say what the word is and where sentences begin.
    """

    words: tuple[tuple[str, int], ...]
    annotations: tuple[int, ...]
    templates: Templates


def make_plan(templates: Sequence[Template], start_label: bool) -> Plan:
    """Lay templates out as arrays. start_label: see `Templates`."""
    tests = [test for template in templates for test in template.tests]
    used = dict.fromkeys((test.attribute, test.length) for test in tests)
    words = tuple(column for column in used if column[0] not in ANNOTATION)
    attributes = [ANNOTATION[name] for name, _ in used if name in ANNOTATION]
    annotations = tuple(dict.fromkeys([ORTH, SENT_START, *attributes]))
    columns = {column: i for i, column in enumerate(words)}
    for name, attribute in ANNOTATION.items():
        if attribute in annotations:
            columns[name, 0] = len(words) + annotations.index(attribute)
    conjunctions = Conjunctions(
        seeds=np.array([seed_of(template.key) for template in templates], dtype=np.uint64),
        part_ptr=np.cumsum([0, *(len(template.tests) for template in templates)], dtype=np.int64),
        part_columns=np.array([columns[t.attribute, t.length] for t in tests], dtype=np.int64),
        part_offsets=np.array([test.offset for test in tests], dtype=np.int64),
    )
    return Plan(
        words,
        annotations,
        Templates(
            conjunctions,
            len(words),
            _columns(templates, "u"),
            _columns(templates, "b"),
            start_label,
        ),
    )


def seed_of(key: str) -> int:
    """64 bits from the canonical text of a template's tests, the same in every process."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def _columns(templates: Sequence[Template], kind: str) -> NDArray[np.int32]:
    """Positions of the templates whose tests are conjoined with a label (u) or a pair (b)."""
    return np.array([i for i, t in enumerate(templates) if kind in t.kinds], dtype=np.int32)
