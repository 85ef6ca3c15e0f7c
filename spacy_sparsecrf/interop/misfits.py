"""Likely causes if character spans do not fit the tokens of their texts, tried on the texts."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from typing import TypeAlias

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..cli.files import script_of
from .records import Record, tokenized

MOST_MISFITS = 0.2
"""Share of spans that do not fit the tokens, above which a file is refused."""

Change: TypeAlias = tuple[str, int, int, int]  # encoding, bytes of a unit, added to start and end
_NONE: Change = ("utf-32-le", 4, 0, 0)
_CHANGES: dict[str, Change] = {
    "offsets count from 1": ("utf-32-le", 4, -1, -1),
    "offsets count from 1 and an end is the last character": ("utf-32-le", 4, -1, 0),
    "an end is the last character": ("utf-32-le", 4, 0, 1),
    "offsets count UTF-16 units": ("utf-16-le", 2, 0, 0),
    "offsets count bytes of UTF-8": ("utf-8", 1, 0, 0),
}
# Languages of scripts, the rarest first, and languages with other tokens in Latin script.
_LANGUAGES = {"HIRAGANA": "ja", "HANGUL": "ko", "THAI": "th", "CJK": "zh"}
_OTHERS = {"xx": "", "en": "", "fr": "", "it": ""}
_N_RECORDS, _N_CHARACTERS = 2000, 20_000  # that are tried, and whose scripts are counted
_LEAST = 0.1  # share of the letters of a script


def likely_causes(records: Sequence[Record], nlp: Language) -> str:
    """Return the changes of language or offsets with which most spans fit the tokens.

    RETURNS: a sentence, "" if there is no such change.
    """
    records = records[:: 1 + len(records) // _N_RECORDS]
    letters = "".join(record.text for record in records)[:_N_CHARACTERS]
    scripts = Counter(script_of(x) for x in letters if x.isalpha())
    known = [(own, x) for x, own in _LANGUAGES.items() if scripts[x] > _LEAST * scripts.total()]
    n_fit: dict[str, int] = {}
    for lang, script in [*known[:1], *_OTHERS.items()]:
        try:
            fit = _n_fit(records, spacy.blank(lang).tokenizer, {lang: _NONE})[lang]
        except ImportError:  # its tokenizer is not installed
            fit = sum(len(own.marks) for own in records if script in map(script_of, own.text))
        n_fit |= {} if lang == nlp.lang else {f"the language is another one (--lang {lang})": fit}
    n_fit |= _n_fit(records, nlp.tokenizer, _CHANGES | {"": _NONE})
    n, best = sum(len(record.marks) for record in records), max(n_fit.values())
    if best < (1 - MOST_MISFITS) * n or best <= n_fit.pop(""):
        return ""
    found = " or ".join(what for what, own in n_fit.items() if own == best)
    return f"Likely cause, with which {best} of {n} spans fit: {found}"


def _n_fit(
    records: Sequence[Record], tokenizer: Callable[[str], Doc], changes: dict[str, Change]
) -> Counter[str]:
    """Return the numbers of spans that fit the tokens, by the change of their offsets."""
    found = Counter(dict.fromkeys(changes, 0))
    for record in records:
        with suppress(ValueError):
            tokens = [token for token in tokenized(record, tokenizer) if not token.is_space]
            starts, ends = {x.idx for x in tokens}, {x.idx + len(x) for x in tokens}
            for mark, what in product(record.marks, changes):
                encoding, size, more, longer = changes[what]
                start = _place(record.text, mark.start + more, encoding, size)
                end = _place(record.text, mark.end + longer, encoding, size)
                is_same = not mark.text or mark.text.split() == record.text[start:end].split()
                found[what] += start in starts and end in ends and start < end and is_same
    return found


def _place(text: str, offset: int, encoding: str, size: int) -> int:
    """Return the number of characters before an offset in units of bytes; -1 if it is in none."""
    if text.isascii() or size == 4:
        return offset if offset <= len(text) else -1
    data = text.encode(encoding)
    with suppress(UnicodeDecodeError):
        return (
            len(data[: offset * size].decode(encoding)) if 0 <= offset * size <= len(data) else -1
        )
    return -1
