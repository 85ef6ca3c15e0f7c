"""Components with spaCy's pipe life cycle."""

from spacy.util import registry

from ..registry import attach_to

attach_to(registry)
