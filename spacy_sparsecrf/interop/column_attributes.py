"""Columns: attributes of tokens."""

import re
from collections.abc import Callable, Sequence

from spacy.parts_of_speech import IDS  # type: ignore[import-not-found]
from spacy.tokens import Token

from ..errors import refused_option
from .schemes import is_label

UNSET = "_"
IGNORED = "_"
WORDS = "orth"
SPACE = "space_after"
ENTITIES = "ner"
SENTENCE = "sentence"
ARGUMENTS = {"tag": "tags", "pos": "pos", "morph": "morphs", "lemma": "lemmas"}
"""Attributes that are arguments of `Doc`, and the names of these arguments."""

_SPANS, _CUSTOM = "spans:", "_."
_SHORT = {"chunk": "spans:sc"}
_KNOWN = (WORDS, *ARGUMENTS, ENTITIES, *_SHORT, SPACE, SENTENCE, IGNORED)
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

_WORD_NAMES = frozenset(["word", "words", "token", "tokens", "text", "form", "orth"])
_OTHER_NAMES = (
    "sentence lemma pos pos_tag pos_tags upos xpos tag tags label labels gold bio iob iob2 "
    "ner ner_tag ner_tags ner_label ne entity entities chunk chunk_tag chunk_tags"
)
_HEADINGS = _WORD_NAMES.union(_OTHER_NAMES.split())
"""Column names that appear in the first lines of files."""

DOCSTART = "-DOCSTART-"
"""The word of a line that is not a token, but begins a document."""


def parse_columns(text: str) -> tuple[str, ...]:
    """Read a list of columns, separated by commas.

    RAISES: SparseCRFError for an unknown column, an attribute that is named twice, or if there is
    no column of words.
    """
    columns = tuple(_SHORT.get(name, name) for name in map(str.strip, text.split(",")))
    for name in columns:
        if not (name in _KNOWN or span_key(name) or custom_name(name).isidentifier()):
            names = ", ".join(_KNOWN)
            raise refused_option("columns", name, f"choose {names}, spans:KEY or _.NAME")
    used = [name for name in columns if name != IGNORED]
    if WORDS not in used or len(set(used)) < len(used):
        raise refused_option("columns", text, "name orth, and each attribute once")
    return columns


def span_key(column: str) -> str:
    """Return the key in `doc.spans` of a column of spans; "" for other columns."""
    return column.removeprefix(_SPANS) if column.startswith(_SPANS) else ""


def custom_name(column: str) -> str:
    """Return the name of a column's extension attribute of tokens; "" for other columns."""
    return column.removeprefix(_CUSTOM) if column.startswith(_CUSTOM) else ""


def register(columns: Sequence[str]) -> None:
    """Register the extension attributes of columns with spaCy, with default None."""
    for name in filter(None, map(custom_name, columns)):
        if not Token.has_extension(name):
            Token.set_extension(name, default=None)


def of_spans(columns: Sequence[str]) -> list[str]:
    """Return the columns with labels of entities or other spans."""
    return [name for name in columns if name == ENTITIES or span_key(name)]


def is_header(values: Sequence[str], has_labels: bool = True) -> bool:
    """Return whether the values of a file's first line are names of columns.

    One of them names the words. has_labels: whether tokens have a label of spans, which a header
    has not; otherwise all values must be known names.
    """
    names = {value.strip("# ").lower() for value in values}
    if len(names) < max(2, len(values)) or not any(map(names_words, values)):
        return False
    return not any(map(is_label, values)) if has_labels else names <= _HEADINGS


def names_words(value: str) -> bool:
    """Return whether a value is a name of a column of words."""
    return value.strip("# ").lower() in _WORD_NAMES


def why_not(column: str, value: str) -> str:
    """Return the reason why a text is not a valid value of a column, or ""."""
    if not value and column not in (IGNORED, SENTENCE):
        return "it is empty; write _ where there is no value"
    fits, reason = _EXPECTED.get(column, (bool, ""))
    return "" if (value == UNSET and column != SPACE) or fits(value) else reason
