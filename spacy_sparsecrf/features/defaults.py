"""The default templates."""


def _of_word(longest: int) -> tuple[str, ...]:
    """Plain transitions, label biases, and the word, its edges and its looks.

    longest: of the edges, in characters.
    """
    looks = ["shape", "is_title", "is_upper", "has_upper", "has_digit", "has_hyphen", "is_punct"]
    return (
        *("b:", "u:", "u:orth[0]", "u:lower[0]"),
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
"""After Suzuki & Isozaki (2008) as told by Lavergne et al. (2010), section 5.1.2; the shapes of
neighbours and the white space are ours."""

ENTITY_TEMPLATES: tuple[str, ...] = (
    *_of_word(5),
    # Words and looks in a window of five, and words beyond.
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
"""For named entities; they need no annotation of earlier pipes."""

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
"""For chunks: the window of CRF++'s example, with some looks of the word; reads `tag`, which
tests nothing where no earlier pipe sets it."""
