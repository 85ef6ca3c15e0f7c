"""Words and blanks: which tokens take part in sequences, and the characters of a word that count.

Tokens of white space, or of characters without width, are blanks: no part of a sequence, so that
texts with other blanks have the same features, labels and probabilities.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]

WORD = 0  # kinds of tokens: words, blanks without a line break, and blanks with one, or two or more
BLANK = 1
MOST_BREAKS = 2  # line breaks that are counted; a sequence ends where there are so many

# Soft hyphens, joiners, marks of direction and of byte order: readers of a text do not see them.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")


def seen(text: str) -> str:
    """Return a word as readers see it: without characters that have no width, composed (NFC)."""
    return text if text.isascii() else unicodedata.normalize("NFC", _UNSEEN.sub("", text))


@lru_cache(maxsize=1 << 16)
def kind_of(text: str) -> int:
    """Return the kind of a token: WORD, or BLANK plus its number of line breaks, which is capped.

    text: as `seen`. CR LF is one line break.
    """
    if text and not text.isspace():
        return WORD
    return BLANK + min(len(f"{text}.".splitlines()) - 1, MOST_BREAKS)


def paragraphs_of(texts: Iterable[str]) -> list[int]:
    """Return the positions of the words that blanks with two line breaks or more precede."""
    found, breaks = [], -1
    for token, text in enumerate(texts):
        kind = kind_of(seen(text))
        if kind == WORD:
            found += [token] if breaks >= MOST_BREAKS else []
            breaks = 0
        elif breaks >= 0:
            breaks += kind - BLANK
    return found


def words_of(texts: Iterable[str]) -> Longs:
    """Return the positions of the tokens that are words. texts: of all tokens."""
    return np.flatnonzero([kind_of(seen(text)) == WORD for text in texts])
