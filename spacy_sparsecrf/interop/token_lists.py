"""JSON with lists of tokens and of their labels, as the package `datasets` writes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import DOCUMENTATION, Errors, SparseCRFError
from .annotation_tools import JsonReader
from .column_attributes import ENTITIES, WORDS
from .columns import Row, Sentence, Source, lines_of
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
    """Return whether the first record of a JSON file, and no more is read, has such lists."""
    lines, text, n = lines_of(path), "", 1
    while block := [line for _, line in islice(lines, n)]:
        text = "\n".join([text, *block]).lstrip()
        n *= 2
        with suppress(ValueError, RecursionError):
            record, _ = json.JSONDecoder().raw_decode(text.removeprefix("[").lstrip())
            return bool(_names(record))
    return False


def read_lists(path: Path, columns: Sequence[str]) -> Source[Sentence]:
    """Read lists of tokens and labels.

    columns: attributes of the lists, in the order of the first record; by default, entities are in
    the only list of labels such as B-PER and O, or in that whose name has "ner".
    RAISES: SparseCRFError, also when they are read, for lists that do not fit.
    """
    source: Source[Any] = Source(path)
    values = [*JsonReader(source, "", merges=False).values()]
    names = _names(values[0][1])
    if not columns:
        lists = values[0][1]
        labels = [name for name in names[1:] if all(is_label(str(x)) for x in lists[name])]
        labels = [name for name in labels if "ner" in name.lower()] or labels
        columns, names = [WORDS, *[ENTITIES] * len(labels)], [names[0], *labels]

    def sentences(_: object) -> Iterator[Sentence]:
        for number, (place, value) in enumerate(values, start=1):
            lists = [value.get(name, ()) if isinstance(value, Mapping) else () for name in names]
            if len({*map(len, lists)}) > 1:
                source.invalid.append((place, f"{', '.join(names)} are not lists of one length"))
            elif lists[0]:
                yield [Row(number, [*map(str, row)]) for row in zip(*lists, strict=True)]
        if source.invalid:
            reason = ": ".join(source.invalid[0])
            raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))

    if len(columns) != len(names) or len(names) < 2 or columns.count(ENTITIES) > 1:
        shown = "; ".join(f"{name}: {values[0][1][name][:3]}" for name in _names(values[0][1]))
        reason = f"give --columns, such as orth,ner, for the lists {shown} (numbers: see {_RECIPE})"
        raise SparseCRFError(Errors.SC624.format(path=path, reason=reason))
    note = f"Lists are read as {', '.join(map('{} of {}'.format, columns, names))} (see --columns)"
    return Source(path, sentences, tuple(columns), notes={"lists": note})
