"""Names of tests by where they were on: at which token, in which column of hashes."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from spacy.vocab import Vocab

from ..names import Outside, write_name, write_pattern_name
from ..readings import Readings
from .attributes import NUMBERS, Value
from .column_reader import ColumnReader, Shown
from .featurizer import Featurizer
from .ngrams import Ngrams
from .plan import seed_of
from .token_values import TokenValues
from .views import text_of


class Place(NamedTuple):
    """A token that a part k of a test reads. at: its number; outside: how far it is from the
    sequence (< 0 before its first, > 0 behind its last token), or 0; column: that is read.
    """

    k: int
    at: int
    outside: int
    column: int


class CellNames:
    """Names tests of templates.

    features: made the hashes; part: what was read; vocab: of the tokens; tokens: what was read in
    Python.
    """

    def __init__(
        self, features: Featurizer, part: Readings, vocab: Vocab, tokens: TokenValues
    ) -> None:
        self._part = part
        self._strings = vocab.strings
        self._readers = features.readers(vocab)
        self._annotations = features.annotations
        self._token_columns = features.token_columns
        self._tokens = tokens
        self._templates = {seed_of(template.key): template for template in features.parsed}
        self._words: dict[int, Sequence[Value | None]] = {}

    def name(self, t: int, p: int) -> str:
        """Name the test p of token t. RAISES: KeyError for a value that is not known."""
        seed = int(self._part.templates.tests.seeds[p])
        texts = map(str, self._templates[seed].tests)
        return write_name(zip(texts, map(self._value, self._places(t, p)), strict=True))

    def _places(self, t: int, p: int) -> list[Place]:
        """The tokens that the parts of the test p of token t read."""
        tests, offsets = self._part.templates.tests, self._part.offsets
        s = int(np.searchsorted(offsets, t, side="right"))
        first, last = int(offsets[s - 1]), int(offsets[s])
        found = []
        for k in range(int(tests.part_ptr[p]), int(tests.part_ptr[p + 1])):
            at = int(tests.part_offsets[k]) + (t, first, last)[int(tests.part_anchors[k])]
            outside = min(0, at - first) + max(0, at - last + 1)
            outside = max(-tests.n_edges, min(tests.n_edges, outside))
            found.append(Place(k, at, outside, int(tests.columns[k])))
        return found

    def _value(self, place: Place) -> Value | Outside:
        return Outside(place.outside) if place.outside else self._inside(place.at, place.column)

    def _inside(self, at: int, column: int) -> Value:
        """The value that token `at` has in a column."""
        n_lexical = self._part.templates.n_lexical
        if column >= n_lexical:
            return self._stored(at, column - n_lexical)
        word = int(self._part.annotations[at, 0])
        if word not in self._words:
            self._words[word] = [*_row(self._readers, self._strings[word])]
        value = self._words[word][column]
        if value is None:
            raise KeyError(column)
        return value

    def _stored(self, at: int, column: int) -> Value:
        """The value that token `at` has in a column of annotations."""
        number = int(self._part.annotations[at, column])
        if column >= len(self._annotations):
            read = self._token_columns[column - len(self._annotations)]
            return self._tokens.value(read, number)
        return number if self._annotations[column] in NUMBERS else self._strings[number]


def _row(readers: Sequence[Callable[[str], object]], text: str) -> list[Value | None]:
    """The values of a word in the columns of `Readings.lexical`, None where there is none."""
    row: list[Value | None] = []
    for reader in readers:
        if isinstance(reader, Ngrams):
            found = reader(text)
            row += [*found, *[None] * (reader.width - len(found))]
            continue
        value = reader.text(text) if isinstance(reader, Shown) else reader(text)
        assert isinstance(value, str | int | None)
        row.append(value)
    return row


class PatternCellNames(CellNames):
    """Names features of patterns; the arguments are those of `CellNames`."""

    def __init__(
        self, features: ColumnReader, part: Readings, vocab: Vocab, tokens: TokenValues
    ) -> None:
        super().__init__(features, part, vocab, tokens)
        self._plan = features.patterns
        seen = self._plan.seen.items()
        self._seen = [(column, see) for column, of_column in seen for see in of_column]

    def name(self, t: int, p: int) -> str:
        """Name the feature p of token t. RAISES: KeyError for a value that is not known."""
        pattern = self._plan.patterns[p]
        values = []
        for test, place in zip(pattern.tests, self._places(t, p), strict=True):
            if place.outside:
                dialect = self._plan.dialect
                texts = dialect.before if place.outside < 0 else dialect.behind
                values.append(test.view.compile()(texts[abs(place.outside) - 1]))
            else:
                values.append(text_of(self._inside(place.at, place.column)))
        return write_pattern_name(pattern.literals, values)

    def _stored(self, at: int, column: int) -> Value:
        seen = column - len(self._annotations) - len(self._token_columns)
        if seen < 0:
            return super()._stored(at, column)
        column, see = self._seen[seen]
        return see(text_of(super()._stored(at, column)))


def cell_names(
    features: Featurizer, part: Readings, vocab: Vocab, tokens: TokenValues
) -> CellNames:
    """What names the tests of a part; the arguments are those of `CellNames`."""
    if isinstance(features, ColumnReader):
        return PatternCellNames(features, part, vocab, tokens)
    return CellNames(features, part, vocab, tokens)
