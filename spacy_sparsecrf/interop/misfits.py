"""Likely causes if character spans do not fit the tokens of their texts, tried on the texts."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..cli.files import script_of
from .records import Record, tokenized

MOST_MISFITS = 0.2
"""Share of spans that do not fit the tokens, above which a file is refused."""

NO_CAUSE = (
    "No likely cause (another language, offsets from 1, ends that are the last character, offsets "
    "of UTF-16 or bytes) makes them fit"
)

Ends: TypeAlias = tuple[int, int]
_LANGUAGES = {"CJK": "zh", "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "THAI": "th"}
_N_CHARACTERS, _LEAST = 20_000, 0.1  # letters that are read, and share of a script


def _decoded(text: str, offset: int, encoding: str, size: int) -> int:
    """Return the number of characters before an offset that counts units of `size` bytes."""
    data = text.encode(encoding)
    return len(data[: offset * size].decode(encoding)) if 0 <= offset * size <= len(data) else -1


def _of_units(encoding: str, size: int) -> Callable[[str, int, int], Ends]:
    return lambda text, a, b: (_decoded(text, a, encoding, size), _decoded(text, b, encoding, size))


_CAUSES: dict[str, Callable[[str, int, int], Ends]] = {
    "offsets count from 1 instead of 0": lambda text, a, b: (a - 1, b - 1),
    "offsets count from 1, and an end is the last character": lambda text, a, b: (a - 1, b),
    "an end is the last character, not the one after it": lambda text, a, b: (a, b + 1),
    "offsets count UTF-16 units instead of characters": _of_units("utf-16-le", 2),
    "offsets count bytes of UTF-8 instead of characters": _of_units("utf-8", 1),
}


def likely_causes(records: Sequence[Record], nlp: Language) -> str:
    """Return the changes of language or offsets with which most spans fit the tokens.

    RETURNS: a sentence, "" if there is no such change.
    """
    marked = [record for record in records if record.marks]
    n, n_fit = sum(len(record.marks) for record in marked), dict[str, int]()
    for lang, script in _languages(marked, nlp.lang).items():
        more = ""
        try:
            fit = _n_fit(_bounds(marked, spacy.blank(lang).tokenizer), _unchanged)
        except ImportError as error:
            more = f", which is not installed: {' '.join(str(error).split())}"
            fit = sum(len(own.marks) for own in marked if script in map(script_of, own.text))
        n_fit[f"the texts are in another language (--lang {lang}{more})"] = fit
    bounds = _bounds(marked, nlp.tokenizer)
    n_fit |= {what: _n_fit(bounds, change) for what, change in _CAUSES.items()}
    best = max(n_fit.values())
    if best < (1 - MOST_MISFITS) * n or best <= _n_fit(bounds, _unchanged):
        return ""
    found = " or ".join(what for what, own in n_fit.items() if own == best)
    return f"Likely cause, with which {best} of {n} spans fit: {found}"


def _languages(records: Sequence[Record], lang: str | None) -> dict[str, str]:
    """Return other languages that texts may have, and their scripts."""
    letters = "".join(record.text for record in records)[:_N_CHARACTERS]
    scripts = Counter(script_of(x) for x in letters if x.isalpha())
    least = _LEAST * scripts.total()
    found = {own: script for script, own in _LANGUAGES.items() if scripts[script] > least}
    return {key: own for key, own in (found | {"xx": "", "en": ""}).items() if key != lang}


def _unchanged(text: str, start: int, end: int) -> Ends:
    return start, end


def _bounds(
    records: Sequence[Record], tokenizer: Callable[[str], Doc]
) -> list[tuple[Record, set[int], set[int]]]:
    """Return records, and where their tokens start and end."""
    found = []
    for record in records:
        with suppress(ValueError):
            tokens = [token for token in tokenized(record, tokenizer) if not token.is_space]
            starts, ends = {x.idx for x in tokens}, {x.idx + len(x) for x in tokens}
            found.append((record, starts, ends))
    return found


def _n_fit(
    bounds: Sequence[tuple[Record, set[int], set[int]]],
    change: Callable[[str, int, int], Ends],
) -> int:
    """Return the number of spans that fit the tokens if their offsets are changed."""
    n = 0
    for record, starts, ends in bounds:
        for start, end, _, covered in record.marks:
            with suppress(ValueError):
                first, last = change(record.text, start, end)
                words = record.text[first:last].split()
                is_same = covered is None or covered.split() == words
                n += first in starts and last in ends and first < last and is_same
    return n
