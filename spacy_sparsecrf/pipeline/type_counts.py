"""Counts of the types of gold spans, and signs that annotators did not look for one everywhere."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from shlex import quote
from typing import Any

from .targets.spans import ANNOTATED

DOCUMENT, SOURCE = "document", "source"
"""Keys in `doc.user_data` of the document that a Doc is part of, and of the file it is from."""

_CHANCE = 1e-3  # probability that Docs in random order have a type only in a part, if it is shown
_LEAST_OTHERS = 0.1  # share of the texts outside of a run
_SHOWN = 5  # in a message


@dataclass
class TypeCounts:
    """Counts the types of spans, or tags, of Docs in their order.

    ignored: characters in which variants of a name may differ; n: spans by type; docs: file,
    document and types of each Doc in which annotators looked for all types; annotated: types that
    they looked for in other Docs.
    """

    ignored: str = " -_"
    n: Counter[str] = field(default_factory=Counter)
    docs: list[tuple[str, object, tuple[str, ...]]] = field(default_factory=list)
    annotated: set[str] = field(default_factory=set)

    def add(self, names: Mapping[str, int], user_data: Mapping[Any, Any]) -> None:
        """Count a Doc. names: number of its spans by type; user_data: of the Doc."""
        self.n.update(names)
        if ANNOTATED in user_data:
            self.annotated.update(user_data[ANNOTATED])
        else:
            source, document = user_data.get(SOURCE, ""), user_data.get(DOCUMENT)
            self.docs.append((source, document, (*names,)))

    def join(self, other: "TypeCounts") -> None:
        """Add the counts of further Docs."""
        self.n.update(other.n)
        self.docs += other.docs
        self.annotated |= other.annotated

    def messages(self) -> list[str]:
        """Return messages about variants of a type, and types that only a part of the Docs has."""
        return [text for text in (self._variants(), self._confined()) if text]

    def incomplete(self) -> list[str]:
        """Return the types that annotators looked for in no Doc."""
        return [] if self.docs else sorted({*self.n} - self.annotated)

    def _variants(self) -> str:
        """Describe names that differ only in case and in ignored characters."""
        of_key = defaultdict(list)
        removed = str.maketrans("", "", self.ignored)
        for name in sorted(self.n, key=self.n.__getitem__, reverse=True):
            of_key[name.casefold().translate(removed)].append(name)
        groups = [names for key, names in of_key.items() if key and len(names) > 1]
        if not groups:
            return ""
        shown = [", ".join(f"{name} ({self.n[name]})" for name in names) for names in groups]
        pairs = [f"--map {quote(f'{name}={names[0]}')}" for names in groups for name in names[1:]]
        what = "Labels that differ only in case, blanks, - or _ are learnt as different ones"
        return f"{what}: {_listed(shown)}. Join them: `convert ... {' '.join(pairs[:_SHOWN])}`"

    def _confined(self) -> str:
        """Describe the types that only one file, or only a run of the Docs, has."""
        is_new = (
            document is None or document != previous
            for (_, document, _), (_, previous, _) in zip(
                self.docs, [("", None, ()), *self.docs], strict=False
            )
        )
        texts = [*accumulate(is_new)]
        sources = Counter(source for source, *_ in self.docs)
        docs_with = defaultdict(list)
        for i, (_, _, names) in enumerate(self.docs):
            for name in names:
                docs_with[name].append(i)
        places = {name: self._place(at, texts, sources) for name, at in docs_with.items()}
        shown = {name: place for name, place in places.items() if place}
        if not shown:
            return ""
        others = ",".join([name for name in self.n if name not in shown][:_SHOWN]) or "TYPES"
        return (
            "Only a part of the texts has some types: "
            f"{_listed([f'{name} is in {text}' for name, text in shown.items()])}. If annotators "
            "did not look for these elsewhere, convert the other texts with the types that they "
            f"looked for, as in --annotated {quote(others)}: otherwise training learns that "
            "nothing there is one"
        )

    def _place(self, at: Sequence[int], texts: Sequence[int], sources: Mapping[str, int]) -> str:
        """Describe the part that has a type; "" if it may be there by chance.

        at: the Docs with the type; texts: number, from 1, of the document of each Doc; sources:
        number of Docs by file.
        """
        source, n, n_docs = self.docs[at[0]][0], len(at), len(self.docs)
        # Docs that no command has converted have no source.
        is_one = bool(source) and all(self.docs[i][0] == source for i in at) and len(sources) > 1
        if is_one and (sources[source] / n_docs) ** n < _CHANCE:
            others = n_docs - sources[source]
            return f"{n} of {sources[source]} Docs of {source}, in none of {others} others"
        begin, end, total = texts[at[0]], texts[at[-1]], texts[-1]
        n, length = len({texts[i] for i in at}), end - begin + 1
        if total - length < max(1, _LEAST_OTHERS * total):
            return ""
        if n * (length / total) ** (n - 1) >= _CHANCE:
            return ""
        run = f"{n} of the {length} texts {begin} to {end}"
        return f"{run}, in none of the other {total - length}"


def _listed(texts: list[str]) -> str:
    more = f"; ... ({len(texts)} in all)" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more
