"""Names of tests by their cell among hashes: at which token, in which column they were on.

A name tells the values that were read. The numbers of attributes that are read in Python stand for
values that only their Docs knew: `TokenValues` remembers them.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.vocab import Vocab

from ..corpus.readings import Readings
from ..model.names import Outside, write_name, write_pattern_name
from .arguments import Read
from .attributes import EXTENSION, NUMBERS, PHRASE, VECTOR, Ngrams, Value
from .featurizer import Featurizer
from .patterns.columns import ColumnFeaturizer, Shown, texts_of
from .patterns.views import text_of
from .plan import seed_of


class TokenValues:
    """Remembers the values that attributes have had in Docs, by their numbers.

    Strings need not be known to a vocab, see `tokens`.
    """

    def __init__(self) -> None:
        self._known: dict[Read, dict[int, Value]] = {}

    def add(self, read: Read, docs: Sequence[Doc], numbers: NDArray[np.uint64]) -> None:
        """Remember the values that an attribute has in Docs.

        numbers: [N] of their N tokens, as they were read.
        """
        if read.name == VECTOR:
            return
        known = self._known.setdefault(read, {0: ""})
        if read.name == PHRASE:
            known.update((int(get_string_id(sign)), sign) for sign in "BILU")
        elif read.name == EXTENSION:
            # Each distinct value is read once more: getters may be slow.
            distinct, first = np.unique(numbers, return_index=True)
            ends = [*accumulate(map(len, docs))]
            for number, t in zip(distinct.tolist(), first.tolist(), strict=True):
                if number not in known:
                    known[number] = _value(_token(docs, ends, t), read.argument)
        else:
            known.update(texts_of(read, docs))

    def value(self, read: Read, number: int) -> Value:
        """The value that a number stands for. RAISES: KeyError if none is known."""
        return number if read.name == VECTOR else self._known[read][number]


def _token(docs: Sequence[Doc], ends: Sequence[int], t: int) -> Token:
    """Token t of all the tokens of Docs; ends: how many there are up to the end of each."""
    i = int(np.searchsorted(ends, t, side="right"))
    return docs[i][t - ends[i]]


def _value(token: Token, name: str) -> Value:
    value = token._.get(name)
    return value if isinstance(value, str) else int(value or 0)


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

    features: made the hashes; readings: what was read; vocab: of the tokens; tokens: what was read
    in Python.
    """

    def __init__(
        self, features: Featurizer, readings: Readings, vocab: Vocab, tokens: TokenValues
    ) -> None:
        self._readings = readings
        self._strings = vocab.strings
        self._readers = features.readers(vocab)
        self._annotations = features.annotations
        self._token_columns = features.token_columns
        self._tokens = tokens
        self._templates = {seed_of(template.key): template for template in features.parsed}
        self._words: dict[int, Sequence[Value | None]] = {}

    def name(self, t: int, p: int) -> str:
        """Name the test p of token t. RAISES: KeyError for a value that is not known."""
        seed = int(self._readings.templates.tests.seeds[p])
        texts = map(str, self._templates[seed].tests)
        return write_name(zip(texts, map(self._value, self._places(t, p)), strict=True))

    def _places(self, t: int, p: int) -> list[Place]:
        """The tokens that the parts of the test p of token t read."""
        tests, offsets = self._readings.templates.tests, self._readings.offsets
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
        n_lexical = self._readings.templates.n_lexical
        if column >= n_lexical:
            return self._stored(at, column - n_lexical)
        word = int(self._readings.annotations[at, 0])
        if word not in self._words:
            self._words[word] = [*_row(self._readers, self._strings[word])]
        value = self._words[word][column]
        if value is None:
            raise KeyError(column)
        return value

    def _stored(self, at: int, column: int) -> Value:
        """The value that token `at` has in a column of annotations."""
        number = int(self._readings.annotations[at, column])
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
        self, features: ColumnFeaturizer, readings: Readings, vocab: Vocab, tokens: TokenValues
    ) -> None:
        super().__init__(features, readings, vocab, tokens)
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
    features: Featurizer, readings: Readings, vocab: Vocab, tokens: TokenValues
) -> CellNames:
    """What names the tests of readings; the arguments are those of `CellNames`."""
    if isinstance(features, ColumnFeaturizer):
        return PatternCellNames(features, readings, vocab, tokens)
    return CellNames(features, readings, vocab, tokens)
