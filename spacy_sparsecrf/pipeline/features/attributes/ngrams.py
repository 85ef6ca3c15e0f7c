"""Character n-grams of a word."""

from dataclasses import dataclass

from ..cursor import Cursor
from .attribute import Sources, Value, WordAttribute, WordReader

LONGEST_NGRAM = 10  # in characters
LONG_WORD = 2 * LONGEST_NGRAM  # in characters; n-grams skip the middle of longer words
_MARKS = "two characters that mark the ends of words"


@dataclass(frozen=True)
class Ngrams(WordAttribute):
    """The distinct character n-grams of a word, ordered by n, then by position.

    Words of more than LONG_WORD characters have only the n-grams of their first and of their last
    LONG_WORD / 2 characters, which bounds the number of values.

    shortest, longest: n, in characters (code points), 1..LONGEST_NGRAM.
    marks: "", or two characters that are put before and after the word.
    """

    NAMES = ("ngrams",)
    has_one_text = False

    shortest: int
    marks: str
    longest: int

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "Ngrams":
        """Parse `"(" low "," high [ "," text ] ")"`."""
        cursor.expect("(", f" and two lengths, as in {name}(2,4)")
        low = cursor.take_integer(1, "a length", LONGEST_NGRAM)
        cursor.expect(",", f" and the length of the longest n-grams, as in {name}(2,4)")
        high = cursor.take_integer(low, "the length of the longest n-grams", LONGEST_NGRAM)
        marks = ""
        if cursor.take_char(","):
            start = cursor.at
            marks = cursor.take_text(f"{_MARKS},")[0]
            if len(marks) != 2:
                cursor.fail(_MARKS, at=start)
        if not cursor.take_char(")"):
            cursor.fail("')'" if marks else "',' or ')'")
        return cls(name, shortest=low, marks=marks, longest=high)

    @property
    def arguments(self) -> tuple[Value, ...]:
        """See `Attribute.arguments`."""
        return self.shortest, self.longest, self.marks

    def width(self, vector_width: int = 0) -> int:
        """Return the maximum number of n-grams of a word."""
        size = LONG_WORD + len(self.marks)
        return sum(size - n + 1 for n in range(self.shortest, self.longest + 1))

    def reader(self, sources: Sources) -> WordReader:
        """See `WordAttribute.reader`."""
        return self.ngrams_of

    def ngrams_of(self, text: str) -> list[str]:
        """Return the n-grams of a word."""
        pieces = [text] if len(text) <= LONG_WORD else [text[:LONGEST_NGRAM], text[-LONGEST_NGRAM:]]
        pieces[0] = self.marks[:1] + pieces[0]
        pieces[-1] += self.marks[1:]
        ngrams = (
            piece[i : i + n]
            for n in range(self.shortest, self.longest + 1)
            for piece in pieces
            for i in range(len(piece) - n + 1)
        )
        return list(dict.fromkeys(ngrams))
