"""Annotations that spaCy does not give as arrays: they are read in Python, token by token.

A reader is a function of Docs of one vocab: values [N, W] uint64 of their N tokens, 0 = missing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.util import filter_spans

from ..errors import Errors, SparseCRFError

Values: TypeAlias = NDArray[np.uint64]
TokenReader: TypeAlias = Callable[[Sequence[Doc]], Values]

_MASK = 2**64 - 1


def number_of(value: Any) -> int:
    """Number a value as spaCy numbers strings; integers and truth values stand for themselves."""
    return int(get_string_id(value)) if isinstance(value, str) else int(value) & _MASK


class Extension:
    """Values of an extension attribute, `token._.NAME`: strings, integers or truth values."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """Read the tokens of Docs; None is no value.

        RAISES: SparseCRFError if the attribute is not registered, or for another value.
        """
        if not Token.has_extension(self._name):
            raise SparseCRFError(Errors.SC120.format(name=self._name))
        values = [self._number(token) for doc in docs for token in doc]
        return np.array(values, dtype=np.uint64)[:, None]

    def _number(self, token: Token) -> int:
        value: Any = token._.get(self._name)
        if value is None:
            return 0
        if isinstance(value, (str, bool, int, np.bool_, np.integer)):
            return number_of(value)
        message = Errors.SC121.format(name=self._name, kind=type(value).__name__, text=token.text)
        raise SparseCRFError(message)


class Spans:
    """Labels of the spans of a group, `doc.spans[KEY]`: "B-label" at their beginning, "I-label".

    Where spans overlap, the longest counts, of equals the first.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """Read the tokens of Docs; one without such a group has no values."""
        values = np.zeros(sum(map(len, docs)), dtype=np.uint64)
        first = 0
        for doc in docs:
            spans: Iterable[Any] = doc.spans.get(self._key, ())
            for span in filter_spans(spans):
                begin = first + span.start
                values[begin : first + span.end] = get_string_id(f"I-{span.label_}")
                values[begin] = get_string_id(f"B-{span.label_}")
            first += len(doc)
        return values[:, None]
