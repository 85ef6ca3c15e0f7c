"""Edges between tokens of a Doc; see `pipeline.graph_settings`."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from spacy.tokens import Doc, Token

from ..errors import Errors, SparseCRFError
from ..features.attributes import WORD
from ..features.naming import hash_names
from ..model.names import write_name
from ..pipeline.graph_settings import CHAIN, Edge
from .encoded import Links

Pair = tuple[int, int]


def pairs_of(edge: Edge, doc: Doc) -> Iterator[Pair]:
    """Yield the edges of one type in a Doc, as pairs of positions."""
    find = {"same": _same, "link": _linked}.get(edge.form, _placed)
    yield from find(edge, doc)


def _same(edge: Edge, doc: Doc) -> Iterator[Pair]:
    seen: defaultdict[Any, list[int]] = defaultdict(list)
    value_of, fits = _reader(edge.attribute), _reader(edge.condition)
    for token in doc:
        value = value_of(token)
        if not value or (edge.condition and not fits(token)):
            continue
        for other in seen[value][-edge.most :]:
            if not edge.far or token.i - other <= edge.far:
                yield other, token.i
        seen[value].append(token.i)


def _linked(edge: Edge, doc: Doc) -> Iterator[Pair]:
    for token in doc:
        found = token._.get(edge.attribute[2:])
        for other in found if isinstance(found, (list, tuple)) else [found]:
            if other is None:
                continue
            if not isinstance(other, int) or not 0 <= other < len(doc) or other == token.i:
                values = {"edge": edge.text, "value": other, "token": token.text}
                raise SparseCRFError(Errors.SC235.format(**values, text=doc.text[:60]))
            yield min(other, token.i), max(other, token.i)


def _placed(edge: Edge, doc: Doc) -> Iterator[Pair]:
    by_row = edge.form == "rows"
    places = [(t._.row, t._.column, t.i) for t in doc if None not in (t._.row, t._.column)]
    places.sort(key=lambda place: place if by_row else (place[1], place[0], place[2]))
    line = 0 if by_row else 1
    for before, after in pairwise(places):
        if before[line] == after[line]:
            yield min(before[2], after[2]), max(before[2], after[2])


def _reader(attribute: str) -> Callable[[Token], Any]:
    """Return a function that reads an attribute of a token."""
    if attribute.startswith("_."):
        return lambda token: token._.get(attribute[2:])
    if attribute in WORD:
        return lambda token: WORD[attribute](token.text)
    if attribute == "morph":
        return lambda token: str(token.morph)
    return lambda token: str(getattr(token, f"{attribute}_"))


def names_of(edges: Sequence[Edge]) -> list[str]:
    """Return the feature names of all edge types except "chain"."""
    return [write_name([("edge", edge.text)]) for edge in edges if edge.form != CHAIN]


def read_links(edges: Sequence[Edge], docs: Sequence[Doc], offsets: np.ndarray) -> Links:
    """Read the links within sequences of Docs; offsets: [S + 1], sequences of all Docs' tokens.

    RAISES: SparseCRFError for an extension that is not registered, or has an invalid value.
    """
    own = [edge for edge in edges if edge.form != CHAIN]
    pairs, kinds, first = [], [], 0
    for doc in docs:
        for kind, edge in enumerate(own):
            _check_extensions(edge)
            found = [(first + a, first + b) for a, b in pairs_of(edge, doc)]
            pairs += found
            kinds += [kind] * len(found)
        first += len(doc)
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    sequence = np.searchsorted(offsets, ends, side="right")
    inside = sequence[:, 0] == sequence[:, 1]
    keys = hash_names(names_of(own))
    has_chain = len(own) < len(edges)
    return Links(ends[inside], np.array(kinds, dtype=np.int64)[inside], keys, has_chain)


def _check_extensions(edge: Edge) -> None:
    names = [each[2:] for each in (edge.attribute, edge.condition) if each.startswith("_.")]
    names += ["row", "column"] if edge.form in ("rows", "columns") else []
    for name in names:
        if not Token.has_extension(name):
            raise SparseCRFError(Errors.SC234.format(edge=edge.text, name=name))
