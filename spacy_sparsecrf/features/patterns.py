"""Features by a pattern file of another program.

The file is read in training. Its text is saved with the component: who loads a trained pipeline
needs no pattern file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus import Observations
from ..errors import Errors, SparseCRFError
from ..readings import Readings
from .column_reader import ColumnReader
from .columns import parse_columns
from .macros import Dialect, parse_patterns
from .pattern_file import read_patterns
from .pattern_plan import plan_patterns


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
        self._reader: ColumnReader | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the text if it has been read, but no table of words."""
        settings = self.path, self.text, self.columns, self.start_label
        return type(self), settings, self._learnt or None

    def __setstate__(self, learnt: dict[str, Any]) -> None:
        self.restore(learnt)

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs; docs, sequences: as for `Featurizer`."""
        return self.reader(docs, sequences)

    def readings(self, docs: Sequence[Doc], sequences: str = "sents") -> list[Readings]:
        """Read the values that features are made of; docs, sequences: as for `Featurizer`."""
        return self.reader.readings(docs, sequences)

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
            self._learnt, self._reader = {}, None

    @property
    def reader(self) -> ColumnReader:
        """What reads and hashes columns by the patterns, which are read now if they were not yet.

        Raises SparseCRFError if they cannot be read.
        """
        if self._reader is None:
            self.initialize()
        assert self._reader is not None
        return self._reader

    def _parse(self, text: str, source: str) -> None:
        patterns = parse_patterns(text, self.dialect, len(self.columns), source)
        try:
            plan = plan_patterns(patterns, self._reads, self.dialect, self.start_label)
        except ImportError as error:
            raise SparseCRFError(Errors.SC156.format(source=source)) from error
        self._learnt = {"patterns": text}
        self._reader = ColumnReader(plan, self._reads, self.start_label)
