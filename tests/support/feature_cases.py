"""Templates, a sentence, and a check of saved pipelines, for tests of features."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path

import spacy
from spacy.language import Language

from spacy_sparsecrf.pipeline.features.attributes.annotation import Annotation
from spacy_sparsecrf.pipeline.features.attributes.attribute import WordAttribute
from spacy_sparsecrf.pipeline.features.attributes.expressions import Expression
from spacy_sparsecrf.pipeline.features.attributes.table import ATTRIBUTES
from spacy_sparsecrf.pipeline.features.attributes.words import Affix

SENTENCE = ["Ms.", "Straße", "sold", "12", "e-mails", "!"]
PATTERN = r'("[A-Za-z0-9é]+[.!]?")'
ARGUMENTS = {
    **dict.fromkeys(Affix.NAMES, "(2)"),
    **dict.fromkeys(Expression.NAMES, PATTERN),
    "ngrams": "(2,3)",
}
# Attributes that are read in Python, or from lists, have separate tests.
EVERY_ATTRIBUTE = [
    name + ARGUMENTS.get(name, "")
    for name, family in ATTRIBUTES.items()
    if issubclass(family, WordAttribute | Annotation) and name not in ("cluster", "word_labels")
]
EVERY_TEMPLATE = [
    "b:",
    *(f"u:{read}[{offset}]" for read in EVERY_ATTRIBUTE for offset in (-2, -1, 0, 1)),
    *(f"*:{read}[-1]|is_title[0]|lower[1]" for read in EVERY_ATTRIBUTE if read != "is_title"),
]


def check_saved(
    nlp: Language, source: Path, read: Callable[[Language], object], files: Sequence[str]
) -> None:
    """Check that a saved pipeline needs no source file, and saves the same files of a component."""
    expected, first, again = read(nlp), source.with_name("pipeline"), source.with_name("again")
    nlp.to_disk(first)
    as_bytes = nlp.to_bytes()
    source.unlink()
    loaded = spacy.load(first)
    from_bytes = type(nlp).from_config(nlp.config).from_bytes(as_bytes)
    for other in (loaded, from_bytes, copy.deepcopy(nlp)):
        assert read(other) == expected
    loaded.to_disk(again)
    for name in files:
        saved = [(folder / "sparse_crf" / name).read_bytes() for folder in (first, again)]
        assert saved[0] == saved[1]
