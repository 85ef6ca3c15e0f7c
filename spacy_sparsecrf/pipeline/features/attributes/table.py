"""All attributes, and how templates write them.

read   := name                                    (most attributes)
| name "(" length ")"                     prefix suffix
| name "(" text ")"                       regex match span phrase
| name "(" low "," high [ "," text ] ")"  ngrams
| name "(" text [ "," bits ] ")"          cluster
| name [ "(" bins ")" ]                   vector
| "value" "(" "_" "." name ")"            a numeric extension attribute
| "_" "." name                            an extension attribute
text   := see `cursor`
"""

from ....errors import nearest
from ..cursor import Cursor
from .annotation import Annotation
from .attribute import Attribute
from .clusters import Cluster, LabelsOfWord
from .document import DocLower, DocNeighbour, DocRun, DocTitle
from .expressions import Expression
from .extensions import Extension, Real
from .ngrams import Ngrams
from .phrases import Phrase
from .span_labels import Span
from .stage import EntityElsewhere, LabelElsewhere, PredictedLabel
from .word_vectors import BinnedVector
from .words import Affix, Word

_CLASSES: tuple[type[Attribute], ...] = (
    *(Word, Affix, Expression, Ngrams, Cluster, LabelsOfWord),
    *(Annotation, Extension, Span, Phrase, BinnedVector),
    *(PredictedLabel, LabelElsewhere, EntityElsewhere),
    *(DocLower, DocTitle, DocNeighbour, DocRun),
    Real,
)
ATTRIBUTES: dict[str, type[Attribute]] = {name: of for of in _CLASSES for name in of.NAMES}
"""The class of each attribute by name, in the order in which messages list them."""


def parse_attribute(cursor: Cursor) -> Attribute:
    """Parse an attribute with its arguments, or fail."""
    start = cursor.at
    name = cursor.take_word()
    if name not in ATTRIBUTES:
        near = nearest(name, ATTRIBUTES).rstrip()
        expected = f"an attribute, one of {', '.join(ATTRIBUTES)}"
        cursor.fail(f"{expected} ({near})" if near else expected, at=start)
    return ATTRIBUTES[name].parse(cursor, name)
