"""Types of spans in converted Docs: which annotators looked for, and messages about others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spacy.tokens import Doc

from ..errors import nearest
from ..pipeline.targets.spans import ANNOTATED
from ..pipeline.type_counts import SOURCE, TypeCounts
from .label_map import LabelMap


@dataclass
class LabelSurvey:
    """Counts the labels of converted Docs.

    source: name of the file, which is noted in the Docs; annotated: the only
    types that annotators looked for, which are noted too; empty: all.
    """

    source: str
    annotated: Sequence[str]
    labels: LabelMap
    types: TypeCounts = field(default_factory=TypeCounts)
    tags: TypeCounts = field(default_factory=lambda: TypeCounts(""))

    @classmethod
    def of(cls, source: Path, types: Iterable[str], labels: LabelMap) -> "LabelSurvey":
        """Create a survey. types: for `annotated`, names or several, separated by commas."""
        names = (name.strip() for name in ",".join(types).split(","))
        return cls(source.name, annotated=[*filter(None, names)], labels=labels)

    def add(self, doc: Doc) -> Doc:
        """Count the labels of a Doc. RETURNS: the Doc."""
        doc.user_data[SOURCE] = self.source
        if self.annotated:
            _limit(doc, self.annotated)
        spans = [span for group in (doc.ents, *doc.spans.values()) for span in group]
        if spans or doc.spans or doc.has_annotation("ENT_IOB") or ANNOTATED in doc.user_data:
            self.types.add(Counter(span.label_ for span in spans), doc.user_data)
        self.tags.add(Counter(token.tag_ for token in doc if token.tag), {ANNOTATED: ()})
        return doc

    def docs(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        """Count the labels of Docs. RAISES: SparseCRFError, at the end, for --map of no label."""
        yield from map(self.add, docs)
        self.labels.check()

    def messages(self) -> Iterator[str]:
        """Yield messages about labels that are probably mistakes."""
        yield from (*self.types.messages(), *self.tags.messages())
        for name in sorted({*self.annotated} - {*self.types.n}):
            near = nearest(name, self.types.n)
            yield f"--annotated {name}: no span has this type. {near}"


def _limit(doc: Doc, types: Sequence[str]) -> None:
    """Note the only types that annotators looked for in a Doc; other tokens become missing.

    A Doc of which tokens are missing already, because nobody looked at them, has no note.
    """
    is_complete = all(doc.to_array("ENT_IOB").tolist())
    if is_complete or (doc.spans and not doc.has_annotation("ENT_IOB")):
        doc.user_data[ANNOTATED] = list(types)
    doc.set_ents(list(doc.ents), default="missing")
