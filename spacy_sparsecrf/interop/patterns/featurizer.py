"""Features by a pattern file of another program: Wapiti (Lavergne, Cappé & Yvon 2010) or CRF++.

The file is read in training. Its text is saved with the component: who loads a trained pipeline
needs no pattern file.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from spacy.attrs import ENT_IOB, SPACY  # type: ignore[import-not-found]
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokens import Doc

from ...corpus.readings import Readings
from ...errors import Errors, MissingExtraError, SparseCRFError
from ...features.attributes import Value
from ...features.featurizer import PlanFeaturizer
from ...features.parsing import LIMIT
from ...features.plan import TemplatePlan
from ...features.tokens import texts_of
from ...model.names import write_pattern_name
from ...registry import crf_features
from .macros import Dialect, Pattern, parse_patterns
from .naming import PatternCellNames
from .plan import PatternPlan, Shown, parse_columns, plan_patterns

if TYPE_CHECKING:
    from ...features.lexemes import LexemeTable, Reader

FURTHEST_CRFPP = 8  # tokens around the current one that its templates can name
_NUMBER_TEXTS = {SPACY: {0: "0", 1: "1"}, ENT_IOB: {0: "", 1: "1", 2: "2", 3: "3"}}
"""Texts of annotations whose values are numbers; ENT_IOB is missing where it is 0."""


class PatternFeaturizer(PlanFeaturizer):
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
        super().__init__([f"u:{read}[0]" for read in dict.fromkeys(self._reads)], start_label)
        self.path = path
        self.text = text
        self.columns = tuple(columns)
        self.learnt: dict[str, Any] = {}
        """What is to be saved with a trained pipeline, for JSON: the text that was read."""
        self._patterns: PatternPlan | None = None
        self._tables: dict[int, LexemeTable] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the text if it has been read, but no table of words."""
        settings = self.path, self.text, self.columns, self.start_label
        return type(self), settings, self.learnt or None

    def initialize(self, nlp: Language | None = None) -> None:
        """Read the patterns again. Raises SparseCRFError if they cannot be read."""
        if self.path is None:
            self._parse(self.text, "[components.NAME.features] text")
        else:
            self._parse(read_patterns(self.path), str(self.path))

    def restore(self, learnt: dict[str, Any]) -> None:
        """Take over what `learnt` was, whatever is at the path now.

        Raises SparseCRFError if these are not patterns.
        """
        if learnt:
            self._parse(str(learnt.get("patterns", "")), "`cfg` of the component, features")
        else:
            self.learnt, self._patterns = {}, None

    @property
    def patterns(self) -> PatternPlan:
        """The patterns as they are laid out, which are read now if they were not yet.

        Raises SparseCRFError if they cannot be read.
        """
        if self._patterns is None:
            self.initialize()
        assert self._patterns is not None
        return self._patterns

    @property
    def parsed(self) -> tuple[Pattern, ...]:
        """The patterns, in order; see `patterns`."""
        return self.patterns.patterns

    @property
    def constant_names(self) -> list[str]:
        """The names of the features that read nothing; see `patterns`."""
        return [write_pattern_name(p.literals, ()) for p in self.parsed if not p.macros]

    @property
    def names_of_cells(self) -> Callable[..., PatternCellNames]:
        """Return the class that names features, see `PlanFeaturizer`."""
        return partial(PatternCellNames, plan=self.patterns)

    @property
    def plan(self) -> TemplatePlan:
        """The attributes that the patterns read and hash; see `patterns`."""
        return self.patterns.plan

    def _parse(self, text: str, source: str) -> None:
        patterns = parse_patterns(text, self.dialect, len(self.columns), source)
        try:
            self._patterns = plan_patterns(patterns, self._reads, self.dialect, self.start_label)
        except ImportError as error:
            raise MissingExtraError(Errors.SC156.format(source=source)) from error
        self.learnt = {"patterns": text}
        self._table, self._token_readers, self._tables = None, None, {}

    def _make_readers(self, like_num: "Reader") -> list["Reader"]:
        """The functions of a word that the patterns read."""
        # Columns are not n-grams, the only readers that return several values.
        readers = cast("list[Callable[[str], Value]]", super()._make_readers(like_num))
        return [Shown(*both) for both in zip(readers, self.patterns.words, strict=True)]

    def _read(self, docs: Sequence[Doc], sequences: str) -> Readings:
        """Add what is seen of annotations, looking at each distinct one once."""
        from ...features.lexemes import LexemeTable  # imports numba

        readings = super()._read(docs, sequences)
        columns = [readings.annotations]
        for at, seen in self.patterns.seen.items():
            if at not in self._tables:
                self._tables[at] = LexemeTable([Shown(str, see) for see in seen])
            values = np.ascontiguousarray(readings.annotations[:, at])
            rows, known, _ = self._tables[at].find(values, self._strings(at, docs))
            columns.append(known[rows])
        return readings._replace(annotations=np.concatenate(columns, axis=1))

    def _strings(self, at: int, docs: Sequence[Doc]) -> StringStore | Mapping[int, str]:
        """The texts of an annotation's numbers, by its position among annotations."""
        annotations = self.plan.annotations
        if at >= len(annotations):
            return texts_of(self.plan.tokens[at - len(annotations)], docs)
        return _NUMBER_TEXTS.get(annotations[at], docs[0].vocab.strings)


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
    """Return the line before a comment, which begins anywhere, without trailing white space."""
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
