"""The template language.

    template := kind ":" [ placed ("|" placed)* ]
    kind     := "u" (with the label) | "b" (with the pair of labels) | "*" (both)
    placed   := read "[" offset "]" | read "[" "@" place "]"
    read     := an attribute, some with arguments in brackets (see `attributes.registry`)

An offset counts from the current token; place 1 is the first token of the sequence, 2 the second,
-1 the last. Blanks between these parts are ignored. A template without attributes has a feature at
every token: `u:` is a bias of each label, `b:` are plain transitions. Templates are as in Wapiti
(Lavergne et al. 2010).

A family of templates that read windows of tokens is written

    family   := kind ":" "ngrm" "(" length "," read ")" [ "-" | "+" | "++" ]

and expands to all of them. Families are the feature sets of Lavergne et al. (2010), section 5.1.1,
for odd n: `n-grm` reads the windows of 0, 1, 3, .., n tokens centred on the current token, `n-grm-`
only the longest window; `n-grm+` adds the windows of 2, 4, .., n - 1 tokens, the two nearly centred
windows of each length; `n-grm++` has every window inside the longest. The position of a window is
part of the template: the same tokens at another distance are another feature.

`@NAME` expands to the templates of a set (see `defaults.TEMPLATE_SETS`), without templates that the
list already contains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import Errors, SparseCRFError
from .attributes.attribute import Attribute, RealAttribute
from .attributes.table import parse_attribute
from .cursor import LIMIT, Cursor
from .defaults import is_set, templates_of_set

WITH = {"u": "the label", "b": "the label pair"}
FAMILY = "ngrm"
LONGEST_WINDOW = 99  # tokens: `++` has n (n + 1) / 2 windows


@dataclass(frozen=True, order=True)
class PlacedAttribute:
    """An attribute of a token at an offset.

    offset: in tokens, from the current token; if absolute, the place of the token.
    absolute: whether the offset is a place in the sequence, 1 for the first token, -1 the last.
    """

    offset: int
    read: Attribute
    absolute: bool = False

    def __str__(self) -> str:
        return f"{self.read}[{'@' * self.absolute}{self.offset}]"


@dataclass(frozen=True)
class Conjunction:
    """A conjunction with the label, the label pair, or both. kind: "u", "b" or "*"."""

    kind: str

    @property
    def key(self) -> str:
        """Text that hashes depend on."""
        raise NotImplementedError

    @property
    def kinds(self) -> str:
        """Conjunction with the label, the label pair, or both: "u", "b" or "ub"."""
        return "ub" if self.kind == "*" else self.kind


@dataclass(frozen=True)
class Template(Conjunction):
    """A conjunction of attributes, also conjoined with the label, the label pair, or both.

    attributes: sorted, so that the order in which they were written does not matter; may be empty.
    number: position of its text in the list, from 1.
    """

    attributes: tuple[PlacedAttribute, ...]
    number: int = field(default=1, compare=False)

    @property
    def key(self) -> str:
        """Canonical text of the attributes; hashes depend on it, not on kind or position."""
        return "|".join(map(str, self.attributes))

    @property
    def is_real(self) -> bool:
        """Return whether the template is real-valued and not hashed."""
        return any(isinstance(attribute.read, RealAttribute) for attribute in self.attributes)

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


def parse_templates(texts: Sequence[str]) -> tuple[Template, ...]:
    """Parse a list of templates.

    texts: in the language above.
    RAISES: SparseCRFError for an empty list, malformed or repeated templates, unknown sets, or real
        values that are conjoined with anything but the label.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise SparseCRFError(Errors.SC102.format(value=texts))
    if not texts:
        raise SparseCRFError(Errors.SC103)
    families = [parse_family(text, i) for i, text in enumerate(texts, start=1)]
    templates = _united(texts, families)
    earlier: dict[tuple[str, str], Template] = {}
    for template in templates:
        _check_numbers(texts, template)
        for kind in template.kinds:
            same = earlier.setdefault((kind, template.key), template)
            if same is not template:
                message = Errors.SC104.format(
                    first=same.number,
                    first_text=texts[same.number - 1],
                    second=template.number,
                    second_text=texts[template.number - 1],
                    conjoined=WITH[kind],
                )
                raise SparseCRFError(message)
    return tuple(templates)


def _united(texts: Sequence[str], families: Sequence[tuple[Template, ...]]) -> list[Template]:
    """Join the templates of a list. A set adds no template that the list already contains."""
    pairs = list(zip(map(is_set, texts), families, strict=True))
    keys = {key for of_set, family in pairs if not of_set for t in family for key in _keys_of(t)}
    templates: list[Template] = []
    for of_set, family in pairs:
        for template in family:
            if of_set and keys.intersection(_keys_of(template)):
                continue
            keys.update(_keys_of(template))
            templates.append(template)
    return templates


def _keys_of(template: Template) -> list[tuple[str, str]]:
    """Return the key of a template with each of its kinds, u and b."""
    return [(kind, template.key) for kind in template.kinds]


def without_sets(texts: Sequence[str], templates: Sequence[Template]) -> list[str]:
    """Expand the sets of a list. texts: the list; templates: its parsed templates."""
    written: list[str] = []
    for number, text in enumerate(texts, start=1):
        written += [str(t) for t in templates if t.number == number] if is_set(text) else [text]
    return written


def _check_numbers(texts: Sequence[str], template: Template) -> None:
    """Raise SparseCRFError if a real value is conjoined with anything but the label."""
    if template.is_real and not (template.kind == "u" and len(template.attributes) == 1):
        reads = (attribute.read for attribute in template.attributes)
        real = next(read for read in reads if isinstance(read, RealAttribute))
        number = template.number
        message = Errors.SC390.format(number=number, template=texts[number - 1], read=real)
        raise SparseCRFError(message)


def parse_template(text: str, number: int = 1) -> Template:
    """Parse one template.

    text: in the language above.
    number: its position in the list, from 1, for the error message.
    RAISES: SparseCRFError that names the template, the character and what was expected.
    """
    cursor = Cursor(text, number)
    kind = _parse_kind(cursor)
    if cursor.is_at_end():
        return Template(kind, (), number)
    attributes = [_parse_attribute(cursor, [])]
    while cursor.take_char("|"):
        attributes.append(_parse_attribute(cursor, attributes))
    if not cursor.is_at_end():
        cursor.fail("'|' or the end of the template")
    return Template(kind, tuple(sorted(attributes)), number)


def parse_family(text: str, number: int) -> tuple[Template, ...]:
    """Parse one template, a family or a set. text, number, RAISES: as for `parse_template`."""
    if is_set(text):
        return tuple(parse_template(member, number) for member in templates_of_set(text, number))
    cursor = Cursor(text, number)
    kind = _parse_kind(cursor)
    if cursor.take_word() != FAMILY:
        return (parse_template(text, number),)
    cursor.expect("(", f", as in {FAMILY}(3, lower)")
    length = _parse_length(cursor)
    cursor.expect(",", " and an attribute")
    read = parse_attribute(cursor)
    cursor.expect(")")
    variant = cursor.take_char("+-")
    variant += cursor.take_char("+") if variant == "+" else ""
    if not cursor.is_at_end():
        cursor.fail("'+', '++', '-' or the end of the template")
    attributes = (
        tuple(PlacedAttribute(i, read) for i in window) for window in windows(length, variant)
    )
    return tuple(Template(kind, of_window, number) for of_window in attributes)


def windows(n: int, variant: str = "") -> list[range]:
    """Return the offsets of the tokens of each window of a family.

    n: odd, length of the longest window; variant: "", "-", "+" or "++".
    """
    half = n // 2
    # The most that a window may reach farther on one side of the current token than on the other.
    most = {"": 0, "-": 0, "+": 1, "++": n}[variant]
    ranges = [
        range(begin, begin + length)
        for length in range(1, n + 1)
        for begin in range(-half, half + 2 - length)
        if abs(2 * begin + length - 1) <= most
    ]
    return ranges[-1:] if variant == "-" else [range(0), *ranges]


def _parse_kind(cursor: Cursor) -> str:
    """Parse `kind ":"`."""
    kind = cursor.take_char("ub*")
    if not kind:
        cursor.fail("a kind, one of u, b, *, as in 'u:lower[0]'")
    cursor.expect(":")
    return kind


def _parse_attribute(cursor: Cursor, others: Sequence[PlacedAttribute]) -> PlacedAttribute:
    """Parse `read "[" [ "@" ] offset "]"`, or fail if it is among others."""
    start = cursor.at
    read = parse_attribute(cursor)
    no_length = f" ({read.name} takes no length)" if cursor.text.startswith("(", cursor.at) else ""
    cursor.expect("[", f" and an offset, as in [0]{no_length}")
    absolute = bool(cursor.take_char("@"))
    at = cursor.at
    what = "a place" if absolute else "an offset"
    offset = cursor.take_integer(-LIMIT, what)
    if absolute and offset == 0:
        cursor.fail("a place, 1 for the first token or -1 for the last", at=at)
    cursor.expect("]")
    attribute = PlacedAttribute(offset, read, absolute)
    if attribute in others:
        cursor.fail(f"an attribute other than {attribute}, which stands before", at=start)
    return attribute


def _parse_length(cursor: Cursor) -> int:
    """Parse `n`, the tokens of the longest window."""
    start = cursor.at
    what = f"an odd length, a whole number from 1 to {LONGEST_WINDOW}"
    n = cursor.take_integer(1, what)
    if n % 2 == 0 or n > LONGEST_WINDOW:
        cursor.fail(what, at=start)
    return n
