"""Columns: attributes of tokens, and guessing them from the values in a file."""

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
"""Attributes that are arguments of `Doc`, and the names of these arguments."""

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
"""Column names that appear in the first lines of files."""
_MORE_HEADINGS = frozenset(["gold", "ne", "ner_label", "bio", "iob", "iob2"])  # next to WORD_NAMES

WORD_NAMES = frozenset(["word", "words", "token", "tokens", "text", "form", "orth"])
"""Names of columns of words, see `plain_name`."""
_NAMED = {
    **dict.fromkeys(WORD_NAMES, WORDS),
    **dict.fromkeys(["ner", "nertag", "nertags", "entity", "entities"], ENTITIES),
    "upos": "pos",
    "lemma": "lemma",
}
# If their values are labels of spans; else they may be tags.
_NAMED_SPANS = {"ne": ENTITIES, **dict.fromkeys(["chunk", "chunktag", "chunktags"], "spans:sc")}
_TAGS = frozenset(["pos", "postag", "postags", "xpos", "tag", "tags"])
_LABELS = _TAGS | {"ne", "label", "labels", "gold", "class", "target"}

DOCSTART = "-DOCSTART-"
"""The word of a line that is not a token, but begins a document."""

_SPAN_LABEL = re.compile(r"[BIELMSU]-(.+)")
# Chunk types of CoNLL-2000, which are stored in spans "sc"; other types are entities.
_CHUNKS = frozenset(
    ["NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"]
)


def parse_columns(text: str) -> tuple[str, ...]:
    """Read a list of columns, separated by commas.

    RAISES: SparseCRFError for an unknown column, an attribute that is named twice, or if there is
    no column of words.
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


def is_header(values: Sequence[str]) -> bool:
    """Return whether the values of a file's first line are names of columns."""
    names = [value.strip("# ").lower() for value in values]
    known = _HEADINGS if WORD_NAMES.isdisjoint(names) else _HEADINGS | _MORE_HEADINGS
    return len(names) > 1 and len({*names}) == len(names) and known.issuperset(names)


def why_not(column: str, value: str) -> str:
    """Return the reason why a text is not a valid value of a column, or ""."""
    if not value and column != IGNORED:
        return "it is empty; write _ where there is no value"
    fits, reason = _EXPECTED.get(column, (bool, ""))
    return "" if (value == UNSET and column != SPACE) or fits(value) else reason


def guess_columns(rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Guess the attributes of columns: the first has the words, another one the labels.

    The labels are the last column with labels of spans such as B-LOC: chunks if all types are chunk
    types, else entities. If there is no such column, the last one has tags. Others are ignored.
    rows: values of the columns, one row per token; at least one.
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


def named_columns(names: Sequence[str], rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the attributes of columns with names; values decide where names do not.

    rows: see `guess_columns`.
    """
    plain = [plain_name(name) for name in names]
    known = [_NAMED.get(name, "") for name in plain]
    word = known.index(WORDS) if WORDS in known else 0
    rows = [row for row in rows if len(row) == len(names)]
    for i, name in enumerate(plain):
        if name not in _NAMED_SPANS:
            continue
        values = {row[i] for row in rows}
        others = (_types(row[j] for row in rows) - _CHUNKS for j in range(len(plain)) if j != i)
        if _types(values) or (values <= {OUTSIDE, *MISSING} and not any(others)):
            known[i] = _NAMED_SPANS[name]
    has_labels = any(name in _TAGS for name in plain) or {*known} - {"", WORDS, "lemma"}
    order = [word, *(i for i in range(len(names)) if i != word)]
    rows = [[row[i] for i in order] for row in rows]
    taken = [IGNORED] * len(names)
    taken[word] = WORDS
    for j, guessed in enumerate(guess_columns(rows)[1:], start=1):
        i = order[j]
        if guessed == "tag" and all(row[j] == OUTSIDE for row in rows):
            guessed = ENTITIES
        elif guessed == "tag" and has_labels and plain[i] not in _LABELS:
            guessed = IGNORED
        own = known[i] or ("" if ENTITIES in known else guessed)
        taken[i] = own if own and own not in taken else IGNORED
    for i, name in enumerate(plain):
        if taken[i] == IGNORED and "tag" not in taken and name in _TAGS:
            taken[i] = "tag"
    return tuple(taken)


def is_label_name(name: str) -> bool:
    """Return whether a column's name is one of labels, such as ner_tags."""
    return plain_name(name) in _NAMED.keys() | _NAMED_SPANS.keys() | _LABELS


def plain_name(name: str) -> str:
    """Return a column's name in lower case, with letters and digits only."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _types(values: Iterable[str]) -> set[str]:
    """Return the types of spans that values encode; empty if a value is not a label of spans."""
    found = set(values)
    labels = found - {OUTSIDE, *MISSING}
    # Other tags may look like PER-B too, but not if some tokens have the outside label.
    if OUTSIDE in found:
        labels = {*map(standard_label, labels)}
    matches = [_SPAN_LABEL.fullmatch(value) for value in labels]
    return {match[1] for match in matches if match} if all(matches) else set()
