"""Features of pattern files of other programs: Wapiti (Lavergne, Cappé & Yvon 2010) and CRF++.

The file is read in training. Its text is saved with the component, so that a trained pipeline does
not need the file.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from spacy.attrs import ENT_IOB, SPACY  # type: ignore[import-not-found]
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...crf.corpus.readings import Readings
from ...crf.model.names import Outside, write_pattern_name, write_shown
from ...errors import Errors, MissingExtraError, SparseCRFError
from ...pipeline.features.attributes.attribute import Sources, Value, WordReader, text_of
from ...pipeline.features.cell_names import CellNames, TokenValues
from ...pipeline.features.cursor import LIMIT
from ...pipeline.features.featurizer import PlanFeaturizer
from ...pipeline.features.plan import TemplatePlan
from ...pipeline.features.tokens import Alone
from ...registry import crf_features
from ...schema import reported_as
from ..column_attributes import register
from ..text_files import read_lines
from .macros import Dialect, Pattern, parse_patterns
from .pattern_plan import PatternPlan, Shown, parse_columns, plan_patterns

FURTHEST_CRFPP = 8  # largest offset in a template of CRF++
_NUMBER_TEXTS = {SPACY: {0: "0", 1: "1"}, ENT_IOB: {0: "", 1: "1", 2: "2", 3: "3"}}
"""Texts of annotations whose values are numbers; ENT_IOB 0 means missing."""
_MOST_VIEWS = 1 << 20  # values of a column whose views are kept


class PatternCellNames(CellNames):
    """Names features of patterns. plan: of the patterns; for other arguments see `CellNames`."""

    def __init__(
        self, features: PlanFeaturizer, vocab: Vocab, tokens: TokenValues, *, plan: PatternPlan
    ) -> None:
        super().__init__(features, vocab, tokens)
        self._plan = plan
        seen = self._plan.seen.items()
        self._seen = [(column, see) for column, of_column in seen for see in of_column]

    def _form(self, readings: Readings, p: int) -> str:
        literals = [text.replace("%", "%%") for text in self._plan.patterns[p].literals]
        return write_pattern_name(literals, ["%s"] * (len(literals) - 1))

    def _write(self, value: Value | Outside, is_text: bool) -> str:
        assert isinstance(value, str)
        return write_shown(value)

    def _outside(self, p: int, part: int, distance: int) -> str:
        texts = self._plan.dialect.before if distance < 0 else self._plan.dialect.behind
        see = self._plan.patterns[p].macros[part].view.compile()
        return see(texts[abs(distance) - 1])

    def _inside(self, readings: Readings, at: int, column: int) -> str:
        return text_of(super()._inside(readings, at, column))

    def _value(self, reader: Any, text: str) -> Value:
        value: Value = reader.text(text)
        return value

    def _stored(self, readings: Readings, at: int, column: int) -> Value:
        plan = self._plan.plan
        stored = len(plan.annotations) + len(plan.token_columns)
        column, see = self._seen[column - stored]
        return see(text_of(super()._stored(readings, at, column)))


class PatternFeaturizer(PlanFeaturizer):
    """Hashes the features that the patterns of another program generate from Docs.

    A feature is active if all columns of its pattern have a text: these programs do not support
    empty columns, such as the tag of a token without a tag.

    path: of the pattern file. It is not read if a saved component has the text.
    text: the patterns, instead of a path.
    columns: attributes of the columns of the program's data, from column 0, as in templates:
        "orth", "tag", "suffix(2)" or "_.chunk".
        An extension attribute that is missing is registered with the default None.
    start_label: whether the first token of a sequence has features with the pair (start, y).
        Wapiti and CRF++ do not have them.
    RAISES: SparseCRFError if columns are not attributes, or not exactly one of path and text is
    given; for a file that cannot be read, on first use.
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
        register(columns)
        super().__init__([f"u:{read}[0]" for read in dict.fromkeys(self._reads)], start_label)
        self.path = path
        self.text = text
        self.columns = tuple(columns)
        self._patterns: PatternPlan | None = None
        self._views: dict[int, dict[int, list[Value]]] = {}
        self.learnt: dict[str, Any] = {}
        """The data to save with a trained pipeline as JSON: the text of the patterns."""

    # Models of other programs have features of all characters.
    seen = staticmethod(str)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the text if it has been read, but not the table of words."""
        settings = self.path, self.text, self.columns, self.start_label
        return type(self), settings, self.learnt or None

    def initialize(self, nlp: Language | None = None) -> None:
        """Read the patterns, again if they were read. RAISES: SparseCRFError if that fails."""
        if self.path is None:
            self._parse(self.text, "[components.NAME.features] text")
        else:
            with reported_as(Errors.SC159, (OSError,), path=self.path):
                text = "\n".join(read_lines(Path(self.path)))
            self._parse(text, str(self.path))

    def restore(self, learnt: dict[str, Any]) -> None:
        """Restore a saved `learnt`; the file at the path is not read.

        RAISES: SparseCRFError for invalid patterns.
        """
        if learnt:
            self._parse(str(learnt.get("patterns", "")), "`cfg` of the component, features")
        else:
            self.learnt = {}
            self._patterns = None

    @property
    def patterns(self) -> PatternPlan:
        """The plan of the patterns, which are read on first access.

        RAISES: SparseCRFError if they cannot be read.
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
        """The names of the features without macros, which are always active; see `patterns`."""
        return [write_pattern_name(p.literals, ()) for p in self.parsed if not p.macros]

    @property
    def names_of_cells(self) -> Callable[..., PatternCellNames]:
        """The factory of feature names; see `PlanFeaturizer`."""
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
        self._table, self._views = None, {}

    def _word_readers(self, sources: Sources) -> list[WordReader]:
        """Return the readers of word attributes, with the views of the patterns."""
        # Columns cannot be n-grams, the only readers that return several values.
        readers = cast("list[Callable[[str], Value]]", super()._word_readers(sources))
        return [Shown(read, see) for read, see in zip(readers, self.patterns.words, strict=True)]

    def _read(self, docs: Sequence[Doc], sequences: str, alone: Alone) -> Readings:
        """Add the views of annotations, computed once for each value."""
        readings = super()._read(docs, sequences, alone)
        columns = [readings.annotations]
        for at, seen in self.patterns.seen.items():
            numbers = readings.annotations[:, at].tolist()
            views_of = self._views.setdefault(at, {})
            if not views_of.keys() >= {*numbers}:
                if len(views_of) > _MOST_VIEWS:
                    views_of = self._views[at] = {}
                tokens = dict(zip(numbers, readings.division.tokens.tolist(), strict=True))
                strings = self._strings(at, docs, tokens)
                for number in {*numbers} - views_of.keys():
                    views_of[number] = [Shown(str, see)(strings[number]) for see in seen]
            columns.append(np.array([views_of[number] for number in numbers], np.uint64))
        return readings._replace(annotations=np.concatenate(columns, axis=1))

    def _strings(
        self, at: int, docs: Sequence[Doc], tokens: Mapping[int, int]
    ) -> StringStore | Mapping[int, str]:
        """Return the texts of an annotation's values.

        at: its position among annotations; tokens: for each value, a token that has it.
        """
        annotations = self.plan.annotations
        if at >= len(annotations):
            texts = self.token_readers[at - len(annotations)].texts(docs, tokens)
            return {**{number: text_of(value) for number, value in texts.items()}, 0: ""}
        return _NUMBER_TEXTS.get(annotations[at], docs[0].vocab.strings)


WAPITI = Dialect(
    name="Wapiti",
    kinds={"u": "u", "U": "u", "b": "b", "B": "b", "*": "*"},
    commands="xXtTmM",
    macro='%x[OFFSET,COLUMN] (x or X) or %t[OFFSET,COLUMN,"EXPRESSION"] (t, T, m or M), with '
    f"OFFSET from -{LIMIT} to {LIMIT}",
    absolute=True,
    furthest=LIMIT,
    before=("_x-1", "_x-2", "_x-3", "_x-4", "_x-#"),
    behind=("_x+1", "_x+2", "_x+3", "_x+4", "_x+#"),
    # A comment may begin anywhere.
    content=lambda line: line.partition("#")[0].rstrip(),
)


@crf_features("spacy_sparsecrf.WapitiPatterns.v1")
class WapitiPatterns(PatternFeaturizer):
    """The features of a pattern file of Wapiti.

    Supports its full language: `%x`, `%t`, `%m` and their capitals, absolute positions, regular
    expressions. For the settings, see `PatternFeaturizer`.
    """

    dialect = WAPITI


CRFPP = Dialect(
    name="CRF++",
    kinds={"U": "u", "B": "b"},
    commands="x",
    macro=f"%x[OFFSET,COLUMN], with OFFSET from -{FURTHEST_CRFPP} to {FURTHEST_CRFPP}",
    absolute=False,
    furthest=FURTHEST_CRFPP,
    before=tuple(f"_B-{i}" for i in range(1, FURTHEST_CRFPP + 1)),
    behind=tuple(f"_B+{i}" for i in range(1, FURTHEST_CRFPP + 1)),
    # A comment is a line.
    content=lambda line: "" if line.startswith("#") else line.rstrip("\r"),
)


@crf_features("spacy_sparsecrf.CRFPPTemplates.v1")
class CRFPPTemplates(PatternFeaturizer):
    """The features of a template file of CRF++. For the settings, see `PatternFeaturizer`."""

    dialect = CRFPP
