"""Counts of the types of gold spans, and signs that annotators did not look for one everywhere."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from .targets.spans import ANNOTATED

DOCUMENT, SOURCE = "document", "source"
"""Keys in `doc.user_data` of the document that a Doc is part of, and of the file it is from."""

_CHANCE = 1e-3  # probability that Docs in random order have a type only in a part, if it is shown
_LEAST_OTHERS = 0.1  # share of the other Docs
_SHOWN = 5  # in a message


@dataclass
class TypeCounts:
    """Counts the types of spans, or tags, of Docs in their order.

    ignored: characters in which variants of a name may differ; n: spans by type; n_units: number
    of documents, or of Docs that are part of none, in which annotators looked for all types;
    with_type: those with a type; bounds: the first of them, from 0, and the end of the last;
    sources: Docs by file; in_source: Docs with a type by file; annotated: types of the Docs in
    which annotators looked for some only.
    """

    ignored: str = " -_"
    n: Counter[str] = field(default_factory=Counter)
    n_units: int = 0
    with_type: Counter[str] = field(default_factory=Counter)
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    sources: Counter[str] = field(default_factory=Counter)
    in_source: dict[str, Counter[str]] = field(default_factory=dict)
    annotated: set[str] = field(default_factory=set)
    _document: object = None

    def add(self, names: Mapping[str, int], user_data: Mapping[Any, Any]) -> None:
        """Count a Doc. names: number of its spans by type; user_data: of the Doc."""
        self.n.update(names)
        if ANNOTATED in user_data:
            self.annotated.update(user_data[ANNOTATED])
            return
        document, source = user_data.get(DOCUMENT), user_data.get(SOURCE, "")
        is_new = document is None or document != self._document
        self.n_units += is_new
        self._document = document
        self.sources[source] += 1
        for name in filter(names.get, names):
            first, end = self.bounds.get(name, (self.n_units - 1, 0))
            self.with_type[name] += end < self.n_units
            self.bounds[name] = first, self.n_units
            self.in_source.setdefault(name, Counter())[source] += 1

    def join(self, other: "TypeCounts") -> None:
        """Add the counts of further Docs."""
        self.n.update(other.n)
        for name, (first, end) in other.bounds.items():
            begin, _ = self.bounds.get(name, (first + self.n_units, 0))
            self.bounds[name] = begin, end + self.n_units
            self.in_source.setdefault(name, Counter()).update(other.in_source[name])
        self.with_type.update(other.with_type)
        self.n_units += other.n_units
        self.sources.update(other.sources)
        self.annotated |= other.annotated

    def messages(self) -> list[str]:
        """Return messages about variants of a type, and types that only a part of the Docs has."""
        return [text for text in (self._variants(), self._confined()) if text]

    def incomplete(self) -> list[str]:
        """Return the types that annotators looked for in no Doc."""
        return [] if self.n_units else sorted({*self.n} - self.annotated)

    def _variants(self) -> str:
        """Describe names that differ only in case and in ignored characters."""
        of_key = defaultdict(list)
        removed = str.maketrans("", "", self.ignored)
        for name, n in self.n.most_common():
            of_key[name.casefold().translate(removed)].append((name, n))
        groups = [group for key, group in of_key.items() if key and len(group) > 1]
        if not groups:
            return ""
        shown = [", ".join(f"{name} ({n})" for name, n in group) for group in groups]
        pairs = [f"{name}={group[0][0]}" for group in groups for name, _ in group[1:]]
        options = " ".join(f"--map {quote(pair)}" for pair in pairs[:_SHOWN])
        signs = f"case, {'blanks, - or _' if '-' in self.ignored else 'or blanks'}"
        what = f"Labels that differ only in {signs} are learnt as different ones"
        return f"{what}: {_listed(shown)}. Join them: `convert ... {options}`"

    def _confined(self) -> str:
        """Describe the types that only one file, or only a run of the Docs, has."""
        places = {name: text for name in self.n if (text := self._place(name))}
        if not places:
            return ""
        others = ",".join([name for name in self.n if name not in places][:_SHOWN]) or "TYPES"
        return (
            f"Only a part of the texts has some types: {_listed([*places.values()])}. If "
            "annotators did not look for these elsewhere, convert the other texts with the types "
            f"that they looked for, as in --annotated {quote(others)}: otherwise training learns "
            "that nothing there is one"
        )

    def _place(self, name: str) -> str:
        """Describe the only part of the Docs that has a type; "" if chance may explain it."""
        in_source, n_docs = self.in_source.get(name, Counter()), self.sources.total()
        for source, n in in_source.items() if len(in_source) == 1 else ():
            of, others = self.sources[source], n_docs - self.sources[source]
            if others and (of / n_docs) ** n < _CHANCE:
                return f"{name} is in {n} of {of} Docs of {source}, in none of {others} others"
        n, (first, end) = self.with_type[name], self.bounds.get(name, (0, 0))
        length, n_others = end - first, self.n_units - end + first
        if n_others < max(1, _LEAST_OTHERS * self.n_units):
            return ""
        if n * (length / self.n_units) ** (n - 1) >= _CHANCE:
            return ""
        run = f"texts {first + 1} to {end}"
        return f"{name} is in {n} of the {length} {run}, in none of the other {n_others}"


def _listed(texts: list[str]) -> str:
    more = f"; ... ({len(texts)} in all)" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more
