"""What the numbers of attributes that are read in Python stand for."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from .arguments import Read
from .attributes import EXTENSION, PHRASE, VECTOR, Value
from .columns import texts_of


class TokenValues:
    """Remembers the values that attributes have had in Docs, by their numbers.

    Strings need not be known to a vocab, see `annotations`.
    """

    def __init__(self) -> None:
        self._known: dict[Read, dict[int, Value]] = {}

    def add(self, read: Read, docs: Sequence[Doc], numbers: NDArray[np.uint64]) -> None:
        """Remember the values that an attribute has in Docs.

        numbers: [N] of their N tokens, as they were read.
        """
        if read.name == VECTOR:
            return
        known = self._known.setdefault(read, {0: ""})
        if read.name == PHRASE:
            known.update((int(get_string_id(sign)), sign) for sign in "BILU")
        elif read.name == EXTENSION:
            # Each distinct value is read once more: getters may be slow.
            distinct, first = np.unique(numbers, return_index=True)
            ends = [*accumulate(map(len, docs))]
            for number, t in zip(distinct.tolist(), first.tolist(), strict=True):
                if number not in known:
                    known[number] = _value(_token(docs, ends, t), read.argument)
        else:
            known.update(texts_of(read, docs))

    def value(self, read: Read, number: int) -> Value:
        """The value that a number stands for. RAISES: KeyError if none is known."""
        return number if read.name == VECTOR else self._known[read][number]


def _token(docs: Sequence[Doc], ends: Sequence[int], t: int) -> Token:
    """Token t of all the tokens of Docs; ends: how many there are up to the end of each."""
    i = int(np.searchsorted(ends, t, side="right"))
    return docs[i][t - ends[i]]


def _value(token: Token, name: str) -> Value:
    value = token._.get(name)
    return value if isinstance(value, str) else int(value or 0)
