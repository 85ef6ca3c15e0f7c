"""Character n-grams of words."""

from dataclasses import dataclass

LONGEST = 10  # n-gram, in characters
LONG = 2 * LONGEST  # characters from which the middle of a word is left out


@dataclass(frozen=True)
class Ngrams:
    """All n-grams of a word, each distinct one once, in the order of n and of their places.

    Of words of more than LONG characters they are those of the first and of the last LONG / 2
    characters: that bounds how many values a word can have.

    shortest, longest: n, in characters (code points), 1..LONGEST.
    marks: "", or two characters that are put before and behind the word.
    """

    shortest: int
    longest: int
    marks: str = ""

    @property
    def width(self) -> int:
        """The most n-grams that a word can have."""
        size = LONG + len(self.marks)
        return sum(size - n + 1 for n in range(self.shortest, self.longest + 1))

    def __call__(self, text: str) -> list[str]:
        """Find the n-grams of a word."""
        pieces = [text] if len(text) <= LONG else [text[:LONGEST], text[-LONGEST:]]
        pieces[0] = self.marks[:1] + pieces[0]
        pieces[-1] += self.marks[1:]
        found = [
            piece[i : i + n]
            for n in range(self.shortest, self.longest + 1)
            for piece in pieces
            for i in range(len(piece) - n + 1)
        ]
        return list(dict.fromkeys(found))
