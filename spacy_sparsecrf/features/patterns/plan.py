"""Patterns of other programs laid out as arrays, and where their values come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH, SENT_START  # type: ignore[import-not-found]

from ...corpus.readings import Conjunctions, Templates
from ..arguments import Read
from ..attributes import ANNOTATION, NUMBERS, TOKEN
from ..plan import Plan, places_of, positions_of, seed_of
from .macros import Dialect, Macro, Pattern
from .views import View, value_of

See: TypeAlias = Callable[[str], str]
Key: TypeAlias = tuple[Read, View]


@dataclass(frozen=True)
class PatternPlan:
    """A plan, and what is seen of the texts that it reads.

    plan: reads word attributes, L columns of values; annotations, the A columns behind; and
        attributes that are read in Python, the T columns behind those.
    words: [L] what is seen of each word attribute.
    seen: by the position of one of the A + T columns what else is seen of it: the last columns, in
        this order.
    patterns, dialect: what was laid out, a test each.
    """

    patterns: tuple[Pattern, ...]
    dialect: Dialect
    plan: Plan
    words: tuple[See, ...]
    seen: dict[int, tuple[See, ...]]


def plan_patterns(
    patterns: Sequence[Pattern], reads: Sequence[Read], dialect: Dialect, start_label: bool
) -> PatternPlan:
    """Lay patterns out as arrays.

    reads: what each column is; start_label: see `Templates`.
    RAISES: ImportError if the package `regex` is needed, and missing.
    """
    tests = [test for pattern in patterns for test in pattern.tests]
    see = {test.view: test.view.compile() for test in tests}
    used = list(dict.fromkeys((reads[test.column], test.view) for test in tests))
    words = [key for key in used if key[0].name not in (*ANNOTATION, *TOKEN)]
    others = [key for key in used if key not in words]
    annotations, tokens, position = _store(others)
    seen = sorted((key for key in others if not _is_stored(key)), key=position.__getitem__)
    columns = {key: i for i, key in enumerate(words)}
    columns |= {key: len(words) + position[key] for key in others}
    first_seen = len(words) + len(annotations) + len(tokens)
    columns |= {key: first_seen + i for i, key in enumerate(seen)}
    by_column = [columns[reads[test.column], test.view] for test in tests]
    kinds = [pattern.kinds for pattern in patterns]
    by_kind = positions_of(kinds, "u"), positions_of(kinds, "b")
    conjunctions = _conjoin(patterns, by_column, see, dialect)
    distinct = list(dict.fromkeys(reads))
    plan = Plan(
        words=tuple(read for read, _ in words),
        annotations=annotations,
        tokens=tokens,
        token_columns=tokens,
        first={read: distinct.index(read) for read, _ in used},
        owners=np.arange(len(patterns), dtype=np.int32),
        templates=Templates(conjunctions, len(words), *by_kind, start_label),
    )
    by_position: dict[int, tuple[See, ...]] = {}
    for key in seen:
        by_position[position[key]] = (*by_position.get(position[key], ()), see[key[1]])
    seen_words = tuple(see[view] for _, view in words)
    return PatternPlan(tuple(patterns), dialect, plan, seen_words, by_position)


def _store(keys: Sequence[Key]) -> tuple[tuple[int, ...], tuple[Read, ...], dict[Key, int]]:
    """Find what is read besides words.

    RETURNS: spaCy attribute ids, attributes that are read in Python, and the position among both
        of what each key reads.
    """
    ids = [ANNOTATION[read.name] for read, _ in keys if read.name in ANNOTATION]
    annotations = tuple(dict.fromkeys([ORTH, SENT_START, *ids]))
    tokens = tuple(dict.fromkeys(read for read, _ in keys if read.name in TOKEN))
    stored: list[object] = [*annotations, *tokens]
    position = {key: stored.index(ANNOTATION.get(key[0].name, key[0])) for key in keys}
    return annotations, tokens, position


def _is_stored(key: Key) -> bool:
    """Whether spaCy's own number of an annotation is that of the text that is seen of it."""
    read, view = key
    return view == View() and read.name in ANNOTATION and ANNOTATION[read.name] not in NUMBERS


def _conjoin(
    patterns: Sequence[Pattern], columns: Sequence[int], see: dict[View, See], dialect: Dialect
) -> Conjunctions:
    """Make the tests of patterns. columns: of all their macros."""
    tests = [test for pattern in patterns for test in pattern.tests]
    part_offsets, part_anchors = places_of(tests)
    return Conjunctions(
        seeds=np.array([seed_of(pattern.key) for pattern in patterns], dtype=np.uint64),
        part_ptr=np.cumsum([0, *(len(pattern.tests) for pattern in patterns)], dtype=np.int64),
        part_columns=np.array(columns, dtype=np.int64),
        part_offsets=part_offsets,
        part_anchors=part_anchors,
        n_edges=len(dialect.before),
        given_edges=_edges(tests, see, dialect),
    )


def _edges(tests: Sequence[Macro], see: dict[View, See], dialect: Dialect) -> NDArray[np.uint64]:
    """Values of each test outside the sequence: those of the dialect's texts there."""
    sides = dialect.before, dialect.behind
    of_view = {
        view: [[value_of(shown(text)) for text in side] for side in sides]
        for view, shown in see.items()
    }
    values = np.array([of_view[test.view] for test in tests], dtype=np.uint64)
    return values.reshape(len(tests), 2, len(dialect.before))
