"""Templates and a sentence that the feature tests share."""

from collections.abc import Sequence

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.attributes import AFFIX, CLUSTER, EXPRESSION, NAMES, TOKEN, VALUE
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.templates import parse_templates

SENTENCE = ["Ms.", "Straße", "sold", "12", "e-mails", "!"]
PATTERN = r'("[A-Za-z0-9é]+[.!]?")'
ARGUMENTS = dict.fromkeys(AFFIX, "(2)") | dict.fromkeys(EXPRESSION, PATTERN) | {"ngrams": "(2,3)"}
# What is read in Python, or from lists, has tests of its own.
OTHERS = (CLUSTER, *TOKEN, VALUE)
EVERY_TEST = [name + ARGUMENTS.get(name, "") for name in NAMES if name not in OTHERS]
EVERY_TEMPLATE = [
    "b:",
    *(f"u:{test}[{offset}]" for test in EVERY_TEST for offset in (-2, -1, 0, 1)),
    *(f"*:{test}[-1]|is_title[0]|lower[1]" for test in EVERY_TEST if test != "is_title"),
]


def column(vocab: Vocab, words: Sequence[str], template: str) -> list[int]:
    """Hashes of one template at the words of one Doc."""
    hashes = Featurizer([template])([Doc(vocab, words=list(words))]).hashes
    assert hashes.shape == (len(words), 1)
    return hashes[:, 0].tolist()


def check_malformed(text: str, position: int, expected: str, found: str = "") -> None:
    """A template is refused with what was expected at a character of it, and what was found."""
    with pytest.raises(SparseCRFError) as caught:
        parse_templates(["b:", text])
    message = str(caught.value)
    start = (
        f"[SC101] Template 2 of [components.NAME.features] templates, {text!r}, is malformed "
        f"at character {position}: expected {expected}"
    )
    assert message.startswith(start)
    assert message.endswith(f"{found}.")
