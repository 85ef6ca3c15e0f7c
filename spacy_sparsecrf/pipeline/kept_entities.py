"""A pipe that keeps the entities of an earlier pipe for features of a later one."""

from spacy.language import Language
from spacy.tokens import Doc

NAME = "entities_to_spans"


@Language.factory(
    NAME, default_config={"key": "upstream"}, requires=["doc.ents"], assigns=["doc.spans"]
)
class EntitiesToSpans:
    """Moves `doc.ents` to the span group `key`, so that a later pipe can set other entities.

    Templates such as `span("upstream")[0]` read the group, also after the later pipe has run.
    """

    def __init__(self, nlp: Language, name: str, key: str) -> None:
        self.key = key

    def __call__(self, doc: Doc) -> Doc:
        """Move the entities of a Doc."""
        doc.spans[self.key] = list(doc.ents)
        doc.set_ents([], default="missing")
        return doc
