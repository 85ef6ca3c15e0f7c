"""Attributes: objects with a name and arguments, whose values templates read.

A word attribute depends only on the token's string, an annotation is stored with the token by
spaCy, and others are read in Python, which is slower. The values "", 0 and False are missing:
templates that read them give no feature.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ....crf.corpus.numbering import Singles
from ..cursor import Cursor, quote

if TYPE_CHECKING:
    from ..classes import WordClasses

Value: TypeAlias = str | int
Values: TypeAlias = NDArray[np.uint64]
EMPTY = 0x27D4EB2F165667C5
"""Number of an empty text, which gives a feature, unlike a missing value."""
_MASK = 2**64 - 1
PhraseList: TypeAlias = dict[str, list[list[str]]]
"""Phrases by type, "" for phrases without a type: the tokens of each."""
WordReader: TypeAlias = Callable[[str], Value | Sequence[str]]
"""A function of the text of a word; it returns several values for attributes of several columns."""


class Sources(NamedTuple):
    """Sources that attributes read apart from Docs.

    functions: functions of a word by name, in the language of the Docs; where: for messages, the
    number and text of the first template that reads an attribute; phrases: lists by name;
    phrase_attr: see `Phrases`; classes: word classes by name; word_labels: labels of words in the
    training data; vector_width: number of dimensions of vectors, 0 if unknown.
    """

    functions: Mapping[str, Callable[[str], Value]]
    where: Callable[["Attribute"], dict[str, Any]]
    phrases: Mapping[str, PhraseList]
    phrase_attr: str
    classes: "Mapping[str, WordClasses]"
    word_labels: "WordClasses | None"
    vector_width: int


@dataclass(frozen=True)
class Attribute:
    """An attribute with its arguments, which are the further fields of a class.

    Attributes are ordered by name, then by arguments. Hashes depend on this order.
    """

    NAMES: ClassVar[tuple[str, ...]] = ()
    """Names in templates."""
    SETTING: ClassVar[str] = ""
    """The setting of the featurizer with the lists by name that the attribute reads."""
    has_one_text: ClassVar[bool] = True
    """Whether a token has one value, which can be written as a text."""
    needs_labels: ClassVar[bool] = False
    """Whether values depend on the labels of training data."""

    name: str

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "Attribute":
        """Parse the arguments behind a name, or fail."""
        return cls(name)

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The arguments in the order of templates; those that are empty or 0 are left out."""
        return astuple(self)[1:]

    @property
    def stored(self) -> tuple[int, ...]:
        """Ids of spaCy's attributes that the values are made from."""
        return ()

    def width(self, vector_width: int = 0) -> int:
        """Return the maximum number of values at a token, each in a column of its own.

        vector_width: number of dimensions of vectors.
        """
        return 1

    def __lt__(self, other: "Attribute") -> bool:
        return astuple(self) < astuple(other)

    def __str__(self) -> str:
        """Return the canonical text, which parses to an equal attribute."""
        arguments = [quote(x) if isinstance(x, str) else str(x) for x in self.arguments if x]
        return f"{self.name}({','.join(arguments)})" if arguments else self.name


class WordAttribute(Attribute):
    """An attribute that depends only on the token's string, which is read once for each word."""

    has_only_texts: ClassVar[bool] = False
    """Whether values are texts even if they consist of digits, see `crf.model.names`."""

    def reader(self, sources: Sources) -> WordReader:
        """Return the function of a word's text."""
        raise NotImplementedError


class TokenReader:
    """Reader of an attribute in Docs of the same vocab."""

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """Return the values of the N tokens: [N, W] uint64, 0 = missing."""
        return np.zeros((sum(map(len, docs)), 1), dtype=np.uint64)

    def texts(self, docs: Sequence[Doc], tokens: Mapping[int, int]) -> Mapping[int, Value]:
        """Return the values of numbers that were read, which hashes are made of.

        tokens: for each number, the position among all tokens of one that has it.
        RETURNS: the values by number; there may be more.
        """
        return {}


class PythonAttribute(Attribute, TokenReader):
    """An attribute that is read in Python, by itself if it needs no sources."""

    is_watched: ClassVar[bool] = False
    """Whether values are set by other pipes or by users, so that they may be absent by mistake."""
    is_number: ClassVar[bool] = False
    """Whether the numbers that are hashed are the values."""

    def reader(self, sources: Sources) -> TokenReader:
        """Return the reader of Docs."""
        return self


class RealAttribute(Attribute):
    """An attribute whose values are real-valued features, which are not hashed."""

    has_one_text = False

    def numbers(self, docs: Sequence[Doc], vector_width: int) -> Singles:
        """Return the values of the tokens of Docs: [N, W] float32, 0 = missing.

        RAISES: SparseCRFError for values that are not numbers or not finite.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class KeyedAttribute(Attribute):
    """An attribute of something with a key: `name("key")`."""

    key: str

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "KeyedAttribute":
        """Parse `"(" text ")"`."""
        cursor.expect("(", f""" and a name, as in {name}("places")""")
        key = cursor.take_key()
        cursor.expect(")")
        return cls(name, key)


def number_of(value: Any) -> int:
    """Return spaCy's id of a string, or the value itself of an integer or truth value."""
    return int(get_string_id(value)) if isinstance(value, str) else int(value) & _MASK


def number_of_text(text: str) -> int:
    """Return spaCy's id of a text, EMPTY for the empty text."""
    return int(get_string_id(text)) if text else EMPTY


def text_of(value: Value) -> str:
    """Return the text of an attribute's value, digits for numbers and truth values."""
    return value if isinstance(value, str) else str(int(value))
