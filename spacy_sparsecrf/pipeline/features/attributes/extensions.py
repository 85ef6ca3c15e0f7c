"""Extension attributes of tokens, `token._.NAME`: hashed, or as real-valued features."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from spacy.tokens import Doc, Token

from ....crf.corpus.blanks import extension_values
from ....crf.corpus.numbering import Singles
from ....errors import Errors, SparseCRFError
from ..cursor import Cursor
from .attribute import PythonAttribute, RealAttribute, Value, Values, number_of

MARK = "_"
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Extension(PythonAttribute):
    """Strings, integers or truth values of an extension attribute, or None: `_.is_city`."""

    NAMES = (MARK,)
    is_watched = True

    extension: str

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "Extension":
        """Parse the rest of `"_" "." name`, after `"_"`."""
        return cls(name, _parse_extension(cursor))

    def __str__(self) -> str:
        return f"{MARK}.{self.extension}"

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """See `TokenReader`.

        RAISES: SparseCRFError if the extension is not registered, or for values of other types.
        """
        values = []
        for token, value in _extensions(self.extension, docs):
            if not (value is None or isinstance(value, (str, bool, int, np.bool_, np.integer))):
                kind = type(value).__name__
                message = Errors.SC121.format(name=self.extension, kind=kind, text=token.text)
                raise SparseCRFError(message)
            values.append(0 if value is None else number_of(value))
        return np.array(values, dtype=np.uint64)[:, None]

    def texts(self, docs: Sequence[Doc], tokens: Mapping[int, int]) -> Mapping[int, Value]:
        """See `TokenReader`. Each value is read only once more, because getters may be slow."""
        all_tokens = [token for doc in docs for token in doc]
        values = {number: all_tokens[at]._.get(self.extension) for number, at in tokens.items()}
        return {
            number: value if isinstance(value, str) else int(value or 0)
            for number, value in values.items()
        }


@dataclass(frozen=True)
class Real(RealAttribute):
    """A numeric extension attribute as a real-valued feature: `value(_.score)`."""

    NAMES = ("value",)

    extension: str

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "Real":
        """Parse `"(" "_" "." name ")"`."""
        cursor.expect("(", f" and an extension attribute, as in {name}({MARK}.score)")
        if not cursor.take_char(MARK):
            cursor.fail(f"an extension attribute, as in {MARK}.score")
        extension = _parse_extension(cursor)
        cursor.expect(")")
        return cls(name, extension)

    def __str__(self) -> str:
        return f"{self.name}({MARK}.{self.extension})"

    def numbers(self, docs: Sequence[Doc], vector_width: int) -> Singles:
        """See `RealAttribute.numbers`."""
        pairs = _extensions(self.extension, docs)
        numbers = [self._number(token, value) for token, value in pairs]
        return np.array(numbers, dtype=np.float32)[:, None]

    def _number(self, token: Token, value: Any) -> float:
        if value is None:
            return 0.0
        where = {"read": self, "name": self.extension, "text": token.text}
        if not isinstance(value, _NUMBERS):
            raise SparseCRFError(Errors.SC391.format(kind=type(value).__name__, **where))
        number: Any = value
        # Compare before conversion, because converting a large integer overflows.
        if not -_LARGEST <= number <= _LARGEST:
            raise SparseCRFError(Errors.SC392.format(value=value, doc=token.doc.text[:60], **where))
        return float(number)


def _parse_extension(cursor: Cursor) -> str:
    """Parse the rest of `"_" "." name`, after `"_"`."""
    cursor.expect(".", " and the name of an extension attribute, as in _.is_city")
    return cursor.take_word() or cursor.fail("the name of an extension attribute")


def _extensions(name: str, docs: Sequence[Doc]) -> Iterator[tuple[Token, Any]]:
    """Return tokens and their values of an attribute. RAISES: SparseCRFError if not registered."""
    if not Token.has_extension(name):
        raise SparseCRFError(Errors.SC120.format(name=name))
    extension = Token.get_extension(name)
    pairs = (zip(doc, extension_values(doc, name, extension), strict=True) for doc in docs)
    return chain.from_iterable(pairs)
