"""Features by a template file of CRF++."""

from ..registry import crf_features
from .macros import Dialect
from .patterns import PatternFeaturizer

FURTHEST = 8  # rows around the current one that its templates can name


def _content(line: str) -> str:
    """The line, unless it is a comment."""
    return "" if line.startswith("#") else line.rstrip("\r")


CRFPP = Dialect(
    name="CRF++",
    kinds={"U": "u", "B": "b"},
    commands="x",
    absolute=False,
    furthest=FURTHEST,
    before=tuple(f"_B-{i}" for i in range(1, FURTHEST + 1)),
    behind=tuple(f"_B+{i}" for i in range(1, FURTHEST + 1)),
    content=_content,
)


@crf_features("spacy_sparsecrf.CRFPPTemplates.v1")
class CRFPPTemplates(PatternFeaturizer):
    """The features of a template file of CRF++. The settings are those of `PatternFeaturizer`."""

    dialect = CRFPP
