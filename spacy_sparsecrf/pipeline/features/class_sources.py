"""Sources of word classes: files and lookup tables."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spacy.util import load_language_data, registry

from ...errors import Errors, SparseCRFError
from ...schema import reported_as
from .attributes.clusters import OF_WORDS
from .classes import WordClasses
from .phrase_sources import lines_of

_KEYS = {"path": {"path", "format", "prune"}, "lookups": {"lookups", "lang", "prune"}}
_FORMATS = ("brown", "word2vec")
_PATH = re.compile("[01]+")
_NUMBER = re.compile("[0-9]{1,18}")
_MOST_RARE = 1000  # maximum absolute value of logarithms


def check_sources(sources: object) -> None:
    """Check the settings of sources, a mapping by name.

    RAISES: SparseCRFError for invalid settings.
    """
    if not isinstance(sources, Mapping) or OF_WORDS in sources:
        raise SparseCRFError(Errors.SC140.format(value=sources))
    for source in sources.values():
        kinds = _KEYS.keys() & source.keys() if isinstance(source, Mapping) else set()
        fits = len(kinds) == 1 and source.keys() <= _KEYS[min(kinds)]
        if fits:
            texts = [value for key, value in source.items() if key != "prune"]
            fits = all(isinstance(value, str | Path) for value in texts)
            fits = fits and isinstance(source.get("prune", False), bool)
            fits = fits and source.get("format", "brown") in _FORMATS
        if not fits:
            raise SparseCRFError(Errors.SC140.format(value=source))


def read_classes(name: str, source: Mapping[str, Any], lang: str) -> WordClasses:
    """Read the word classes of a source.

    name: for messages; lang: of the pipeline.
    RAISES: SparseCRFError if the source cannot be read or has no word classes.
    """
    if "lookups" in source:
        words, are_paths = _of_lookups(
            name, table=str(source["lookups"]), lang=str(source.get("lang", lang))
        )
    else:
        are_paths = source.get("format", "brown") == "brown"
        words = dict(_of_file(name, source["path"], are_paths))
    if not words:
        raise SparseCRFError(Errors.SC136.format(setting="clusters", name=name))
    return WordClasses.of(words, are_paths)


def _of_file(name: str, path: str | Path, are_paths: bool) -> Iterator[tuple[str, str]]:
    """Yield the words of a file, and their classes."""
    for line, where in lines_of(path, "clusters", name):
        if line:
            with reported_as(Errors.SC135, **where):
                entry = _entry(line, are_paths)
            yield entry


def _entry(line: str, are_paths: bool) -> tuple[str, str]:
    """Return the word and the class in a line. RAISES: ValueError for a malformed line."""
    if are_paths:
        fields = line.split("\t")
        if len(fields) not in (2, 3) or not _PATH.fullmatch(fields[0]) or not fields[1]:
            raise ValueError("expected bits, a tab, a word, a tab and a count")
        return fields[1], fields[0]
    fields = line.rsplit(None, 1)
    if len(fields) != 2 or not _NUMBER.fullmatch(fields[1]):
        raise ValueError("expected a word, a blank and a whole number")
    return fields[0], str(int(fields[1]))


def _of_lookups(name: str, table: str, lang: str) -> tuple[dict[str, str], bool]:
    """Return the words of a lookup table with their classes, and whether the classes are paths.

    Whole numbers are paths, whose first bit is the lowest bit of the number; 0 is no class. Numbers
    do not store the length of a path, so all paths are as long as the longest. The class of a log
    probability is its absolute value, rounded to a whole number.
    """
    paths = registry.lookups.get(lang) if lang in registry.lookups else {}
    if table not in paths:
        raise SparseCRFError(Errors.SC145.format(name=name, table=table, lang=lang))
    # Read the data itself: spaCy's lookup tables contain hashes instead of words.
    stored: Any = load_language_data(paths[table])
    numbers: list[Any] = [*stored.values()] if isinstance(stored, dict) else [""]
    if all(type(n) is int and 0 <= n < 2**63 for n in numbers):
        width = max(numbers, default=0).bit_length()
        written = {n: format(n, f"0{width}b")[::-1] for n in {*numbers}}
        return {word: written[n] for word, n in stored.items() if n}, True
    if all(type(n) in (int, float) and -_MOST_RARE < n <= 0 for n in numbers):
        return {word: str(round(-n)) for word, n in stored.items()}, False
    raise SparseCRFError(Errors.SC146.format(name=name, table=table))
