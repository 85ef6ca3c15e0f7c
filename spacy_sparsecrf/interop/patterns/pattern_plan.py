"""Columns of other programs' data, with one text per token, and arrays of patterns of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from ...crf.corpus.numbering import Hashes
from ...crf.corpus.readings import Templates
from ...errors import Errors, SparseCRFError
from ...pipeline.features.attributes.annotation import Annotation
from ...pipeline.features.attributes.attribute import (
    Attribute,
    PythonAttribute,
    Value,
    WordAttribute,
    number_of_text,
    text_of,
)
from ...pipeline.features.plan import TemplatePlan, annotations_of, by_kind, conjoin, seed_of
from ...pipeline.features.templates import parse_template
from .macros import ColumnView, Dialect, Macro, Pattern

See: TypeAlias = Callable[[str], str]
Column: TypeAlias = tuple[Attribute, ColumnView]


def parse_columns(columns: Sequence[str]) -> tuple[Attribute, ...]:
    """Parse the attributes of columns.

    RAISES: SparseCRFError if they are not a list of attributes with one text per token.
    """
    if isinstance(columns, str) or not columns:
        raise SparseCRFError(Errors.SC157.format(value=columns))
    return tuple(_parse_column(i, column) for i, column in enumerate(columns))


def _parse_column(number: int, column: str) -> Attribute:
    try:
        attributes = parse_template(f"u:{column}[0]").attributes
        reason = "" if len(attributes) == 1 else "it has an offset."
    except SparseCRFError as error:
        attributes, reason = (), str(error)
    if not reason and not attributes[0].read.has_one_text:
        reason = "it is not one text."
    if reason:
        raise SparseCRFError(Errors.SC158.format(number=number, column=column, reason=reason))
    return attributes[0].read


@dataclass(frozen=True)
class Shown:
    """A reader of words that applies a view to an attribute.

    read: the attribute; see: the view of its text.
    """

    read: Callable[[str], Value]
    see: See

    def text(self, text: str) -> str | None:
        """Return the viewed text; None if the attribute is empty."""
        value = text_of(self.read(text))
        return self.see(value) if value else None

    def __call__(self, text: str) -> int:
        """Return the number of the viewed text; 0 if the attribute is empty."""
        shown = self.text(text)
        return 0 if shown is None else number_of_text(shown)


class PatternPlan(NamedTuple):
    """A template plan for patterns, and the views of the texts that it reads.

    plan: its columns of values are L word attributes, then A annotations, then T attributes that
        are read in Python.
    words: [L] the view of each word attribute.
    seen: the views of the A + T columns, by the position of the column among them; their values are
        the last columns, in this order.
    patterns, dialect: the patterns of the plan, one conjunction each.
    """

    patterns: tuple[Pattern, ...]
    dialect: Dialect
    plan: TemplatePlan
    words: tuple[See, ...]
    seen: dict[int, tuple[See, ...]]


def plan_patterns(
    patterns: Sequence[Pattern], reads: Sequence[Attribute], dialect: Dialect, start_label: bool
) -> PatternPlan:
    """Convert patterns to the arrays of a plan.

    reads: attribute of each column; start_label: see `Templates`.
    RAISES: ImportError if the package `regex` is needed and missing.
    """
    macros = [macro for pattern in patterns for macro in pattern.macros]
    see = {macro.view: macro.view.compile() for macro in macros}
    used = list(dict.fromkeys((reads[macro.column], macro.view) for macro in macros))
    words = [(read, view) for read, view in used if isinstance(read, WordAttribute)]
    others = [(read, view) for read, view in used if not isinstance(read, WordAttribute)]
    annotations = annotations_of(read for read, _ in others)
    tokens = dict.fromkeys(read for read, _ in others if isinstance(read, PythonAttribute))
    stored: list[object] = [*annotations, *tokens]
    by_position: dict[int, list[Column]] = {}
    for read, view in others:
        column: object = read.stored[0] if isinstance(read, Annotation) else read
        by_position.setdefault(stored.index(column), []).append((read, view))
    seen = chain.from_iterable(by_position.values())
    columns: dict[Column, int] = {key: i for i, key in enumerate(words)}
    columns |= {key: i for i, key in enumerate(seen, len(words) + len(stored))}
    conjunctions = conjoin(
        seeds=[seed_of(pattern.key) for pattern in patterns],
        placed=[pattern.macros for pattern in patterns],
        columns=[
            [columns[reads[macro.column], macro.view] for macro in p.macros] for p in patterns
        ],
        n_edges=len(dialect.before),
        given_edges=_edges(macros, see, dialect),
    )
    kinds = [pattern.kinds for pattern in patterns]
    distinct = list(dict.fromkeys(reads))
    plan = TemplatePlan(
        words=tuple(read for read, _ in words),
        annotations=annotations,
        tokens=tuple(tokens),
        token_columns=tuple(tokens),
        first={read: distinct.index(read) for read, _ in used},
        templates=Templates(conjunctions, len(words), *by_kind(kinds), start_label),
    )
    seen_words = tuple(see[view] for _, view in words)
    views = {at: tuple(see[view] for _, view in keys) for at, keys in by_position.items()}
    return PatternPlan(
        patterns=tuple(patterns), dialect=dialect, plan=plan, words=seen_words, seen=views
    )


def _edges(macros: Sequence[Macro], see: dict[ColumnView, See], dialect: Dialect) -> Hashes:
    """Return the values of each macro outside of the sequence, from the dialect's texts."""
    sides = dialect.before, dialect.behind
    of_view = {
        view: [[number_of_text(shown(text)) for text in side] for side in sides]
        for view, shown in see.items()
    }
    values = np.array([of_view[macro.view] for macro in macros], dtype=np.uint64)
    return values.reshape(len(macros), 2, len(dialect.before))
