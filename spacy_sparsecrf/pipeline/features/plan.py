"""Templates laid out as arrays, and the sources of their values."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, product
from math import prod
from typing import Any

import numpy as np
from spacy.attrs import ORTH, SENT_START  # type: ignore[import-not-found]
from spacy.strings import get_string_id

from ...crf.corpus.numbering import Hashes, Ints, Longs
from ...crf.corpus.readings import Conjunctions, Templates
from ...crf.model.names import write_name
from ...errors import Errors, SparseCRFError
from .attributes.annotation import ANNOTATIONS, Annotation
from .attributes.attribute import Attribute, PythonAttribute, WordAttribute
from .attributes.document import DocAttribute
from .attributes.stage import Prediction
from .templates import PlacedAttribute, Template

# Origins of offsets, see `HashPlan`.
FROM_TOKEN, FROM_FIRST, FROM_END = range(3)
MOST_READ = 1 << 14  # total number of attributes in the features of all templates at one token


@dataclass(frozen=True)
class RealValues:
    """Real-valued features, which are not hashed.

    attributes: of their templates, see `tokens.read_values`.
    names: of each value.
    """

    attributes: tuple[PlacedAttribute, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class TemplatePlan:
    """Templates in the form of the hashing kernels, and the columns of values that they read.

    words: word attributes, whose values are the first columns; annotations: spaCy attribute ids,
    whose values are the next columns, always beginning with ORTH, the word, and SENT_START, the
    beginnings of sentences; tokens: attributes that are read in Python, whose values are the last
    columns. An attribute with several values has several columns.
    token_columns: the attribute in `tokens` of each of the last columns.
    first: for each attribute, the position of the first template that reads it.
    vector_width: number of dimensions of vectors, 0 if unknown.
    """

    words: tuple[WordAttribute, ...]
    annotations: tuple[int, ...]
    tokens: tuple[PythonAttribute, ...]
    token_columns: tuple[PythonAttribute, ...]
    first: dict[Attribute, int]
    templates: Templates
    real: RealValues = RealValues()
    vector_width: int = 0

    @cached_property
    def stored(self) -> dict[int, Attribute]:
        """The attributes whose values are columns of annotations, by column."""
        stored: dict[int, Attribute] = {
            self.annotations.index(ANNOTATIONS[name]): Annotation(name)
            for name in ANNOTATIONS
            if ANNOTATIONS[name] in self.annotations
        }
        return stored | dict(enumerate(self.token_columns, len(self.annotations)))

    @cached_property
    def watched(self) -> dict[str, int]:
        """Attributes that are set outside the component, and annotation columns."""
        return {
            str(read): column
            for column, read in self.stored.items()
            if isinstance(read, Annotation | PythonAttribute) and read.is_watched
        }

    @cached_property
    def glued(self) -> int:
        """The annotation column of `glued`, 0 if no template reads it."""
        return self._column_of("glued")

    @cached_property
    def breaks(self) -> int:
        """The annotation column of `break`, 0 if no template reads it."""
        return self._column_of("break")

    def _column_of(self, name: str) -> int:
        id_ = ANNOTATIONS[name]
        return self.annotations.index(id_) if id_ in self.annotations else 0

    @cached_property
    def stacked(self) -> dict[Prediction, int]:
        """Attributes of a first-stage model, and their annotation columns."""
        return {read: at for at, read in self.stored.items() if isinstance(read, Prediction)}

    @cached_property
    def document(self) -> dict[DocAttribute, int]:
        """Attributes of a word's other occurrences, and their annotation columns."""
        return {read: at for at, read in self.stored.items() if isinstance(read, DocAttribute)}

    @cached_property
    def first_templates(self) -> Templates:
        """The templates of a first-stage model, which read no predictions."""
        if not self.stacked:
            return self.templates
        conjunctions = self.templates.conjunctions
        predictions = [self.templates.n_lexical + column for column in self.stacked.values()]
        reads_one = np.isin(conjunctions.columns, predictions)
        parts = pairwise(conjunctions.part_ptr)
        return self.templates.select(
            [p for p, (begin, end) in enumerate(parts) if not reads_one[begin:end].any()]
        )


def make_plan(
    templates: Sequence[Template],
    start_label: bool,
    vector_width: int = 0,
    boundaries: int | None = None,
) -> TemplatePlan:
    """Lay templates out as arrays.

    A template of attributes with several values at a token becomes a conjunction for each
    combination of columns. All share a seed, so that a value gives the same feature in any column.

    start_label: see `Templates`; vector_width: number of dimensions of vectors; boundaries:
    number of distances from a sequence that are distinguished, None for all.
    RAISES: SparseCRFError for a template with too many conjunctions.
    """
    first: dict[Attribute, int] = {}
    for template in templates:
        for placed in template.attributes:
            first.setdefault(placed.read, template.number - 1)
    words = tuple(read for read in first if isinstance(read, WordAttribute))
    annotations = annotations_of(first)
    tokens = tuple(read for read in first if isinstance(read, PythonAttribute))
    columns: dict[Attribute, list[int]] = {}
    n_lexical = _lay_out(columns, words, start=0, vector_width=vector_width)
    for read in first:
        if isinstance(read, Annotation):
            columns[read] = [n_lexical + annotations.index(id_) for id_ in read.stored]
    _lay_out(columns, tokens, start=n_lexical + len(annotations), vector_width=vector_width)
    hashed = [template for template in templates if not template.is_real]
    conjunctions, owners = _conjoin_templates(hashed, columns, boundaries)
    real, seeds, numbers = _real_values(templates, vector_width)
    unigram, bigram = by_kind([hashed[i].kinds for i in owners])
    return TemplatePlan(
        words=words,
        annotations=annotations,
        tokens=tokens,
        token_columns=tuple(read for read in tokens for _ in range(read.width(vector_width))),
        first=first,
        templates=Templates(
            conjunctions,
            n_lexical=n_lexical,
            unigram_columns=unigram,
            bigram_columns=bigram,
            start_label=start_label,
            value_seeds=seeds,
            value_numbers=numbers,
        ),
        real=real,
        vector_width=vector_width,
    )


def _real_values(
    templates: Sequence[Template], vector_width: int
) -> tuple[RealValues, Hashes, Hashes]:
    """Return the real-valued features of templates, and see `Templates`: value_seeds and _numbers.

    A dimension d of an attribute's values is named as if it had the value `dD`.
    """
    real = tuple(template.attributes[0] for template in templates if template.is_real)
    dimensions = [
        (str(placed), f"d{i}") for placed in real for i in range(placed.read.width(vector_width))
    ]
    names = tuple(write_name([dimension]) for dimension in dimensions)
    seeds = np.array([seed_of(placed) for placed, _ in dimensions], dtype=np.uint64)
    numbers = np.array([get_string_id(value) for _, value in dimensions], dtype=np.uint64)
    return RealValues(real, names), seeds, numbers


def annotations_of(reads: Iterable[Attribute]) -> tuple[int, ...]:
    """Return the ids of spaCy's attributes to read: ORTH, SENT_START, and all that `reads` need."""
    return tuple(dict.fromkeys([ORTH, SENT_START, *(id_ for read in reads for id_ in read.stored)]))


def _lay_out(
    columns: dict[Attribute, list[int]],
    reads: Sequence[Attribute],
    start: int,
    vector_width: int,
) -> int:
    """Assign columns to attributes, from `start`. RETURNS: the next free column.

    All columns of an attribute but the first are marked by ~, see `HashPlan`.
    """
    for read in reads:
        behind = start + read.width(vector_width)
        columns[read] = [~c if c > start else c for c in range(start, behind)]
        start = behind
    return start


def _conjoin_templates(
    templates: Sequence[Template], columns: dict[Attribute, list[int]], boundaries: int | None
) -> tuple[Conjunctions, list[int]]:
    """Make the conjunctions of templates. RETURNS: conjunctions, and the template of each."""
    owners: list[int] = []
    combinations: list[tuple[int, ...]] = []
    n_read = 0
    for i, template in enumerate(templates):
        of_parts = [columns[placed.read] for placed in template.attributes]
        n = prod(map(len, of_parts))
        n_read += n * len(of_parts)
        if n_read > MOST_READ:
            message = Errors.SC139.format(
                number=template.number, template=str(template), n=n_read, most=MOST_READ
            )
            raise SparseCRFError(message)
        combinations += product(*of_parts)
        owners += [i] * n
    attributes = [templates[i].attributes for i in owners]
    offsets = (placed.offset for of_one in attributes for placed in of_one)
    furthest = max(map(abs, offsets), default=0)
    n_edges = max(1, furthest if boundaries is None else min(furthest, boundaries + 1))
    seeds = [seed_of(template.key) for template in templates]
    conjunctions = conjoin(
        seeds=[seeds[i] for i in owners],
        placed=attributes,
        columns=combinations,
        n_edges=n_edges,
    )
    return conjunctions, owners


def conjoin(
    seeds: Sequence[int],
    placed: Sequence[Sequence[Any]],
    columns: Sequence[Sequence[int]],
    n_edges: int,
    given_edges: Hashes | None = None,
) -> Conjunctions:
    """Lay out conjunctions as arrays, given the seed, attributes and columns of each.

    placed: see `places_of`; n_edges, given_edges: see `Conjunctions`.
    """
    offsets, anchors = places_of([*chain.from_iterable(placed)])
    return Conjunctions(
        seeds=np.array(seeds, dtype=np.uint64),
        part_ptr=np.cumsum([0, *map(len, placed)], dtype=np.int64),
        part_columns=np.array([*chain.from_iterable(columns)], dtype=np.int64),
        part_offsets=offsets,
        part_anchors=anchors,
        n_edges=n_edges,
        given_edges=given_edges,
    )


def seed_of(key: str) -> int:
    """Hash the canonical text of a template's attributes to 64 bits, the same in every process."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def by_kind(kinds: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the positions of conjunctions with the label (u), and with the label pair (b)."""
    unigram, bigram = (
        [i for i, of_template in enumerate(kinds) if kind in of_template] for kind in "ub"
    )
    return np.array(unigram, dtype=np.int32), np.array(bigram, dtype=np.int32)


def places_of(placed: Sequence[Any]) -> tuple[Longs, Longs]:
    """Return the offsets [K] of attributes, and the origins [K] of the offsets.

    placed: with `offset` in tokens, and `absolute`: 1 is the first token of the sequence, -1 the
    last.
    """
    offsets = np.array([attribute.offset for attribute in placed], dtype=np.int64)
    absolute = np.array([attribute.absolute for attribute in placed], dtype=np.bool_)
    anchors = np.where(absolute, np.where(offsets >= 0, FROM_FIRST, FROM_END), FROM_TOKEN)
    return offsets - (anchors == FROM_FIRST), anchors
