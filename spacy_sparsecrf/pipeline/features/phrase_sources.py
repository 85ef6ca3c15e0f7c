"""Sources of phrases: lists and files."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ...errors import Errors, SparseCRFError
from .attributes.attribute import PhraseList
from .attributes.phrases import ATTRS

Tokenize: TypeAlias = Callable[[str], Iterable[str]]
Entries: TypeAlias = Iterator[tuple[str, str]]  # phrases and their types

_BOM = b"\xef\xbb\xbf"


def check_phrases(phrases: object, attr: str) -> None:
    """Check the settings.

    RAISES: SparseCRFError unless `phrases` maps names to paths or lists of strings, and `attr` is
        one of ATTRS.
    """
    if not isinstance(phrases, Mapping) or not (
        all(isinstance(name, str) for name in phrases) and all(map(_is_source, phrases.values()))
    ):
        raise SparseCRFError(Errors.SC132.format(value=phrases))
    if attr not in ATTRS:
        raise SparseCRFError(Errors.SC133.format(value=attr, known=", ".join(ATTRS)))


def _is_source(source: object) -> bool:
    """Return whether an object is a valid source of phrases."""
    if isinstance(source, list | tuple):
        return all(isinstance(phrase, str) for phrase in source)
    return isinstance(source, str | Path)


def undoubled(phrases: Mapping[str, Any]) -> dict[str, Any]:
    """Return phrases without the dollar signs that saving a config has doubled, see `parsing`."""
    return {
        _undouble(name): [*map(_undouble, source)] if isinstance(source, list | tuple) else source
        for name, source in phrases.items()
    }


def _undouble(text: str) -> str:
    return re.sub(r"\$+", "$", text)


def read_phrases(name: str, source: Any, tokenize: Tokenize) -> PhraseList:
    """Read and tokenise the distinct phrases of a source; a repeated phrase has its first type.

    name: for messages; source: a list, or the path of a file.
    RAISES: SparseCRFError for a file that cannot be read, or a source without phrases.
    """
    types: dict[tuple[str, ...], str] = {}
    for text, type_ in _entries(name, source):
        # Tokens must not contain tabs and line breaks, which separate saved tokens and phrases.
        types.setdefault(tuple(tokenize(" ".join(text.split()))), type_)
    types.pop((), None)
    if not types:
        raise SparseCRFError(Errors.SC136.format(setting="phrases", name=name))
    phrases: PhraseList = {}
    for tokens, type_ in types.items():
        phrases.setdefault(type_, []).append([*tokens])
    return phrases


def _entries(name: str, source: Any) -> Entries:
    """Yield the phrases of a source, and their types; in a file, a type follows a tab."""
    if isinstance(source, list | tuple):
        yield from ((text, "") for text in source)
        return
    for line, where in lines_of(source, "phrases", name):
        text, _, type_ = line.strip(" ").partition("\t")
        if "\t" in type_.rstrip() or (type_.strip() and not text.strip()):
            reason = "it has more than one tab, or no phrase before its type"
            raise SparseCRFError(Errors.SC135.format(**where, reason=reason))
        yield text, type_.strip()


def lines_of(path: str | Path, setting: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a UTF-8 file, and the place of each for the message of a malformed line.

    Lines end with LF, CR and LF, or CR; a byte-order mark is skipped. setting, name: where the file
    is named. RAISES: SparseCRFError if it cannot be read.
    """
    place = {"path": path, "setting": setting, "name": name}
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SparseCRFError(Errors.SC134.format(**place, reason=reason)) from error
    end = b"\n" if b"\n" in data else b"\r"
    for number, line in enumerate(data.removeprefix(_BOM).split(end), start=1):
        where = {"line": number, **place}
        try:
            text = line.decode("utf8").rstrip("\r")
        except UnicodeDecodeError as error:
            raise SparseCRFError(Errors.SC135.format(**where, reason="it is not UTF-8")) from error
        yield text, where
