"""The template language.

    template := kind ":" [ test ("|" test)* ]
    kind     := "u" (with the label) | "b" (with the pair of labels) | "*" (both)
    test     := read "[" offset "]" | read "[" "@" place "]"
    read     := an attribute, some with arguments in brackets (see `arguments`)

An offset counts from the current token; place 1 is the first token of the sequence, 2 the second,
-1 the last. Blanks between these parts mean nothing. Without a test a template is always on: `u:`
is a bias of each label, `b:` are plain transitions. Templates are as in Wapiti (Lavergne et al.
2010). A family of templates is written

    family   := kind ":" "ngrm" "(" length "," read ")" [ "-" | "+" | "++" ]

and stands for all of them, see `windows`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from ..errors import Errors, SparseCRFError
from .arguments import Read, parse_read
from .attributes import NAMES
from .windows import FAMILY, parse_length, parse_variant, windows

LIMIT = 1000  # of offsets and lengths: keeps them small integers everywhere
WITH = {"u": "the label", "b": "the label pair"}

_BLANKS = re.compile(r"\s*")
_NAME = re.compile(r"\w+")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}(?![0-9])")
_TOKEN = re.compile(r"[+-]?\w+|.", re.DOTALL)


@dataclass(frozen=True, order=True)
class TokenTest:
    """One attribute of one token.

    offset: of the token, in tokens, relative to the current one; where absolute, its place.
    attribute: a name in `attributes.NAMES`.
    length, argument, longest: as in `Read`.
    absolute: whether the token has a place in the sequence, 1 the first, -1 the last.
    """

    offset: int
    attribute: str
    length: int = 0
    argument: str = ""
    longest: int = 0
    absolute: bool = False

    @property
    def read(self) -> Read:
        """What is read, wherever the token is."""
        return Read(self.attribute, self.length, self.argument, self.longest)

    def __str__(self) -> str:
        return f"{self.read}[{'@' * self.absolute}{self.offset}]"


@dataclass(frozen=True)
class Template:
    """A conjunction of tests, itself conjoined with the label, the label pair, or both.

    kind: "u", "b" or "*".
    tests: sorted, so that the order in which they were written does not matter; may be empty.
    number: position of its text in the list, from 1.
    """

    kind: str
    tests: tuple[TokenTest, ...]
    number: int = field(default=1, compare=False)

    @property
    def key(self) -> str:
        """Canonical text of the tests; hashes depend on it, and on neither kind nor position."""
        return "|".join(map(str, self.tests))

    @property
    def is_real(self) -> bool:
        """Whether it is not hashed: numbers are features as they are, see `values`."""
        return any(test.read.is_real for test in self.tests)

    @property
    def kinds(self) -> str:
        """What the tests are conjoined with: "u", "b" or "ub"."""
        return "ub" if self.kind == "*" else self.kind

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


class _Reader:
    """A cursor over the text of one template, which can say where it stopped."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.at = 0
        self._skip_blanks()

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
            self.at = start
            self.fail(f"{what}, a whole number from {low} to {high}")
        return int(digits)

    def fail(self, expected: str) -> NoReturn:
        """Raise an error that says what was expected here, and what was found."""
        match = _TOKEN.match(self.text, self.at)
        found = repr(match.group()) if match else "the end of the template"
        error = Errors.SC101.format(
            number=self.number,
            template=self.text,
            position=self.at + 1,
            expected=expected,
            found=found,
        )
        raise SparseCRFError(error)

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at


def parse_template(text: str, number: int = 1) -> Template:
    """Parse one template.

    text: in the language above.
    number: its position in the list, from 1, for the error message.
    RAISES: SparseCRFError that names the template, the character and what was expected.
    """
    reader = _Reader(text, number)
    kind = _parse_kind(reader)
    if reader.at == len(text):
        return Template(kind, (), number)
    tests = [_parse_test(reader, [])]
    while reader.take_char("|"):
        tests.append(_parse_test(reader, tests))
    if reader.at < len(text):
        reader.fail("'|' or the end of the template")
    return Template(kind, tuple(sorted(tests)), number)


def parse_family(text: str, number: int) -> tuple[Template, ...]:
    """Parse one template, or a family of them. text, number, RAISES: as for `parse_template`."""
    reader = _Reader(text, number)
    kind = _parse_kind(reader)
    if reader.take(_NAME) != FAMILY:
        return (parse_template(text, number),)
    if not reader.take_char("("):
        reader.fail(f"'(', as in {FAMILY}(3, lower)")
    length = parse_length(reader)
    if not reader.take_char(","):
        reader.fail("',' and an attribute")
    read = _parse_attribute(reader)
    if not reader.take_char(")"):
        reader.fail("')'")
    variant = parse_variant(reader)
    if reader.at < len(text):
        reader.fail("'+', '++', '-' or the end of the template")
    tests = (tuple(TokenTest(i, *read) for i in window) for window in windows(length, variant))
    return tuple(Template(kind, of_window, number) for of_window in tests)


def _parse_kind(reader: _Reader) -> str:
    """Parse `kind ":"`."""
    kind = reader.take_char("ub*")
    if not kind:
        reader.fail("a kind, one of u, b, *")
    if not reader.take_char(":"):
        reader.fail("':'")
    return kind


def _parse_attribute(reader: _Reader) -> Read:
    """Parse an attribute with its arguments."""
    start = reader.at
    name = reader.take(_NAME)
    if name not in NAMES:
        reader.at = start
        reader.fail(f"an attribute, one of {', '.join(NAMES)}")
    return parse_read(reader, name)


def _parse_test(reader: _Reader, others: Sequence[TokenTest]) -> TokenTest:
    """Parse `read "[" [ "@" ] offset "]"`, a test that is not among others."""
    start = reader.at
    read = _parse_attribute(reader)
    if not reader.take_char("["):
        reader.fail("'[' and an offset, as in [0]" + _no_length(reader, read.name))
    absolute = bool(reader.take_char("@"))
    at = reader.at
    what = "a place" if absolute else "an offset"
    offset = reader.take_integer(-LIMIT, what)
    if absolute and offset == 0:
        reader.at = at
        reader.fail("a place, 1 for the first token or -1 for the last")
    if not reader.take_char("]"):
        reader.fail("']'")
    test = TokenTest(offset, *read, absolute)
    if test in others:
        reader.at = start
        reader.fail(f"a test other than {test}, which stands before")
    return test


def _no_length(reader: _Reader, name: str) -> str:
    """Explain to who gave a length to an attribute that takes none."""
    given = reader.text.startswith("(", reader.at)
    return f" ({name} takes no length)" if given else ""


def parse_templates(texts: Sequence[str]) -> tuple[Template, ...]:
    """Parse a list of templates.

    texts: in the language above.
    RAISES: SparseCRFError if there is none, one is malformed, two test the same, or a number is
        conjoined with anything but the label.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise SparseCRFError(Errors.SC102.format(value=texts))
    if not texts:
        raise SparseCRFError(Errors.SC103)
    families = [parse_family(text, i) for i, text in enumerate(texts, start=1)]
    templates = tuple(template for family in families for template in family)
    first: dict[tuple[str, str], Template] = {}
    for template in templates:
        _check_numbers(texts, template)
        for kind in template.kinds:
            same = first.setdefault((kind, template.key), template)
            if same is not template:
                _fail_repeated(texts, same.number, template.number, kind)
    return templates


def _check_numbers(texts: Sequence[str], template: Template) -> None:
    """Raise an error where a number is conjoined with anything but the label."""
    real = next((test.read for test in template.tests if test.read.is_real), None)
    if real is None or (template.kind == "u" and len(template.tests) == 1):
        return
    number = template.number
    error = Errors.SC390.format(number=number, template=texts[number - 1], read=real)
    raise SparseCRFError(error)


def _fail_repeated(texts: Sequence[str], first: int, second: int, kind: str) -> NoReturn:
    """Raise an error about two templates that test the same, by their numbers."""
    error = Errors.SC104.format(
        first=first,
        first_text=texts[first - 1],
        second=second,
        second_text=texts[second - 1],
        conjoined=WITH[kind],
    )
    raise SparseCRFError(error)
