"""The name of a feature at a cell of the matrix of hashes: a token and a column where it occurs."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...crf.corpus.numbering import Hashes, Longs
from ...crf.corpus.readings import Readings
from ...crf.model.names import Outside, write_name, write_value
from .attributes.annotation import Annotation
from .attributes.attribute import (
    Attribute,
    PythonAttribute,
    TokenReader,
    Value,
    number_of,
    number_of_text,
)
from .featurizer import Featurizer, PlanFeaturizer
from .plan import seed_of


def hashed_number(value: Value | Outside) -> int:
    """Return the number by which a value is hashed."""
    if isinstance(value, Outside):
        from ...crf.kernels.hashing import edge_values

        return int(edge_values(abs(value.distance))[int(value.distance > 0), -1])
    # Templates have no empty texts, unlike patterns.
    return number_of_text(value) if isinstance(value, str) else number_of(value)


class TokenValues:
    """Values of attributes in Docs, by their numbers.

    The strings may be missing from the vocab, see `tokens`.
    """

    def __init__(self) -> None:
        self._texts: dict[Attribute, dict[int, Value]] = {}

    def add(
        self,
        read: PythonAttribute,
        reader: TokenReader,
        docs: Sequence[Doc],
        numbers: Hashes,
        token_of_word: Longs | None,
    ) -> None:
        """Store the values of an attribute in Docs.

        numbers: [N], numbers read at the N words; token_of_word: [N], None if all tokens are words.
        """
        texts = self._texts.setdefault(read, {0: ""})
        distinct, words = np.unique(numbers, return_index=True)
        tokens = words if token_of_word is None else token_of_word[words]
        pairs = zip(distinct.tolist(), tokens.tolist(), strict=True)
        if new := {number: token for number, token in pairs if number not in texts}:
            texts.update(reader.texts(docs, new))

    def know(self, reads: Iterable[Attribute], texts: Mapping[int, str]) -> None:
        """Store the values of attributes. texts: by their numbers."""
        self._texts.update((read, {0: "", **texts}) for read in reads)

    def knows(self, read: Attribute) -> bool:
        """Return whether values of an attribute are stored."""
        return read in self._texts

    def value(self, read: Attribute, number: int) -> Value:
        """Return the value of a number. RAISES: KeyError if the value is unknown."""
        return self._texts[read][number]


class CellNames:
    """Names features from the values read at their cells; each distinct value is written once.

    features: the featurizer; vocab: of the tokens; tokens: values of attributes read in Python.
    """

    def __init__(self, features: PlanFeaturizer, vocab: Vocab, tokens: TokenValues) -> None:
        table = features.words(vocab)
        plan = features.plan
        self._strings = vocab.strings
        self._view = features.seen
        # For each lexical column, its attribute, the reader, and the position among its values.
        self._lexical = [
            (read, reader, i)
            for read, reader, width in zip(plan.words, table.readers, table.widths, strict=True)
            for i in range(width)
        ]
        self._stored_attributes = plan.stored
        self._tokens = tokens
        self._texts: dict[int, dict[int, str | None]] = {}
        parsed = features.parsed if isinstance(features, Featurizer) else ()
        self._templates = {seed_of(template.key): template for template in parsed}

    def names(self, readings: Readings, p: int, at: Longs) -> list[str | None]:
        """Name the features of column p at tokens [n]; None if a value is unknown or changed."""
        parts = range(*readings.templates.conjunctions.part_ptr[p : p + 2])
        texts = [self._read(readings, p, k, at) for k in parts]
        form = self._form(readings, p)
        values = zip(*texts, strict=True) if texts else repeat((), len(at))
        return [None if None in of_cell else form % of_cell for of_cell in values]

    def _read(self, readings: Readings, p: int, k: int, tokens: Longs) -> list[str | None]:
        """Return the values, as in names, that part k of column p reads at tokens [n]."""
        conjunctions, n_lexical = readings.templates.conjunctions, readings.templates.n_lexical
        s = np.searchsorted(readings.offsets, tokens, side="right")
        begins = readings.offsets[s - 1]
        ends = readings.offsets[s]
        origin = (tokens, begins, ends)[conjunctions.part_anchors[k]]
        at = origin + conjunctions.part_offsets[k]
        outside = np.minimum(0, at - begins) + np.maximum(0, at - ends + 1)
        outside = np.clip(outside, -conjunctions.n_edges, conjunctions.n_edges)
        at = np.clip(at, begins, ends - 1)
        column = int(conjunctions.columns[k])
        if column < n_lexical:
            inside = readings.lexical[readings.words[at], column]
        else:
            inside = readings.annotations[at, column - n_lexical]
        edges = conjunctions.part_edges[k][(outside > 0).astype(np.int64), np.abs(outside) - 1]
        numbers = np.where(outside == 0, inside, edges).tolist()
        texts = self._texts.setdefault(column, {})
        is_text = column < n_lexical and self._lexical[column][0].has_only_texts
        for i, number in enumerate(numbers):
            if number not in texts:
                try:
                    if outside[i]:
                        value = self._outside(p, k - int(conjunctions.part_ptr[p]), int(outside[i]))
                    else:
                        value = self._inside(readings, int(at[i]), column)
                    same = hashed_number(value) == number
                    written = self._write(value, is_text)
                except KeyError:  # The vocab no longer has the string.
                    same, written = False, ""
                texts[number] = written if same else None
        return [texts[number] for number in numbers]

    def _form(self, readings: Readings, p: int) -> str:
        """Return the name of features in column p, with %s for values."""
        template = self._templates[int(readings.templates.conjunctions.seeds[p])]
        placed = (str(attribute).replace("%", "%%") for attribute in template.attributes)
        return write_name((text, "%s") for text in placed)

    def _write(self, value: Value | Outside, is_text: bool) -> str:
        return write_value(value, is_text)

    def _outside(self, p: int, part: int, distance: int) -> Value | Outside:
        """Return the value of a part of column p at a distance from the sequence."""
        return Outside(distance)

    def _inside(self, readings: Readings, at: int, column: int) -> Value:
        """Return the value of token `at` in a column. RAISES: KeyError if it is unknown."""
        n_lexical = readings.templates.n_lexical
        if column >= n_lexical:
            return self._stored(readings, at, column - n_lexical)
        read, reader, i = self._lexical[column]
        if self._tokens.knows(read):
            return self._tokens.value(read, int(readings.lexical[readings.words[at], column]))
        value = self._value(reader, self._view(self._strings[int(readings.annotations[at, 0])]))
        return value if isinstance(value, str | int) else value[i]

    def _value(self, reader: Any, text: str) -> Value | Sequence[str]:
        """Return the value of a word by a reader."""
        value: Value | Sequence[str] = reader(text)
        return value

    def _stored(self, readings: Readings, at: int, column: int) -> Value:
        """Return the value of token `at` in a column of annotations."""
        number = int(readings.annotations[at, column])
        read = self._stored_attributes[column]
        if isinstance(read, PythonAttribute):
            return number if read.is_number else self._tokens.value(read, number)
        is_number = isinstance(read, Annotation) and read.is_number
        return number if is_number else self._strings[number]
