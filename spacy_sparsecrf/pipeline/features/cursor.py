"""A position in the text of a template.

    text := '"' character* '"' | "'" character* "'"

In a text, a backslash escapes a quotation mark. Every other backslash is part of the text, so that
regular expressions do not need doubled backslashes. Names of spans, phrases and clusters that are
words need no quotation marks. Several dollar signs in a row are read as one, because spaCy doubles
dollar signs each time that it saves and loads a config.
"""

import re
from typing import NoReturn

from ...errors import Errors, SparseCRFError
from ...schema import HALF

_TEXT = re.compile(r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'", re.DOTALL)
_PIECE = re.compile(r"\\.|.", re.DOTALL)
_WORD = re.compile(r"\w+")
_ESCAPED = ('\\"', "\\'")

_BLANKS = re.compile(r"\s*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}(?![0-9])")
_TOKEN = re.compile(r"[+-]?\w+|.", re.DOTALL)

LIMIT = 1000  # of offsets and lengths, so that both are small integers everywhere


class Cursor:
    """A position in the text of one template, for parsing and for error messages.

    text: of the template; number: its position in the list, from 1, for messages.
    """

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.at = 0
        if half := HALF.search(text):
            self.fail("a character, not half of one", at=half.start())
        self._skip_blanks()

    def is_at_end(self) -> bool:
        """Return whether all of the text is read."""
        return self.at == len(self.text)

    def take(self, pattern: re.Pattern[str]) -> str:
        """Read a match at the position, and the blanks after it; "" without a match."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        self._skip_blanks()
        return match.group()

    def take_char(self, chars: str) -> str:
        """Read one of these characters, and the blanks after it; "" for another character."""
        return self.take(re.compile(f"[{re.escape(chars)}]"))

    def take_integer(self, low: int, what: str, high: int = LIMIT) -> int:
        """Read an integer in low..high, or fail. what: description of it for the message."""
        start = self.at
        digits = self.take(_INTEGER)
        if not digits or not low <= int(digits) <= high:
            self.fail(f"{what}, a whole number from {low} to {high}", at=start)
        return int(digits)

    def take_word(self) -> str:
        """Read a word, and the blanks after it; "" for other characters."""
        return self.take(_WORD)

    def take_text(self, what: str) -> tuple[str, list[int]]:
        """Read a text that is not empty, or fail. what: description of it for the message.

        RETURNS: the text, and the positions in the template of its characters and of its end.
        """
        start = self.at
        quoted = self.take(_TEXT)
        if len(quoted) <= 2:
            self.fail(f"{what} between quotation marks", at=start)
        text = ""
        positions: list[int] = []
        for match in _PIECE.finditer(quoted, 1, len(quoted) - 1):
            piece = match.group()
            at = start + match.start()
            if piece == "$" == text[-1:]:
                continue
            text += piece[1:] if piece in _ESCAPED else piece
            positions += [at] if piece in _ESCAPED else range(at, at + len(piece))
        return text, [*positions, start + len(quoted) - 1]

    def take_key(self) -> str:
        """Read a name, which needs no quotation marks if it is a word, or fail."""
        return self.take_word() or self.take_text("a name, alone or")[0]

    def expect(self, char: str, more: str = "") -> None:
        """Read a character, or fail. more: text after the character in the message."""
        if not self.take_char(char):
            self.fail(f"'{char}'{more}")

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise SparseCRFError with the expected and the found text, at the position or at `at`."""
        at = self.at if at is None else at
        match = _TOKEN.match(self.text, at)
        met = repr(match.group()) if match else "the end of the template"
        message = Errors.SC101.format(
            number=self.number,
            template=self.text,
            position=at + 1,
            expected=expected,
            found=met,
        )
        raise SparseCRFError(message)

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at


def quote(text: str) -> str:
    """Return a text as an argument: in quotation marks, with inner quotation marks escaped."""
    pieces = (match.group() for match in _PIECE.finditer(text))
    return '"' + "".join('\\"' if piece == '"' else piece for piece in pieces) + '"'
