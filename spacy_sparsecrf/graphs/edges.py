"""Edges between tokens of a Doc, for model = "graph".

    edges = ["chain", "same(lower, if=is_title)", "link(_.head)", "rows"]

    chain                    neighbours, with the b: templates of a chain
    same(ATTR)               tokens with the same value of an attribute; `if=ATTR`: only where
                             another one is true; `most=N`: with at most N that come before, the
                             nearest (default 1); `far=N`: at most so many tokens before
    link(_.NAME)             token._.NAME is the position in the Doc of the other token, several, or
                             None
    rows, columns            tokens with `_.row` and `_.column`: next to each other in a row, or in
                             a column

Both tokens are of one sequence: with sequences = "docs" of one Doc.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from spacy.tokens import Doc, Token

from ..corpus.encoded import Observations
from ..errors import Errors, SparseCRFError
from ..features.attributes import ANNOTATION, WORD
from ..features.naming import hash_names
from ..model.names import write_name
from .encoded import Links

CHAIN = "chain"
Features = Callable[[Sequence[Doc], str], Observations]
_FORM = re.compile(r"(chain|rows|columns)|(same|link)\(([^()]*)\)")
_ATTRIBUTE = re.compile(r"_\.\w+|\w+")
_NUMBERS = ("most", "far")

Pair = tuple[int, int]


@dataclass(frozen=True)
class Edge:
    """A kind of edge; text: as in the config; the rest as above, "" and 0 where not given."""

    text: str
    form: str
    attribute: str = ""
    condition: str = ""
    most: int = 1
    far: int = 0

    def pairs(self, doc: Doc) -> Iterator[Pair]:
        """The edges of a Doc, as pairs of positions."""
        if self.form == "same":
            yield from self._same(doc)
        elif self.form == "link":
            yield from self._linked(doc)
        else:
            yield from self._placed(doc)

    def _same(self, doc: Doc) -> Iterator[Pair]:
        seen: defaultdict[Any, list[int]] = defaultdict(list)
        value_of, fits = _reader(self.attribute), _reader(self.condition)
        for token in doc:
            value = value_of(token)
            if not value or (self.condition and not fits(token)):
                continue
            for other in seen[value][-self.most :]:
                if not self.far or token.i - other <= self.far:
                    yield other, token.i
            seen[value].append(token.i)

    def _linked(self, doc: Doc) -> Iterator[Pair]:
        for token in doc:
            found = token._.get(self.attribute[2:])
            for other in found if isinstance(found, (list, tuple)) else [found]:
                if other is None:
                    continue
                if not isinstance(other, int) or not 0 <= other < len(doc) or other == token.i:
                    values = {"edge": self.text, "value": other, "token": token.text}
                    raise SparseCRFError(Errors.SC235.format(**values, text=doc.text[:60]))
                yield min(other, token.i), max(other, token.i)

    def _placed(self, doc: Doc) -> Iterator[Pair]:
        by_row = self.form == "rows"
        places = [(t._.row, t._.column, t.i) for t in doc if None not in (t._.row, t._.column)]
        places.sort(key=lambda place: place if by_row else (place[1], place[0], place[2]))
        line = 0 if by_row else 1
        for before, after in pairwise(places):
            if before[line] == after[line]:
                yield min(before[2], after[2]), max(before[2], after[2])


def parse(name: str, texts: Sequence[str]) -> tuple[Edge, ...]:
    """Read the setting `edges` of component `name`. RAISES: SparseCRFError."""
    return tuple(_parse(name, text) for text in texts)


def _parse(name: str, text: str) -> Edge:
    found = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise SparseCRFError(Errors.SC233.format(name=name, edge=text))
    form, arguments = found[1] or found[2], [part.strip() for part in (found[3] or "").split(",")]
    settings: dict[str, Any] = {"attribute": arguments[0]}
    for argument in arguments[1:] if form == "same" else ():
        key, _, value = argument.partition("=")
        if key in _NUMBERS and value.isdecimal() and int(value) > 0:
            settings[key] = int(value)
        else:
            settings["condition"] = value if key == "if" else "?"
    attributes = [settings["attribute"], settings.get("condition", "")]
    known = all(map(_is_known, filter(None, attributes)))
    fits = bool(attributes[0]) == (found[2] is not None)
    if not (known and fits) or (form == "link" and not attributes[0].startswith("_.")):
        raise SparseCRFError(Errors.SC233.format(name=name, edge=text))
    return Edge(text, form, **settings)


def _is_known(attribute: str) -> bool:
    is_own = attribute in WORD or (attribute in ANNOTATION and attribute != "glued")
    return is_own or (attribute.startswith("_.") and bool(_ATTRIBUTE.fullmatch(attribute)))


def _reader(attribute: str) -> Callable[[Token], Any]:
    """What reads an attribute of a token."""
    if attribute.startswith("_."):
        return lambda token: token._.get(attribute[2:])
    if attribute in WORD:
        return lambda token: WORD[attribute](token.text)
    return lambda token: str(getattr(token, f"{attribute}_"))


def names_of(edges: Sequence[Edge]) -> list[str]:
    """The names of the tests that edges other than neighbours have."""
    return [write_name([("edge", edge.text)]) for edge in edges if edge.form != CHAIN]


def read_links(edges: Sequence[Edge], docs: Sequence[Doc], offsets: np.ndarray) -> Links:
    """The links of Docs, one after the other, whose sequences begin at offsets [S + 1].

    RAISES: SparseCRFError for an extension that is not registered, or has a value that it cannot.
    """
    own = [edge for edge in edges if edge.form != CHAIN]
    pairs, kinds, first = [], [], 0
    for doc in docs:
        for kind, edge in enumerate(own):
            _check_extensions(edge)
            found = [(first + a, first + b) for a, b in edge.pairs(doc)]
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


class LinkRecord:
    """Remembers links of Docs whose features are read. Called like the features, it reads them."""

    def __init__(self, read: Features, edges: Sequence[Edge]) -> None:
        self._read, self._edges = read, edges
        self._found: list[Links] = []
        self._n_tokens = 0

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the tests of Docs."""
        observations = self._read(docs, sequences)
        links = read_links(self._edges, docs, observations.offsets)
        ends = links.ends + self._n_tokens
        self._found.append(Links(ends, links.kinds, links.keys, links.chain))
        self._n_tokens += observations.n_tokens
        return observations

    @property
    def names(self) -> dict[int, str]:
        """The names of the tests of links, by hash."""
        names = names_of(self._edges)
        return dict(zip(hash_names(names).tolist(), names, strict=True))

    @property
    def links(self) -> Links:
        """The links of all Docs so far."""
        last = self._found[-1]
        ends, kinds = (
            np.concatenate([getattr(links, name) for links in self._found])
            for name in ("ends", "kinds")
        )
        return Links(ends, kinds, last.keys, last.chain)
