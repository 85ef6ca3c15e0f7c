"""JSON with lists of tokens and of their labels, as the package `datasets` writes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import DOCUMENTATION, Errors, SparseCRFError
from .annotation_tools import JsonReader
from .column_attributes import ENTITIES, WORDS
from .columns import Row, Sentence, Source
from .schemes import is_label

_RECIPE = f"{DOCUMENTATION}/commands/"
_WORDS = ("tokens", "words", "token", "text", "sentence", "form")


def _names(value: Any) -> list[str]:
    """Return the names of lists of strings or numbers of one length; first that of the words.

    RETURNS: [] if a record has none of words and labels.
    """
    lists = {
        name: listed
        for name, listed in (value.items() if isinstance(value, Mapping) else ())
        if isinstance(listed, list) and listed and all(isinstance(x, (str, int)) for x in listed)
    }
    words = next((x for x in _WORDS if x in lists and isinstance(lists[x][0], str)), "")
    labels = [x for x in lists if x != words and len(lists[x]) == len(lists.get(words, ()))]
    return [words, *labels] if labels else []


def has_lists(path: Path) -> bool:
    """Return whether the first record of a JSON file has such lists."""
    return any(_names(value) for _, value in islice(JsonReader(Source(path)).values(), 1))


def read_lists(path: Path, columns: Sequence[str]) -> Source[Sentence]:
    """Read lists of tokens and labels.

    columns: attributes of the lists, in the order of the first record; by default, entities are in
    the only list of labels such as B-PER and O, or in that whose name has "ner".
    RAISES: SparseCRFError, also when they are read, for lists that do not fit.
    """
    source: Source[Any] = Source(path)
    values = [*JsonReader(source).values()]
    if source.invalid:
        raise SparseCRFError(Errors.SC624.format(path=path, reason=": ".join(source.invalid[0])))
    lists = values[0][1]
    names = _names(lists)
    if not columns:
        labels = [name for name in names[1:] if all(map(is_label, map(str, lists[name])))]
        labels = [name for name in labels if "ner" in name.lower()] or labels
        columns, names = [WORDS, *[ENTITIES] * len(labels)], [*names[:1], *labels]
    if len(columns) != len(names) or len(names) < 2 or columns.count(ENTITIES) > 1:
        shown = "; ".join(f"{name}: {lists[name][:3]}" for name in _names(lists))
        reason = f"give --columns, such as orth,ner, for the lists {shown} (numbers: see {_RECIPE})"
        raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))

    def sentences(_: object) -> Iterator[Sentence]:
        for number, (place, value) in enumerate(values, start=1):
            try:
                rows = [*zip(*(value[name] for name in names), strict=True)]
            except (KeyError, TypeError, ValueError) as error:
                reason = f"{place}: {', '.join(names)} are not lists of one length"
                raise SparseCRFError(Errors.SC624.format(path=path, reason=reason)) from error
            if rows:
                yield [Row(number, [*map(str, row)]) for row in rows]

    note = f"Lists are read as {', '.join(map('{} of {}'.format, columns, names))} (see --columns)"
    return Source(path, sentences, tuple(columns), notes={"lists": note})
