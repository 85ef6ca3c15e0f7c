"""A position in the text of a template, from which parsers of its parts read on."""

import re
from typing import NoReturn

from ..errors import Errors, SparseCRFError

LIMIT = 1000  # of offsets and lengths: keeps them small integers everywhere

_BLANKS = re.compile(r"\s*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}(?![0-9])")
_TOKEN = re.compile(r"[+-]?\w+|.", re.DOTALL)


class Cursor:
    """A position in the text of one template, which can say what was expected there.

    text: of the template; number: its position in the list, from 1, for messages.
    """

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.at = 0
        self._skip_blanks()

    def is_at_end(self) -> bool:
        """Whether all of the text is read."""
        return self.at == len(self.text)

    def take(self, pattern: re.Pattern[str]) -> str:
        """Read what matches here, and the blanks behind it; "" where nothing matches."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        self._skip_blanks()
        return match.group()

    def take_char(self, chars: str) -> str:
        """Read one of these characters, and the blanks behind it; "" where none is here."""
        char = self.text[self.at : self.at + 1]
        if not char or char not in chars:
            return ""
        self.at += 1
        self._skip_blanks()
        return char

    def take_integer(self, low: int, what: str, high: int = LIMIT) -> int:
        """Read an integer in low..high, or fail saying `what` was expected."""
        start = self.at
        digits = self.take(_INTEGER)
        if not digits or not low <= int(digits) <= high:
            self.fail(f"{what}, a whole number from {low} to {high}", at=start)
        return int(digits)

    def expect(self, char: str, more: str = "") -> None:
        """Read a character, or fail. more: what the message says behind it."""
        if not self.take_char(char):
            self.fail(f"'{char}'{more}")

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise an error that says what was expected here, or at `at`, and what was found."""
        at = self.at if at is None else at
        match = _TOKEN.match(self.text, at)
        found = repr(match.group()) if match else "the end of the template"
        error = Errors.SC101.format(
            number=self.number, template=self.text, position=at + 1, expected=expected, found=found
        )
        raise SparseCRFError(error)

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at
