"""Components that know spaCy's pipe life cycle."""

from spacy.util import registry

from ..registry import hang_on

hang_on(registry)
