"""What is read from the tokens of Docs, and where sequences begin and end.

spaCy gives most annotations as arrays (`read_tokens`). Others are read in Python, token by token,
by readers: functions of Docs of one vocab, which give values [N, W] uint64 of their N tokens,
0 = missing.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import SPACY  # type: ignore[import-not-found]
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.util import filter_spans

from ..errors import Errors, SparseCRFError
from .arguments import Read
from .attributes import EXTENSION, PHRASE, SPAN
from .phrases import Phrases, Tokens
from .values import VectorBins

Values: TypeAlias = NDArray[np.uint64]
TokenReader: TypeAlias = Callable[[Sequence[Doc]], Values]

MODES = ("sents", "docs")
_MASK = 2**64 - 1


def check_mode(mode: str) -> None:
    """Raise `SparseCRFError` for anything but "sents" and "docs"."""
    if mode not in MODES:
        raise SparseCRFError(Errors.SC105.format(value=mode, known=", ".join(MODES)))


def read_tokens(
    docs: Sequence[Doc], attributes: tuple[int, ...], mode: str
) -> tuple[NDArray[np.int64], Values]:
    """Read the tokens of Docs.

    docs: at least one.
    attributes: spaCy ids, the second of them SENT_START.
    mode: "sents", sentences where a Doc has them, else the Doc; or "docs", each Doc.
    RETURNS: [S + 1] int64, sequence s is the tokens offsets[s]:offsets[s + 1]; and the values of
        the attributes, [N, A] uint64, of which SPACY is inverted.
    """
    from ..kernels.hashing import cut, glue  # imports numba

    ends = np.array([*accumulate(map(len, docs))], dtype=np.int64)
    # to_array takes any iterable, and gives what spaCy's stub does not know.
    arrays: Any = [doc.to_array(attributes) for doc in docs]  # type: ignore[arg-type]
    values: Values = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    offsets = np.empty(len(values) + 1, dtype=np.int64)
    n_sequences = cut(ends, values, mode == "sents", offsets)
    if SPACY in attributes:
        glue(ends, values, attributes.index(SPACY))
    return offsets[: n_sequences + 1], values


def token_reader(
    read: Read, phrases: dict[str, list[Tokens]], phrase_attr: str, vector_width: int
) -> TokenReader:
    """The function of Docs that an attribute is which is read in Python.

    phrases: all lists that are read; phrase_attr: see `Phrases`; vector_width: see `VectorBins`.
    """
    if read.name == EXTENSION:
        return Extension(read.argument)
    if read.name == SPAN:
        return SpanLabels(read.argument)
    if read.name == PHRASE:
        return Phrases(phrases[read.argument], phrase_attr)
    return VectorBins(read.length, vector_width)


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


class SpanLabels:
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
