"""Templates laid out as arrays, and where their values come from."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH, SENT_START  # type: ignore[import-not-found]
from spacy.strings import get_string_id

from ..corpus.readings import Conjunctions, Hashes, Templates
from ..errors import Errors, SparseCRFError
from .arguments import Read
from .attributes import ANNOTATION, EXTENSION, NGRAMS, SPAN, TOKEN, VECTOR, Ngrams
from .templates import Template, TokenTest

# From where an offset counts, see `Conjunctions`.
FROM_TOKEN, FROM_FIRST, FROM_END = range(3)
_EVERYWHERE = ("norm", "glued")  # annotations that every Doc has
MOST_TESTS = 2048  # of a template at one token


@dataclass(frozen=True)
class Plan:
    """Templates as the hashing kernels take them, and the columns of values that they read.

    words: word attributes, whose values are the first columns; annotations: spaCy attribute ids,
    whose values are the next columns: the first two are ORTH and SENT_START, which say what the
    word is and where sentences begin; tokens: attributes that are read in Python, for the last
    columns. An attribute with several values has several columns.
    token_columns: for each of the last columns, the attribute in `tokens` whose value it has.
    first: of attributes, the position of the first template that reads it.
    owners: [P] int32, position of the template of each test, among those that are hashed.
    values: tests that are not hashed: they read numbers, see `values`; value_owners: for each
    number, the position of its template, among all.
    """

    words: tuple[Read, ...]
    annotations: tuple[int, ...]
    tokens: tuple[Read, ...]
    token_columns: tuple[Read, ...]
    first: dict[Read, int]
    owners: NDArray[np.int32]
    templates: Templates
    values: tuple[TokenTest, ...] = ()
    value_owners: tuple[int, ...] = ()

    @cached_property
    def watched(self) -> dict[str, int]:
        """Attributes that come from elsewhere, see `coverage`, and their columns of annotations."""
        found = {
            name: self.annotations.index(i)
            for name, i in ANNOTATION.items()
            if i in self.annotations and name not in _EVERYWHERE
        }
        for column, read in enumerate(self.token_columns, len(self.annotations)):
            if read.name in (EXTENSION, SPAN):
                found[str(read)] = column
        return found


def make_plan(
    templates: Sequence[Template],
    start_label: bool,
    vector_width: int = 0,
    boundaries: int | None = None,
) -> Plan:
    """Lay templates out as arrays.

    A template of attributes that have several values at a token is as many tests, for all
    combinations; they share a seed, so that a value gives the same test in every column.

    start_label: see `Templates`; vector_width: number of dimensions of vectors; boundaries:
    how many distances from a sequence are told apart, None for all.
    RAISES: SparseCRFError for a template of too many tests.
    """
    first: dict[Read, int] = {}
    for template in templates:
        for test in template.tests:
            first.setdefault(test.read, template.number - 1)
    real = {t: template.tests[0] for t, template in enumerate(templates) if template.is_real}
    values = tuple(real.values())
    value_owners = [t for t, test in real.items() for _ in names_of_values([test], vector_width)]
    templates = [template for template in templates if not template.is_real]
    hashed = [read for read in first if not read.is_real]
    words = tuple(read for read in hashed if read.name not in (*ANNOTATION, *TOKEN))
    tokens = tuple(read for read in hashed if read.name in TOKEN)
    attributes = [ANNOTATION[read.name] for read in hashed if read.name in ANNOTATION]
    annotations = tuple(dict.fromkeys([ORTH, SENT_START, *attributes]))
    columns: dict[Read, list[int]] = {}
    n_lexical = _lay_out(columns, words, 0, vector_width)
    for name, attribute in ANNOTATION.items():
        if attribute in annotations:
            columns[Read(name)] = [n_lexical + annotations.index(attribute)]
    _lay_out(columns, tokens, n_lexical + len(annotations), vector_width)
    conjunctions, owners = _conjoin(templates, columns, boundaries)
    kinds = [templates[i].kinds for i in owners]
    by_kind = positions_of(kinds, "u"), positions_of(kinds, "b")
    seeds, numbers = hashed_names(values, vector_width)
    made = Templates(conjunctions, n_lexical, *by_kind, start_label, seeds, numbers)
    token_columns = tuple(read for read in tokens for _ in range(_width(read, vector_width)))
    laid_out = words, annotations, tokens, token_columns
    return Plan(*laid_out, first, owners, made, values, tuple(value_owners))


def _lay_out(
    columns: dict[Read, list[int]], reads: Sequence[Read], start: int, vector_width: int
) -> int:
    """Enter the columns of attributes, from `start`. RETURNS: the column behind them.

    All columns of an attribute but the first are marked, see `Conjunctions`.
    """
    for read in reads:
        width = _width(read, vector_width)
        columns[read] = [~c if c > start else c for c in range(start, start + width)]
        start += width
    return start


def _width(read: Read, vector_width: int) -> int:
    """Number of values that an attribute can have at a token."""
    if read.name == NGRAMS:
        return Ngrams(read.length, read.longest, read.argument).width
    return vector_width if read.name == VECTOR else 1


def _conjoin(
    templates: Sequence[Template], columns: dict[Read, list[int]], boundaries: int | None
) -> tuple[Conjunctions, NDArray[np.int32]]:
    """Make the tests of templates. RETURNS: the tests, and the template of each."""
    seeds: list[int] = []
    owners: list[int] = []
    part_ptr = [0]
    part_columns: list[int] = []
    tests: list[TokenTest] = []
    for i, template in enumerate(templates):
        of_parts = [columns[test.read] for test in template.tests]
        n_tests = prod(map(len, of_parts))
        if n_tests > MOST_TESTS:
            error = Errors.SC130.format(
                number=template.number, template=str(template), n=n_tests, most=MOST_TESTS
            )
            raise SparseCRFError(error)
        seed = seed_of(template.key)
        for chosen in product(*of_parts):
            part_columns += chosen
            tests += template.tests
            part_ptr.append(len(part_columns))
        seeds += [seed] * n_tests
        owners += [i] * n_tests
    part_offsets, part_anchors = places_of(tests)
    conjunctions = Conjunctions(
        seeds=np.array(seeds, dtype=np.uint64),
        part_ptr=np.array(part_ptr, dtype=np.int64),
        part_columns=np.array(part_columns, dtype=np.int64),
        part_offsets=part_offsets,
        part_anchors=part_anchors,
        n_edges=count_edges(tests, boundaries),
    )
    return conjunctions, np.array(owners, dtype=np.int32)


def seed_of(key: str) -> int:
    """64 bits from the canonical text of a template's tests, the same in every process."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def names_of_values(tests: Sequence[TokenTest], vector_width: int) -> list[tuple[str, str]]:
    """What real-valued features are called: test and dimension, "d0" of a single number."""
    return [
        (str(test), f"d{i}")
        for test in tests
        for i in range(vector_width if test.attribute == VECTOR else 1)
    ]


def hashed_names(tests: Sequence[TokenTest], vector_width: int) -> tuple[Hashes, Hashes]:
    """Seeds and numbers of values, [V] uint64 each, of the names of real-valued features."""
    names = names_of_values(tests, vector_width)
    seeds = np.array([seed_of(test) for test, _ in names], dtype=np.uint64)
    numbers = np.array([int(get_string_id(value)) for _, value in names], dtype=np.uint64)
    return seeds, numbers


def positions_of(kinds: Sequence[str], kind: str) -> NDArray[np.int32]:
    """Positions of the tests that are conjoined with a label (u) or a pair (b)."""
    return np.array([i for i, of_test in enumerate(kinds) if kind in of_test], dtype=np.int32)


class Placed(Protocol):
    """A test: where `absolute`, its offset is a place, 1 the first of the sequence, -1 the last."""

    @property
    def offset(self) -> int:
        """In tokens."""

    @property
    def absolute(self) -> bool:
        """Whether it does not count from the current token."""


def places_of(tests: Sequence[Placed]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets [K] of tests, and from where they count [K]."""
    places = [_place(test) for test in tests]
    offsets, anchors = np.array(places, dtype=np.int64).reshape(-1, 2).T.copy()
    return offsets, anchors


def _place(test: Placed) -> tuple[int, int]:
    if not test.absolute:
        return test.offset, FROM_TOKEN
    return (test.offset - 1, FROM_FIRST) if test.offset >= 0 else (test.offset, FROM_END)


def count_edges(tests: Iterable[Placed], boundaries: int | None) -> int:
    """How many distances from a sequence need values.

    boundaries: how many are told apart from each other and from all others, None for all.
    """
    furthest = max((abs(test.offset) for test in tests), default=0)
    return max(1, furthest if boundaries is None else min(furthest, boundaries + 1))
