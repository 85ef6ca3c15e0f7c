"""Templates laid out as arrays, and the sources of their values."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from math import prod
from typing import Any

import numpy as np
from spacy.attrs import LOWER, ORTH, SENT_START  # type: ignore[import-not-found]
from spacy.strings import get_string_id

from ..corpus.numbering import Hashes, Ints, Longs
from ..corpus.readings import Conjunctions, Templates
from ..errors import Errors, SparseCRFError
from ..model.names import write_name
from .attributes import words as attributes
from .cursor import Read
from .templates import PlacedAttribute, Template

# Origins of offsets, see `HashPlan`.
FROM_TOKEN, FROM_FIRST, FROM_END = range(3)
_EVERYWHERE = ("norm", "glued", "break")  # annotations that every Doc has
MOST_READ = 1 << 14  # total number of attributes in the features of all templates at one token


@dataclass(frozen=True)
class TemplatePlan:
    """Templates in the form of the hashing kernels, and the columns of values that they read.

    words: word attributes, whose values are the first columns; annotations: spaCy attribute ids,
    whose values are the next columns, always beginning with ORTH, the word, and SENT_START, the
    beginnings of sentences; tokens: attributes that are read in Python, whose values are the last
    columns. An attribute with several values has several columns.
    token_columns: the attribute in `tokens` of each of the last columns.
    first: for each attribute, the position of the first template that reads it.
    owners: [P] int32, position of each conjunction's template among the hashed templates.
    values: real-valued attributes, which are not hashed, see `tokens.read_values`; value_owners,
    value_names: of each real value, the position of its template among all templates, its name.
    vector_width: number of dimensions of vectors, 0 if unknown.
    """

    words: tuple[Read, ...]
    annotations: tuple[int, ...]
    tokens: tuple[Read, ...]
    token_columns: tuple[Read, ...]
    first: dict[Read, int]
    owners: Ints
    templates: Templates
    values: tuple[PlacedAttribute, ...] = ()
    value_owners: tuple[int, ...] = ()
    value_names: tuple[str, ...] = ()
    vector_width: int = 0

    @cached_property
    def watched(self) -> dict[str, int]:
        """Attributes that are set outside the component, and annotation columns."""
        found = {
            name: self.annotations.index(i)
            for name, i in attributes.ANNOTATION.items()
            if i in self.annotations and name not in _EVERYWHERE
        }
        for column, read in enumerate(self.token_columns, len(self.annotations)):
            if read.name in (attributes.EXTENSION, attributes.SPAN):
                found[str(read)] = column
        return found

    @cached_property
    def filled(self) -> tuple[int, int]:
        """Annotation columns of `glued` and `break`, 0 if no template reads them."""
        own = (attributes.ANNOTATION[name] for name in ("glued", "break"))
        glued, breaks = (self.annotations.index(i) if i in self.annotations else 0 for i in own)
        return glued, breaks

    @cached_property
    def stacked(self) -> dict[Read, int]:
        """Attributes of a first-stage model, and their annotation columns."""
        columns = enumerate(self.token_columns, len(self.annotations))
        return {read: column for column, read in columns if read.name in attributes.STACKED}

    @cached_property
    def document(self) -> dict[str, int]:
        """Annotation columns of the attributes of a word's other occurrences, by name."""
        columns = enumerate(self.token_columns, len(self.annotations))
        return {read.name: column for column, read in columns if read.name in attributes.DOCUMENT}

    @cached_property
    def first_templates(self) -> Templates:
        """The templates of a first-stage model, which read no predictions."""
        if not self.stacked:
            return self.templates
        conjunctions, n_lexical = self.templates.conjunctions, self.templates.n_lexical
        reads_it = np.isin(conjunctions.columns, [n_lexical + c for c in self.stacked.values()])
        ends = zip(conjunctions.part_ptr, conjunctions.part_ptr[1:], strict=False)
        kept = [p for p, (begin, end) in enumerate(ends) if not reads_it[begin:end].any()]
        return self.templates.select(kept)


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
    first: dict[Read, int] = {}
    for template in templates:
        for placed in template.attributes:
            first.setdefault(placed.read, template.number - 1)
    real = {t: template.attributes[0] for t, template in enumerate(templates) if template.is_real}
    numbers = [
        (t, str(placed), f"d{i}")
        for t, placed in real.items()
        for i in range(width_of(placed.read, vector_width))
    ]
    reads = [read for read in first if not read.is_real]
    others = {*attributes.ANNOTATION, *attributes.TOKEN}
    words = tuple(read for read in reads if read.name not in others)
    annotations = annotations_of(reads)
    tokens = tuple(read for read in reads if read.name in attributes.TOKEN)
    columns: dict[Read, list[int]] = {}
    n_lexical = _lay_out(columns, words, 0, vector_width)
    for name, attribute in attributes.ANNOTATION.items():
        if attribute in annotations:
            columns[Read(name)] = [n_lexical + annotations.index(attribute)]
    _lay_out(columns, tokens, n_lexical + len(annotations), vector_width)
    hashed = [template for template in templates if not template.is_real]
    conjunctions, owners = _conjoin_templates(hashed, columns, boundaries)
    kinds = [hashed[i].kinds for i in owners]
    seeds = np.array([seed_of(placed) for _, placed, _ in numbers], dtype=np.uint64)
    ids = np.array([get_string_id(value) for *_, value in numbers], dtype=np.uint64)
    return TemplatePlan(
        words=words,
        annotations=annotations,
        tokens=tokens,
        token_columns=tuple(read for read in tokens for _ in range(width_of(read, vector_width))),
        first=first,
        owners=np.array(owners, dtype=np.int32),
        templates=Templates(conjunctions, n_lexical, *by_kind(kinds), start_label, seeds, ids),
        values=tuple(real.values()),
        value_owners=tuple(t for t, _, _ in numbers),
        value_names=tuple(write_name([(placed, value)]) for _, placed, value in numbers),
        vector_width=vector_width,
    )


def annotations_of(reads: Iterable[Read]) -> tuple[int, ...]:
    """Return the ids of spaCy's attributes to read: ORTH, SENT_START, and all that `reads` need."""
    known = {**attributes.ANNOTATION, **dict.fromkeys(attributes.COMPARING, LOWER)}
    ids = (known[read.name] for read in reads if read.name in known)
    return tuple(dict.fromkeys([ORTH, SENT_START, *ids]))


def _lay_out(
    columns: dict[Read, list[int]], reads: Sequence[Read], start: int, vector_width: int
) -> int:
    """Assign columns to attributes, from `start`. RETURNS: the next free column.

    All columns of an attribute but the first are marked by ~, see `HashPlan`.
    """
    for read in reads:
        width = width_of(read, vector_width)
        columns[read] = [~c if c > start else c for c in range(start, start + width)]
        start += width
    return start


def width_of(read: Read, vector_width: int = 0) -> int:
    """Return the maximum number of values of an attribute at a token."""
    if read.name == attributes.NGRAMS:
        return attributes.Ngrams(read.length, read.longest, read.argument).width
    return vector_width if read.name == attributes.VECTOR else 1


def _conjoin_templates(
    templates: Sequence[Template], columns: dict[Read, list[int]], boundaries: int | None
) -> tuple[Conjunctions, list[int]]:
    """Make the conjunctions of templates. RETURNS: conjunctions, and the template of each."""
    owners: list[int] = []
    chosen: list[tuple[int, ...]] = []
    n_read = 0
    for i, template in enumerate(templates):
        of_parts = [columns[each.read] for each in template.attributes]
        n = prod(map(len, of_parts))
        n_read += n * len(of_parts)
        if n_read > MOST_READ:
            values = {"number": template.number, "template": str(template), "n": n_read}
            raise SparseCRFError(Errors.SC139.format(**values, most=MOST_READ))
        chosen += product(*of_parts)
        owners += [i] * n
    placed = [templates[i].attributes for i in owners]
    furthest = max((abs(each.offset) for own in placed for each in own), default=0)
    n_edges = max(1, furthest if boundaries is None else min(furthest, boundaries + 1))
    seeds = [seed_of(template.key) for template in templates]
    return conjoin([seeds[i] for i in owners], placed, chosen, n_edges), owners


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
    unigram, bigram = ([i for i, own in enumerate(kinds) if kind in own] for kind in "ub")
    return np.array(unigram, dtype=np.int32), np.array(bigram, dtype=np.int32)


def places_of(placed: Sequence[Any]) -> tuple[Longs, Longs]:
    """Return the offsets [K] of attributes, and the origins [K] of the offsets.

    placed: with `offset` in tokens, and `absolute`: 1 is the first token of the sequence, -1 the
    last.
    """
    offsets = np.array([each.offset for each in placed], dtype=np.int64)
    absolute = np.array([each.absolute for each in placed], dtype=np.bool_)
    anchors = np.where(absolute, np.where(offsets >= 0, FROM_FIRST, FROM_END), FROM_TOKEN)
    return offsets - (anchors == FROM_FIRST), anchors
