"""The template sets: the default templates of each factory, and what configs add to them."""

import re

from ...errors import Errors, SparseCRFError, nearest


def _of_word(longest: int) -> tuple[str, ...]:
    """Return templates of plain transitions, label biases, and the word, its affixes and its form.

    longest: length of the longest affixes, in characters.
    """
    looks = ["shape", "is_title", "is_upper", "has_upper", "has_digit", "has_hyphen", "is_punct"]
    return (
        *("b:", "u:", "u:orth[0]", "u:lower[0]"),
        # The first and the last word of a line.
        *("u:break[0]", "u:break[1]"),
        *(f"u:{edge}({n})[0]" for edge in ("prefix", "suffix") for n in range(1, longest + 1)),
        *(f"u:{look}[0]" for look in looks),
    )


DEFAULT_TEMPLATES: tuple[str, ...] = (
    *_of_word(4),
    "u:like_num[0]",
    *("u:shape[-1]", "u:shape[1]", "u:suffix(3)[-1]", "u:suffix(3)[1]"),
    "u:lower[-1]|lower[1]",
    # White space, which distinguishes hyphens from dashes, and parts of words from words.
    *("u:glued[-1]", "u:glued[0]", "u:glued[-1]|glued[0]"),
    *("u:glued[-1]|lower[0]", "u:glued[0]|lower[0]", "u:glued[0]|suffix(3)[0]"),
    # Words and pairs of words in a window of five.
    *(f"u:lower[{i}]" for i in (-2, -1, 1, 2)),
    *(f"u:lower[{i}]|lower[{i + 1}]" for i in (-2, -1, 0, 1)),
)
"""After Suzuki & Isozaki (2008), as described by Lavergne et al. (2010), section 5.1.2, with added
shapes of neighbours and white space."""

ENTITY_TEMPLATES: tuple[str, ...] = (
    *_of_word(5),
    # Words, affixes and shapes in a window of five, and words beyond it.
    *("u:lower[-3]", "u:lower[3]", "u:orth[-1]", "u:orth[1]"),
    *(f"u:{read}[{i}]" for read in ("lower", "shape") for i in (-2, -1, 1, 2)),
    *(f"u:{edge}[{i}]" for edge in ("suffix(2)", "suffix(3)", "prefix(3)") for i in (-1, 1)),
    # Pairs and triples.
    *("u:lower[-1]|lower[0]", "u:lower[0]|lower[1]"),
    *("u:lower[-2]|lower[-1]", "u:lower[1]|lower[2]", "u:lower[-1]|lower[1]"),
    *("u:short_shape[-1]|short_shape[0]", "u:short_shape[0]|short_shape[1]"),
    "u:short_shape[-1]|short_shape[0]|short_shape[1]",
    *("u:lower[-1]|short_shape[0]", "u:short_shape[0]|lower[1]"),
    "u:lower[-1]|short_shape[0]|lower[1]",
    *("u:lower[-2]|lower[-1]|short_shape[0]", "u:short_shape[0]|lower[1]|lower[2]"),
    *("u:is_title[-1]|is_title[0]", "u:is_title[0]|is_title[1]"),
    *(f"u:is_title[{i}]|is_title[{i + 1}]|is_title[{i + 2}]" for i in (-2, -1, 0)),
)
"""For named entities; no annotation of earlier pipes is required."""

_STRING_TEMPLATES: tuple[str, ...] = (
    *ENTITY_TEMPLATES,
    # Six tokens from either end: `break` is missing inside a line, so that only edges have values.
    *("u:break[-6]", "u:break[6]"),
    *("u:break[-6]|short_shape[0]", "u:break[6]|short_shape[0]"),
    *(f"u:short_shape[{i}]" for i in (-4, -3, 3, 4)),
    *("u:lower[-4]", "u:lower[4]"),
)
"""For strings that consist of fields: addresses, names, products, citations."""

CHUNK_TEMPLATES: tuple[str, ...] = (
    *("b:", "u:"),
    *(f"u:lower[{i}]" for i in (-2, -1, 0, 1, 2)),
    *("u:suffix(2)[0]", "u:suffix(3)[0]", "u:shape[0]"),
    *("u:lower[-1]|lower[0]", "u:lower[0]|lower[1]"),
    *(f"u:tag[{i}]" for i in (-2, -1, 0, 1, 2)),
    *(f"u:tag[{i}]|tag[{i + 1}]" for i in (-2, -1, 0, 1)),
    *(f"u:tag[{i}]|tag[{i + 1}]|tag[{i + 2}]" for i in (-2, -1, 0)),
    *("u:lower[0]|tag[0]", "u:lower[-1]|tag[0]", "u:tag[0]|lower[1]"),
)
"""For chunks: the window of CRF++'s example, with suffixes and shape of the word. Reads `tag`;
if no earlier pipe sets `tag`, templates that read it give no features."""

_LARGE_TAG_TEMPLATES: tuple[str, ...] = (
    *DEFAULT_TEMPLATES,
    *("u:suffix(5)[0]", "u:prefix(5)[0]", "u:suffix(2)[-1]", "u:suffix(2)[1]"),
    *("u:suffix(1)[-1]", "u:suffix(1)[1]", "u:shape[-1]|shape[0]", "u:shape[0]|shape[1]"),
    *("u:lower[-1]|suffix(3)[0]", "u:suffix(3)[0]|lower[1]"),
    *("u:suffix(3)[-1]|suffix(3)[0]", "u:suffix(3)[0]|suffix(3)[1]"),
    *("u:suffix(2)[0]|shape[0]", "u:suffix(3)[0]|shape[0]", "u:lower[0]|shape[0]"),
    *("u:lower[-3]", "u:lower[3]", "u:lower[-1]|lower[0]|lower[1]"),
)

_STACKING_TEMPLATES: tuple[str, ...] = (
    *(f"u:first[{i}]" for i in (-2, -1, 0, 1, 2)),
    *("u:first[-1]|first[0]", "u:first[0]|first[1]", "u:first[-1]|first[1]"),
    *("u:first[-1]|first[0]|first[1]", "u:first[-2]|first[-1]", "u:first[1]|first[2]"),
    *(f"u:doc_majority[{i}]" for i in (-1, 0, 1)),
    *("u:doc_majority[0]|first[0]", "u:doc_majority[-1]|doc_majority[0]"),
    "u:doc_majority[0]|doc_majority[1]",
)

_WORD_LABELS = (
    *(f"u:word_labels[{i}]" for i in (-1, 0, 1)),
    *("u:word_labels[-1]|word_labels[0]", "u:word_labels[0]|word_labels[1]"),
    "u:word_labels[-1]|word_labels[0]|word_labels[1]",
)

_DOCUMENT = ("u:doc_run[0]",)

# "{4}" is the first 4 bits of the word class, "{}" all of them.
_CLASS_WINDOW = tuple(f"u:{{{n}}}[{i}]" for n in (4, 6, 10, "") for i in (-2, -1, 0, 1, 2))

_TAG_CLASSES: tuple[str, ...] = (
    *_CLASS_WINDOW,
    *("u:{10}[-1]|{10}[0]", "u:{10}[0]|{10}[1]", "u:{10}[-1]|{10}[1]"),
    *("u:{6}[-1]|{6}[0]", "u:{6}[0]|{6}[1]", "u:{}[-1]|lower[0]", "u:lower[0]|{}[1]"),
    *("u:suffix(3)[0]|{10}[-1]", "u:suffix(3)[0]|{10}[1]", "u:shape[0]|{10}[0]"),
    *("u:suffix(3)[0]|{6}[0]", "u:{10}[-2]|{10}[-1]", "u:{10}[1]|{10}[2]"),
)

_ENTITY_CLASSES: tuple[str, ...] = (
    *_CLASS_WINDOW,
    *(f"u:{{{n}}}[{i}]|{{{n}}}[{i + 1}]" for n in (6, 10, "") for i in (-1, 0)),
    *(
        template
        for n in (6, 10, "")
        for template in (
            f"u:short_shape[0]|{{{n}}}[0]",
            f"u:{{{n}}}[-1]|short_shape[0]",
            f"u:short_shape[0]|{{{n}}}[1]",
        )
    ),
    "u:{10}[-1]|{10}[0]|{10}[1]",
)

# Numbered classes have no bits.
_NUMBERED_CLASSES = tuple(template for template in _ENTITY_CLASSES if "{}" in template)

_MARKS: tuple[str, ...] = (
    *(f"u:{{}}[{i}]" for i in (-1, 0, 1)),
    *("u:{}[-1]|{}[0]", "u:{}[0]|{}[1]", "u:{}[0]|short_shape[0]", "u:lower[-1]|{}[0]"),
)
"""For phrases or spans that contain a token."""

TEMPLATE_SETS: dict[str, tuple[str, ...]] = {
    "tags": DEFAULT_TEMPLATES,
    "tags_large": _LARGE_TAG_TEMPLATES,
    "entities": ENTITY_TEMPLATES,
    "strings": _STRING_TEMPLATES,
    "chunks": CHUNK_TEMPLATES,
    "stacking": _STACKING_TEMPLATES,
    "word_labels": _WORD_LABELS,
    "document": _DOCUMENT,
    "tag_clusters": _TAG_CLASSES,
    "clusters": _ENTITY_CLASSES,
    "classes": _NUMBERED_CLASSES,
    "phrases": _MARKS,
    "spans": _MARKS,
}
"""The templates of each set. Slots such as {4} are replaced by the named attribute of the set."""

_READ = {
    "tag_clusters": "cluster",
    "clusters": "cluster",
    "classes": "cluster",
    "phrases": "phrase",
    "spans": "span",
}
"""The named attribute that a set reads."""

_SET = re.compile(r"@(\w+)(?:\((\w+)\))?")
_SLOT = re.compile(r"\{(\d*)\}")


def is_set(text: str) -> bool:
    """Return whether an entry of a list of templates names a set."""
    return text.lstrip().startswith("@")


def templates_of_set(text: str, number: int) -> tuple[str, ...]:
    """Return the templates of a set.

    text: "@SET", or "@SET(NAME)" for a set of an attribute with a name; number: its position in
        the list of templates, from 1.
    RAISES: SparseCRFError for an unknown set, or if the name is missing or not expected.
    """
    match = _SET.fullmatch("".join(text.split()))
    of_set, name = match.groups("") if match else ("", "")
    if of_set not in TEMPLATE_SETS or (of_set in _READ) != bool(name):
        names = [f"@{name}(NAME)" if name in _READ else f"@{name}" for name in TEMPLATE_SETS]
        message = Errors.SC106.format(
            number=number, template=text, nearest=nearest(text, names), known=", ".join(names)
        )
        raise SparseCRFError(message)

    def read(bits: re.Match[str]) -> str:
        return f"{_READ[of_set]}({name},{bits[1]})" if bits[1] else f"{_READ[of_set]}({name})"

    return tuple(_SLOT.sub(read, template) for template in TEMPLATE_SETS[of_set])
