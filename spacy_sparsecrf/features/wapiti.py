"""Features by a pattern file of Wapiti (Lavergne, Cappé & Yvon 2010)."""

from ..registry import crf_features
from .macros import Dialect
from .patterns import PatternFeaturizer
from .templates import LIMIT


def _content(line: str) -> str:
    """What stands before a comment, which begins anywhere, without white space at its end."""
    return line.partition("#")[0].rstrip()


WAPITI = Dialect(
    name="Wapiti",
    kinds={"u": "u", "U": "u", "b": "b", "B": "b", "*": "*"},
    commands="xXtTmM",
    absolute=True,
    furthest=LIMIT,
    before=("_x-1", "_x-2", "_x-3", "_x-4", "_x-#"),
    behind=("_x+1", "_x+2", "_x+3", "_x+4", "_x+#"),
    content=_content,
)


@crf_features("spacy_sparsecrf.WapitiPatterns.v1")
class WapitiPatterns(PatternFeaturizer):
    """The features of a pattern file of Wapiti.

    All of its language is known: `%x`, `%t`, `%m` and their capitals, absolute positions, regular
    expressions. The settings are those of `PatternFeaturizer`.
    """

    dialect = WAPITI
