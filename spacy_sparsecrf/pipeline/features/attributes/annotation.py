"""Annotations: attributes that spaCy stores with tokens, read by `Doc.to_array`."""

from dataclasses import dataclass

from spacy.attrs import ENT_IOB, IDS, IS_SPACE, SPACY  # type: ignore[import-not-found]

from .attribute import Attribute

_STORED = ("norm", "tag", "pos", "morph", "lemma", "dep", "ent_type", "ent_iob")
ANNOTATIONS: dict[str, int] = {
    **{name: IDS[name.upper()] for name in _STORED},
    **{"glued": SPACY, "break": IS_SPACE},
}
"""The ids of spaCy's attributes.

`glued` is true if no white space separates a word from the next word of its Doc. `break` is the
number of line breaks between a word and the word before, at most 2.
"""
_NUMBERS = frozenset([SPACY, IS_SPACE, ENT_IOB])
_EVERYWHERE = frozenset(["norm", "glued", "break"])


@dataclass(frozen=True)
class Annotation(Attribute):
    """An annotation, in `ANNOTATIONS`."""

    NAMES = tuple(ANNOTATIONS)

    @property
    def stored(self) -> tuple[int, ...]:
        """The id of spaCy's attribute."""
        return (ANNOTATIONS[self.name],)

    @property
    def is_number(self) -> bool:
        """Whether values are numbers; other annotations have the ids of strings."""
        return ANNOTATIONS[self.name] in _NUMBERS

    @property
    def is_watched(self) -> bool:
        """See `PythonAttribute.is_watched`; some annotations every Doc has."""
        return self.name not in _EVERYWHERE
