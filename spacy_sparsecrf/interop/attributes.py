"""Columns: attributes of tokens, and guesses of them by the values of a file."""

import re
from collections.abc import Callable, Iterable, Sequence

from spacy.parts_of_speech import IDS  # type: ignore[import-not-found]
from spacy.tokens import Token

from ..errors import Errors, SparseCRFError
from .schemes import MISSING, OUTSIDE, standard_label

UNSET = "_"
IGNORED = "_"
WORDS = "orth"
SPACE = "space_after"
ENTITIES = "ner"
ARGUMENTS = {"tag": "tags", "pos": "pos", "morph": "morphs", "lemma": "lemmas"}
"""Attributes that a Doc takes when it is made, and its arguments."""

_SPANS, _CUSTOM = "spans:", "_."
_SHORT = {"chunk": "spans:sc"}
_KNOWN = (WORDS, *ARGUMENTS, ENTITIES, *_SHORT, SPACE, IGNORED)
_PARTS_OF_SPEECH = frozenset(name for name in IDS if name)
_FEATURES = re.compile(r"[^=|]+=[^=|]+(\|[^=|]+=[^=|]+)*")
_EXPECTED: dict[str, tuple[Callable[[str], object], str]] = {
    "pos": (
        _PARTS_OF_SPEECH.__contains__,
        f"a universal part of speech is expected: {', '.join(sorted(_PARTS_OF_SPEECH))}",
    ),
    "morph": (_FEATURES.fullmatch, "features as in Case=Nom|Number=Sing are expected"),
    SPACE: (("0", "1").__contains__, "1, a blank follows, or 0 is expected"),
}

_HEADINGS = frozenset(
    word
    for line in (
        "word words token tokens text form orth sentence lemma pos pos_tag pos_tags upos xpos",
        "tag tags label labels ner ner_tag ner_tags entity entities chunk chunk_tag chunk_tags",
    )
    for word in line.split()
)
"""Names of columns in the first lines of files."""

DOCSTART = "-DOCSTART-"
"""The word of a line that is no token, but begins a document."""

_SPAN_LABEL = re.compile(r"[BIELSU]-(.+)")
# Types of the chunks of CoNLL-2000, which are kept in spans "sc"; others are entities.
_CHUNKS = frozenset(
    ["NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"]
)


def parse_columns(text: str) -> tuple[str, ...]:
    """Read a list of columns, separated by commas.

    RAISES: SparseCRFError for one that is not known, words that are not named once, or an
    attribute that is named twice.
    """
    columns = tuple(_SHORT.get(name, name) for name in map(str.strip, text.split(",")))
    for name in columns:
        known = name in _KNOWN or span_key(name) or custom_name(name).isidentifier()
        if not known:
            raise SparseCRFError(Errors.SC614.format(name=name, known=", ".join(_KNOWN)))
    used = [name for name in columns if name != IGNORED]
    if WORDS not in used or len(set(used)) < len(used):
        raise SparseCRFError(Errors.SC622.format(columns=text))
    return columns


def span_key(column: str) -> str:
    """The key in `doc.spans` of a column of spans; "" for other columns."""
    return column.removeprefix(_SPANS) if column.startswith(_SPANS) else ""


def custom_name(column: str) -> str:
    """The name of an extension attribute of tokens; "" for other columns."""
    return column.removeprefix(_CUSTOM) if column.startswith(_CUSTOM) else ""


def register(columns: Sequence[str]) -> None:
    """Make extension attributes known to spaCy, without value where they are not set."""
    for name in filter(None, map(custom_name, columns)):
        if not Token.has_extension(name):
            Token.set_extension(name, default=None)


def is_header(values: Sequence[str]) -> bool:
    """Return whether the values of a file's first line name columns."""
    names = [value.strip("# ").lower() for value in values]
    return len(names) > 1 and len({*names}) == len(names) and _HEADINGS.issuperset(names)


def why_not(column: str, value: str) -> str:
    """Why a text cannot be the value of a column, or ""."""
    if not value:
        return "it is empty; write _ where there is no value"
    fits, reason = _EXPECTED.get(column, (bool, ""))
    return "" if (value == UNSET and column != SPACE) or fits(value) else reason


def guess_columns(rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Guess what columns are: the first is the words, and one more the label.

    That is the last one whose values tell spans, as B-LOC does: entities, or chunks if all types
    are; without such a one the last column, which is tags. Others are ignored.
    rows: values of the columns, one a token; at least one.
    """
    rows = list(rows)
    columns = list(zip(*[row for row in rows if row[0] != DOCSTART] or rows, strict=False))
    names = [WORDS, *[IGNORED] * (len(columns) - 1)]
    for i in range(len(columns) - 1, 0, -1):
        types = _types(columns[i])
        if types:
            names[i] = "spans:sc" if types <= _CHUNKS else ENTITIES
            return tuple(names)
    if len(names) > 1:
        names[-1] = "tag"
    return tuple(names)


def _types(values: Iterable[str]) -> set[str]:
    """The types of spans that values tell; none if one of them is no label of spans."""
    found = set(values)
    labels = found - {OUTSIDE, *MISSING}
    # Tags may look like PER-B too, but not where some tokens are outside.
    if OUTSIDE in found:
        labels = {*map(standard_label, labels)}
    matches = [_SPAN_LABEL.fullmatch(value) for value in labels]
    return {match[1] for match in matches if match} if all(matches) else set()
