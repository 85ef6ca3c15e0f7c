"""New names of labels, given as OLD=NEW."""

from collections.abc import Iterable

from spacy.tokens import Doc, Span

from ..errors import nearest, refused_option


class LabelMap:
    """Returns the new name of a label; "" if it is to be left out.

    pairs: OLD=NEW, of which only NEW has no =; OLD= leaves a label out.
    RAISES: SparseCRFError for a pair without a label, and two of one.
    """

    def __init__(self, pairs: Iterable[str] = ()) -> None:
        self._new: dict[str, str] = {}
        self._seen: dict[str, None] = {}
        for pair in pairs:
            old, _, new = (part.strip() for part in pair.rpartition("="))
            if not old or old in self._new:
                raise refused_option("map", pair, "give OLD=NEW, or OLD=, once for each label")
            self._new[old] = new

    def __call__(self, label: str) -> str:
        """Return the new name of a label."""
        self._seen[label] = None
        return self._new.get(label, label)

    def rename(self, doc: Doc) -> Doc:
        """Rename the entities, spans and tags of a Doc. RETURNS: the Doc."""
        if self._new:
            missing = [doc[token.i : token.i + 1] for token in doc if not token.ent_iob]
            doc.set_ents(self._renamed(doc.ents), missing=missing)
            for key, group in doc.spans.items():
                doc.spans[key] = self._renamed(group)
            for token in doc:
                token.tag_ = token.tag_ and self(token.tag_)
        return doc

    def _renamed(self, spans: Iterable[Span]) -> list[Span]:
        named = [(span, self(span.label_)) for span in spans]
        return [Span(x.doc, x.start, x.end, label=new) for x, new in named if new]

    def check(self) -> None:
        """Refuse names that no label had. RAISES: SparseCRFError."""
        for old in self._new.keys() - self._seen:
            known = ", ".join([*self._seen][:20])
            near = nearest(old, self._seen)
            raise refused_option("map", old, f"no label has this name. {near}Labels are: {known}")
