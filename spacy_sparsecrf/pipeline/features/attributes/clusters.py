"""The class of a word: in a list of word classes, or by its labels in the training data."""

from dataclasses import dataclass

from ..classes import ClassReader, WordClasses
from ..cursor import Cursor
from ..word_labels import WordLabelReader
from .attribute import Sources, Value, WordAttribute, WordReader

MOST_BITS = 64  # of a path
WORD_LABELS = "word_labels"
OF_WORDS = f"{WORD_LABELS}[0]"
"""Name of the labels of words among saved word classes; no other list can have it."""
_NO_LABELS = WordClasses.of({}, are_paths=False)


@dataclass(frozen=True)
class Cluster(WordAttribute):
    """The class of a word: `cluster("brown",4)`; see `classes`.

    bits: number of leading bits of the path to read; 0 for the whole class; key: of the list.
    """

    NAMES = ("cluster",)
    SETTING = "clusters"
    has_one_text = False
    has_only_texts = True

    bits: int
    key: str

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "Cluster":
        """Parse `"(" text [ "," bits ] ")"`."""
        cursor.expect("(", f""" and a name, as in {name}("brown",4)""")
        key = cursor.take_key()
        bits = cursor.take_integer(1, "a number of bits", MOST_BITS) if cursor.take_char(",") else 0
        if not cursor.take_char(")"):
            cursor.fail("')'" if bits else "',' or ')'")
        return cls(name, bits, key)

    @property
    def arguments(self) -> tuple[Value, ...]:
        """See `Attribute.arguments`."""
        return self.key, self.bits

    def reader(self, sources: Sources) -> WordReader:
        """See `WordAttribute.reader`."""
        return ClassReader(sources.classes[self.key], self.bits)


@dataclass(frozen=True)
class LabelsOfWord(WordAttribute):
    """The labels of the word in the training data, see `word_labels`."""

    NAMES = (WORD_LABELS,)
    has_one_text = False
    has_only_texts = True
    needs_labels = True

    def reader(self, sources: Sources) -> WordReader:
        """See `WordAttribute.reader`."""
        return WordLabelReader(sources.word_labels or _NO_LABELS)
