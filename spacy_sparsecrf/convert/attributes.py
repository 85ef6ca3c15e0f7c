"""What columns can be: attributes of tokens."""

from collections.abc import Sequence

from spacy.parts_of_speech import IDS  # type: ignore[import-not-found]
from spacy.tokens import Token

from ..errors import Errors, SparseCRFError

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
_REASONS = {
    "": "it is empty; write _ where there is no value",
    "pos": f"a universal part of speech is expected: {', '.join(sorted(_PARTS_OF_SPEECH))}",
    "morph": "features as in Case=Nom|Number=Sing are expected",
    SPACE: "1, a blank follows, or 0 is expected",
}


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


def why_not(column: str, value: str) -> str:
    """Why a text cannot be the value of a column, or ""."""
    if not value:
        return _REASONS[""]
    if value == UNSET and column != SPACE:
        return ""
    if column == "pos" and value not in _PARTS_OF_SPEECH:
        return _REASONS[column]
    if column == "morph" and not all(map(_is_feature, value.split("|"))):
        return _REASONS[column]
    if column == SPACE and value not in ("0", "1"):
        return _REASONS[column]
    return ""


def _is_feature(text: str) -> bool:
    field, _, value = text.partition("=")
    return bool(field and value)
