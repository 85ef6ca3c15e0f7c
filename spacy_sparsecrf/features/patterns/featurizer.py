"""Features by a pattern file of another program: Wapiti (Lavergne, Cappé & Yvon 2010) or CRF++.

The file is read in training. Its text is saved with the component: who loads a trained pipeline
needs no pattern file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from spacy.language import Language
from spacy.tokens import Doc

from ...corpus.encoded import Observations
from ...corpus.readings import Readings
from ...errors import Errors, SparseCRFError
from ...registry import crf_features
from ..cursor import LIMIT
from .columns import ColumnFeaturizer, parse_columns
from .macros import Dialect, parse_patterns
from .plan import plan_patterns

FURTHEST_CRFPP = 8  # tokens around the current one that its templates can name


class PatternFeaturizer:
    """Hashes the features that the patterns of another program make of Docs.

    A feature is on where all columns that its pattern reads have a text: that program knows no
    empty columns, such as the tag of a token that was not tagged.

    path: of the pattern file. It is not read where a saved component brings the text along.
    text: the patterns themselves, instead of a path.
    columns: what the columns of the program's data are, from column 0: attributes as in templates,
        such as "orth", "tag", "suffix(2)" or "_.chunk".
    start_label: whether the first token of a sequence has the pair (start, y). In those programs
        it has none.
    Raises SparseCRFError for columns that are no attributes, and unless one of path and text is
    given; for a file that cannot be read, when features are first made.
    """

    dialect: ClassVar[Dialect]

    def __init__(
        self,
        path: str | Path | None = None,
        text: str = "",
        columns: Sequence[str] = ("orth",),
        start_label: bool = False,
    ) -> None:
        if (path is None) == (not text):
            raise SparseCRFError(Errors.SC155)
        self._reads = parse_columns(columns)
        self.path = path
        self.text = text
        self.columns = tuple(columns)
        self.start_label = start_label
        self._learnt: dict[str, Any] = {}
        self._featurizer: ColumnFeaturizer | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the text if it has been read, but no table of words."""
        settings = self.path, self.text, self.columns, self.start_label
        return type(self), settings, self._learnt or None

    def __setstate__(self, learnt: dict[str, Any]) -> None:
        self.restore(learnt)

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs; docs, sequences: as for `Featurizer`."""
        return self.featurizer(docs, sequences)

    def readings(self, docs: Sequence[Doc], sequences: str = "sents") -> list[Readings]:
        """Read the values that features are made of; docs, sequences: as for `Featurizer`."""
        return self.featurizer.readings(docs, sequences)

    def initialize(self, nlp: Language | None = None) -> None:
        """Read the patterns anew. Raises SparseCRFError if they cannot be read."""
        if self.path is None:
            self._parse(self.text, "[components.NAME.features] text")
        else:
            self._parse(read_patterns(self.path), str(self.path))

    @property
    def learnt(self) -> dict[str, Any]:
        """What is to be saved with a trained pipeline, for JSON: the text that was read."""
        return self._learnt

    def restore(self, learnt: dict[str, Any]) -> None:
        """Take over what `learnt` was, whatever is at the path now.

        Raises SparseCRFError if these are not patterns.
        """
        if learnt:
            self._parse(str(learnt.get("patterns", "")), "`cfg` of the component, features")
        else:
            self._learnt, self._featurizer = {}, None

    @property
    def featurizer(self) -> ColumnFeaturizer:
        """What reads and hashes columns by the patterns, which are read now if they were not yet.

        Raises SparseCRFError if they cannot be read.
        """
        if self._featurizer is None:
            self.initialize()
        assert self._featurizer is not None
        return self._featurizer

    def _parse(self, text: str, source: str) -> None:
        patterns = parse_patterns(text, self.dialect, len(self.columns), source)
        try:
            plan = plan_patterns(patterns, self._reads, self.dialect, self.start_label)
        except ImportError as error:
            raise SparseCRFError(Errors.SC156.format(source=source)) from error
        self._learnt = {"patterns": text}
        self._featurizer = ColumnFeaturizer(plan, self._reads, self.start_label)


def read_patterns(path: str | Path) -> str:
    """Read a pattern file, without a byte-order mark.

    RAISES: SparseCRFError if it cannot be read or is not UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SparseCRFError(Errors.SC159.format(path=path, reason=error.strerror)) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = Errors.SC160.format(path=path, line=line, byte=data[error.start])
        raise SparseCRFError(message) from error


def _before_comment(line: str) -> str:
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
    content=_before_comment,
)


@crf_features("spacy_sparsecrf.WapitiPatterns.v1")
class WapitiPatterns(PatternFeaturizer):
    """The features of a pattern file of Wapiti.

    All of its language is known: `%x`, `%t`, `%m` and their capitals, absolute positions, regular
    expressions. The settings are those of `PatternFeaturizer`.
    """

    dialect = WAPITI


def _unless_comment(line: str) -> str:
    """The line, unless it is a comment."""
    return "" if line.startswith("#") else line.rstrip("\r")


CRFPP = Dialect(
    name="CRF++",
    kinds={"U": "u", "B": "b"},
    commands="x",
    absolute=False,
    furthest=FURTHEST_CRFPP,
    before=tuple(f"_B-{i}" for i in range(1, FURTHEST_CRFPP + 1)),
    behind=tuple(f"_B+{i}" for i in range(1, FURTHEST_CRFPP + 1)),
    content=_unless_comment,
)


@crf_features("spacy_sparsecrf.CRFPPTemplates.v1")
class CRFPPTemplates(PatternFeaturizer):
    """The features of a template file of CRF++. The settings are those of `PatternFeaturizer`."""

    dialect = CRFPP
