"""Templates and a sentence shared by tests of features."""

from spacy_sparsecrf.features.attributes import (
    AFFIX,
    CLUSTER,
    EXPRESSION,
    NAMES,
    TOKEN,
    VALUE,
    WORD_LABELS,
)

SENTENCE = ["Ms.", "Straße", "sold", "12", "e-mails", "!"]
PATTERN = r'("[A-Za-z0-9é]+[.!]?")'
ARGUMENTS = dict.fromkeys(AFFIX, "(2)") | dict.fromkeys(EXPRESSION, PATTERN) | {"ngrams": "(2,3)"}
# Attributes that are read in Python, or from lists, have separate tests.
OTHERS = (CLUSTER, WORD_LABELS, *TOKEN, VALUE)
EVERY_ATTRIBUTE = [name + ARGUMENTS.get(name, "") for name in NAMES if name not in OTHERS]
EVERY_TEMPLATE = [
    "b:",
    *(f"u:{read}[{offset}]" for read in EVERY_ATTRIBUTE for offset in (-2, -1, 0, 1)),
    *(f"*:{read}[-1]|is_title[0]|lower[1]" for read in EVERY_ATTRIBUTE if read != "is_title"),
]
