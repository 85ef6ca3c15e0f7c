"""Lists of phrases (gazetteers): which tokens are in one."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import LOWER  # type: ignore[import-not-found]
from spacy.matcher import PhraseMatcher
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.util import filter_spans
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError

Tokens: TypeAlias = list[str]
Tokenize: TypeAlias = Callable[[str], Iterable[str]]

ATTRS = ("LOWER", "ORTH")
_BOM = b"\xef\xbb\xbf"


class _Match(NamedTuple):
    """As much of a Span as `filter_spans` looks at."""

    start: int
    end: int


class Phrases:
    """Marks of tokens that begin ("B"), continue ("I") or end ("L") a phrase, or are one ("U").

    Of matches that overlap the longest counts, of equals the first.

    phrases: by their tokens.
    attr: what of tokens is compared, one of ATTRS.
    """

    def __init__(self, phrases: Sequence[Tokens], attr: str) -> None:
        vocab = Vocab(lex_attr_getters={LOWER: str.lower})
        self._matcher = PhraseMatcher(vocab, attr)
        self._matcher.add("phrases", [Doc(vocab, words=tokens) for tokens in phrases])
        self._ids = {sign: get_string_id(sign) for sign in "BILU"}

    def __call__(self, docs: Sequence[Doc]) -> NDArray[np.uint64]:
        """Read the tokens of Docs: [N, 1]."""
        values = np.zeros(sum(map(len, docs)), dtype=np.uint64)
        first = 0
        for doc in docs:
            found: Any = [_Match(start, end) for _, start, end in self._matcher(doc)]
            for match in filter_spans(found):
                of_match = values[first + match.start : first + match.end]
                of_match[:] = self._ids["I"]
                of_match[0], of_match[-1] = self._ids["B"], self._ids["L"]
                if len(of_match) == 1:
                    of_match[0] = self._ids["U"]
            first += len(doc)
        return values[:, None]


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
    """Return whether phrases can be read from it: a path, or a list of strings."""
    if isinstance(source, list | tuple):
        return all(isinstance(phrase, str) for phrase in source)
    return isinstance(source, str | Path)


def undoubled(phrases: Mapping[str, Any]) -> dict[str, Any]:
    """Phrases as they were before spaCy saved the config, see `arguments` on dollar signs."""
    return {
        _undouble(name): [*map(_undouble, source)] if isinstance(source, list | tuple) else source
        for name, source in phrases.items()
    }


def _undouble(text: str) -> str:
    return re.sub(r"\$+", "$", text)


def read_phrases(name: str, source: str | Path | Sequence[str], tokenize: Tokenize) -> list[Tokens]:
    """Read and tokenise phrases, each distinct one once.

    name: for messages; source: the path of a file of one phrase a line, or the phrases.
    RAISES: SparseCRFError for a file that cannot be read, or where there are none.
    """
    lines = _read_lines(name, source) if isinstance(source, str | Path) else source
    phrases = dict.fromkeys(tuple(tokenize(line.strip())) for line in lines)
    phrases.pop((), None)
    if not phrases:
        raise SparseCRFError(Errors.SC136.format(name=name))
    return list(map(list, phrases))


def _read_lines(name: str, path: str | Path) -> list[str]:
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SparseCRFError(Errors.SC134.format(path=path, name=name, reason=reason)) from error
    lines = []
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), start=1):
        try:
            lines.append(line.decode("utf8"))
        except UnicodeDecodeError as error:
            raise SparseCRFError(Errors.SC135.format(line=number, path=path, name=name)) from error
    return lines


def check_saved(learnt: object, names: Sequence[str]) -> None:
    """Check what `Featurizer.learnt` was, when it comes from a file.

    names: of the lists that templates read.
    RAISES: SparseCRFError if it is unsound.
    """
    if not isinstance(learnt, dict):
        raise SparseCRFError(Errors.SC137.format(reason="it is not a mapping"))
    width = learnt.get("vector_width", 0)
    if not isinstance(width, int) or width < 0:
        raise SparseCRFError(Errors.SC137.format(reason=f"vectors cannot be {width!r} wide"))
    if "phrases" not in learnt:
        return
    lists = learnt["phrases"]
    for name in names:
        if not isinstance(lists, dict) or not _are_phrases(lists.get(name)):
            reason = f"the list of phrases {name!r} is missing or damaged"
            raise SparseCRFError(Errors.SC137.format(reason=reason))


def _are_phrases(phrases: object) -> bool:
    """Return whether it is a list of lists of words."""
    return isinstance(phrases, list) and all(
        isinstance(tokens, list) and tokens and all(isinstance(t, str) and t for t in tokens)
        for tokens in phrases
    )
