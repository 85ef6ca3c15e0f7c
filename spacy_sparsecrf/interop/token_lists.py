"""JSON with lists of tokens and of their labels, as the package `datasets` writes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import Errors, SparseCRFError
from .annotation_tools import JsonReader
from .column_attributes import ENTITIES, WORDS
from .columns import Row, Sentence, Source
from .schemes import is_label

_WORDS = ("tokens", "words", "token", "text", "sentence", "form")


def _lists(value: Any) -> dict[str, Any]:
    """Return the lists of a record that are as long as that of its words, which is first.

    RETURNS: {} if there is no other.
    """
    if not isinstance(value, Mapping):
        return {}
    words = next((name for name in _WORDS if _are(value.get(name), str)), "")
    if not words:
        return {}
    lists = {words: value[words]}
    for name, values in value.items():
        is_label_list = _are(values, (str, int)) and len(values) == len(value[words])
        if is_label_list and name != words:
            lists[name] = values
    return lists if len(lists) > 1 else {}


def _are(values: Any, kind: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(x, kind) for x in values)


def has_lists(path: Path) -> bool:
    """Return whether the first record of a JSON file has lists of tokens and labels."""
    values = JsonReader(Source(path), "", merges=False).values()
    return bool(_lists(next((value for _, value in values), None)))


def read_lists(path: Path, columns: Sequence[str]) -> Source[Sentence]:
    """Read lists of tokens and labels.

    columns: attributes of the lists, in the order of the first record; by default, entities are in
    the only list of labels such as B-PER and O, or in that whose name has "ner".
    RAISES: SparseCRFError for lists that do not fit, when they are read.
    """
    source: Source[Any] = Source(path)
    values = [*JsonReader(source, "", merges=False).values()]
    if source.invalid:
        raise SparseCRFError(Errors.SC624.format(path=path, reason=": ".join(source.invalid[0])))
    lists = _lists(values[0][1])
    names = list(lists)
    if not columns:
        labels = [name for name in names[1:] if all(is_label(str(x)) for x in lists[name])]
        labels = [name for name in labels if "ner" in name.lower()] or labels
        if len(labels) != 1:
            shown = "; ".join(f"{name}: {lists[name][:3]}" for name in names)
            numbers = " (names of numbers are in the recipe of docs/commands.md)"
            what = f"no one list has labels such as B-PER and O{numbers}, but {shown}"
            reason = f"{what}. Name the lists in order, as in --columns orth,tag"
            raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))
        names = [names[0], *labels]
        columns = WORDS, ENTITIES
    if len(columns) != len(names):
        reason = f"--columns names {len(columns)} lists, but there are: {', '.join(names)}"
        raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))

    def sentences(_: object) -> Iterator[Sentence]:
        for number, (place, value) in enumerate(values, start=1):
            rows = [value.get(name) for name in names] if isinstance(value, Mapping) else [None]
            if not all(isinstance(x, list) and len(x) == len(rows[0]) for x in rows):
                reason = f"{place}: {', '.join(names)} are not lists of one length"
                raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))
            if rows[0]:
                yield [Row(number, [*map(str, row)]) for row in zip(*rows, strict=True)]

    return Source(path, sentences, tuple(columns))
