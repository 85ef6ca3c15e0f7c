"""Names of features, made from the attribute values that were hashed.

A feature is named at a cell of the matrix of hashes: a token and a column where it occurs. For
attributes that are read in Python, only the Docs map numbers to values: `TokenValues` stores this
mapping.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.encoded import NO_VALUES, Observations
from ..corpus.numbering import Hashes, Longs
from ..corpus.readings import Readings, hash_values
from ..kernels.layout import Tokens
from ..model.names import ALWAYS, Outside, read_feature, write_name, write_value
from ..model.names import Value as NamedValue
from .attributes import words as attributes
from .attributes.document import STEPS, TEXTS
from .attributes.words import WORD_LABELS, Ngrams, Value
from .classes import ClassReader
from .cursor import Read
from .featurizer import Featurizer, PlanFeaturizer, by_vocab
from .plan import seed_of, width_of
from .tokens import Alone, number_of, texts_of, value_of
from .word_labels import WordLabelTable, WordTokens


def hash_names(names: Sequence[str]) -> Hashes:
    """Return the hashes of features from their names, the same as at a token: [n] uint64.

    RAISES: ValueError for a malformed name.
    """
    features = [read_feature(name) for name in names]
    seeds = np.array([seed_of(feature.key) for feature in features], dtype=np.uint64)
    starts = np.cumsum([0, *(len(feature.values) for feature in features)], dtype=np.int64)
    values = [_number(value) for feature in features for value in feature.values]
    return hash_values(seeds, starts, np.array(values, dtype=np.uint64))


def _number(value: NamedValue) -> int:
    """Return the number by which a value is hashed."""
    if isinstance(value, Outside):
        from ..kernels.hashing import edge_values

        return int(edge_values(abs(value.distance))[int(value.distance > 0), -1])
    # Templates have no empty texts, unlike patterns.
    return value_of(value) if isinstance(value, str) else number_of(value)


def templates_by_kind(features: Any) -> dict[str, frozenset[str]] | None:
    """Return the keys (see `NamedFeature`) of templates or patterns conjoined with the label (u)
    and with the label pair (b); None for custom featurizers.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    if not isinstance(features, PlanFeaturizer):
        return None
    return {
        kind: frozenset(each.key for each in features.parsed if kind in each.kinds) for kind in "ub"
    }


def constant_features(features: Any) -> frozenset[int]:
    """Return the hashes of the features without attributes, which occur at every token.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    names = features.constant_names if isinstance(features, PlanFeaturizer) else [ALWAYS]
    return frozenset(hash_names(names).tolist())


class TokenValues:
    """Values of attributes in Docs, by their numbers.

    The strings may be missing from the vocab, see `tokens`.
    """

    def __init__(self) -> None:
        self._known: dict[Read, dict[int, Value]] = {}

    def add(self, read: Read, docs: Sequence[Doc], numbers: Hashes, kept: Longs | None) -> None:
        """Store the values of an attribute in Docs.

        numbers: [N], numbers read at the N words; kept: [N], the token of each word, None for all.
        """
        if read.name in (attributes.VECTOR, attributes.PHRASE, *attributes.STACKED):
            return
        known = self._known.setdefault(read, {0: ""})
        if read.name == attributes.EXTENSION:
            # Read each distinct value only once more, because getters may be slow.
            distinct, first = np.unique(numbers, return_index=True)
            pairs = zip(distinct.tolist(), first.tolist(), strict=True)
            if new := {number: t for number, t in pairs if number not in known}:
                tokens = [token for doc in docs for token in doc]
                for number, t in new.items():
                    value = tokens[t if kept is None else kept[t]]._.get(read.argument)
                    known[number] = value if isinstance(value, str) else int(value or 0)
        elif read.name in STEPS:
            known.update((n, docs[0].vocab.strings[n]) for n in {*numbers.tolist()} - known.keys())
        else:
            known.update(TEXTS if read.name in attributes.DOCUMENT else texts_of(read, docs))

    def know(self, reads: Iterable[Read], texts: Mapping[int, str]) -> None:
        """Store the values of attributes. texts: by their numbers."""
        self._known.update((read, {0: "", **texts}) for read in reads)

    def knows(self, read: Read) -> bool:
        """Return whether values of an attribute are stored."""
        return read in self._known

    def value(self, read: Read, number: int) -> Value:
        """Return the value of a number. RAISES: KeyError if the value is unknown."""
        return number if read.name == attributes.VECTOR else self._known[read][number]


class CellNames:
    """Names features from the values read at their cells; each distinct value is written once.

    features: the featurizer; vocab: of the tokens; tokens: values of attributes read in Python.
    """

    def __init__(self, features: PlanFeaturizer, vocab: Vocab, tokens: TokenValues) -> None:
        self._strings, self._view = vocab.strings, features.seen
        self._readers = [
            (reader, i)
            for reader in features.words(vocab).readers
            for i in range(reader.width if isinstance(reader, Ngrams) else 1)
        ]
        self._annotations = features.plan.annotations
        self._token_columns = features.plan.token_columns
        self._tokens = tokens
        self._of_words = _column_of_word_labels(features)
        self._texts: dict[int, dict[int, str | None]] = {}
        parsed = features.parsed if isinstance(features, Featurizer) else ()
        self._templates = {seed_of(template.key): template for template in parsed}

    def names(self, readings: Readings, p: int, at: Longs) -> list[str | None]:
        """Name the features of column p at tokens [n]; None if a value is unknown or changed."""
        parts = range(*readings.templates.conjunctions.part_ptr[p : p + 2])
        texts = [self._read(readings, p, k, at) for k in parts]
        form = self._form(readings, p)
        values = zip(*texts, strict=True) if texts else repeat((), len(at))
        return [None if None in own else form % own for own in values]

    def _read(self, readings: Readings, p: int, k: int, tokens: Longs) -> list[str | None]:
        """Return the values, as in names, that part k of column p reads at tokens [n]."""
        conjunctions, n_lexical = readings.templates.conjunctions, readings.templates.n_lexical
        s = np.searchsorted(readings.offsets, tokens, side="right")
        first, last = readings.offsets[s - 1], readings.offsets[s]
        at = (tokens, first, last)[conjunctions.part_anchors[k]] + conjunctions.part_offsets[k]
        outside = np.minimum(0, at - first) + np.maximum(0, at - last + 1)
        outside = np.clip(outside, -conjunctions.n_edges, conjunctions.n_edges)
        at = np.clip(at, first, last - 1)
        column = int(conjunctions.columns[k])
        if column < n_lexical:
            inside = readings.lexical[readings.words[at], column]
        else:
            inside = readings.annotations[at, column - n_lexical]
        edges = conjunctions.part_edges[k][(outside > 0).astype(np.int64), np.abs(outside) - 1]
        numbers = np.where(outside == 0, inside, edges).tolist()
        known = self._texts.setdefault(column, {})
        is_class = column < n_lexical and isinstance(self._readers[column][0], ClassReader)
        for i, number in enumerate(numbers):
            if number not in known:
                try:
                    if outside[i]:
                        value = self._outside(p, k - int(conjunctions.part_ptr[p]), int(outside[i]))
                    else:
                        value = self._inside(readings, int(at[i]), column)
                    same = _number(value) == number
                    written = write_value(value, True) if is_class else self._write(value)
                except KeyError:  # The vocab no longer has the string.
                    same, written = False, ""
                known[number] = written if same else None
        return [known[number] for number in numbers]

    def _form(self, readings: Readings, p: int) -> str:
        """Return the name of features in column p, with %s for values."""
        template = self._templates[int(readings.templates.conjunctions.seeds[p])]
        placed = (str(each).replace("%", "%%") for each in template.attributes)
        return write_name((attribute, "%s") for attribute in placed)

    def _write(self, value: Value | Outside) -> str:
        return write_value(value)

    def _outside(self, p: int, part: int, distance: int) -> Value | Outside:
        """Return the value of a part of column p at a distance from the sequence."""
        return Outside(distance)

    def _inside(self, readings: Readings, at: int, column: int) -> Value:
        """Return the value of token `at` in a column. RAISES: KeyError if it is unknown."""
        n_lexical = readings.templates.n_lexical
        if column >= n_lexical:
            return self._stored(readings, at, column - n_lexical)
        if column == self._of_words and self._tokens.knows(Read(WORD_LABELS)):
            number = int(readings.lexical[readings.words[at], column])
            return self._tokens.value(Read(WORD_LABELS), number)
        text = self._view(self._strings[int(readings.annotations[at, 0])])
        reader, i = self._readers[column]
        if isinstance(reader, Ngrams):
            return reader(text)[i]
        return self._text(reader, text)

    def _text(self, reader: Any, text: str) -> Value:
        """Return the value of a word by a reader with a single value."""
        value = reader(text)
        assert isinstance(value, str | int)  # Missing values give no feature.
        return value

    def _stored(self, readings: Readings, at: int, column: int) -> Value:
        """Return the value of token `at` in a column of annotations."""
        number = int(readings.annotations[at, column])
        if column >= len(self._annotations):
            read = self._token_columns[column - len(self._annotations)]
            return self._tokens.value(read, number)
        return number if self._annotations[column] in attributes.NUMBERS else self._strings[number]


def _column_of_word_labels(features: PlanFeaturizer) -> int:
    """Return the column of `Readings.lexical` with the labels of words, -1 if there is none."""
    words = features.plan.words
    if Read(WORD_LABELS) not in words:
        return -1
    return sum(width_of(read) for read in words[: words.index(Read(WORD_LABELS))])


class _KeptNames(NamedTuple):
    """Recorded readings of Docs with the same vocab.

    readings: without values of words and without the vector columns of annotations.
    vectors: [N, V], the vector columns, as small integers; is_vector: [A] bool, mask of them.
    vocab: of the tokens.
    """

    readings: Readings
    vectors: NDArray[Any]
    is_vector: NDArray[np.bool_]
    vocab: Vocab

    def restore(self, lexical: Hashes) -> Readings:
        """Return the readings. lexical: values of words."""
        annotations = np.empty((self.readings.n_tokens, len(self.is_vector)), dtype=np.uint64)
        annotations[:, ~self.is_vector] = self.readings.annotations
        annotations[:, self.is_vector] = self.vectors
        return self.readings._replace(lexical=lexical, annotations=annotations)


class NameRecord:
    """Record of the values read from Docs, to name their features later.

    Called like the featurizer, it returns the same observations. It stores 20 bytes per token for
    words and beginnings of sentences, plus 8 bytes for each other annotation and attribute read in
    Python, and 1 or 2 bytes for each dimension of a vector.

    features: the featurizer.
    """

    def __init__(self, features: PlanFeaturizer) -> None:
        self._features = features
        self._kept: list[_KeptNames] = []
        # Tables of words grow by copying, so the last copy also serves earlier readings.
        self._lexical: dict[object, Hashes] = {}
        self._tokens = TokenValues()

    @classmethod
    def of(cls, features: Any) -> "NameRecord | None":
        """Return a record for a featurizer; None for custom featurizers, which have no names."""
        return cls(features) if isinstance(features, PlanFeaturizer) else None

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs; see `Featurizer`."""
        return self._features.observe(self.read(docs, sequences))

    def read(self, docs: Sequence[Doc], sequences: str, alone: Alone = None) -> list[Readings]:
        """Read Docs and record the readings; see `Featurizer.readings`."""
        found = self._features.readings(docs, sequences, alone)
        for readings, of_vocab in zip(found, by_vocab(docs), strict=True):
            self._keep(readings, of_vocab)
        return found

    def _keep(self, readings: Readings, docs: Sequence[Doc]) -> None:
        """Store the values that names need. readings: of all Docs, which have the same vocab."""
        plan = self._features.plan
        is_vector = np.zeros(readings.annotations.shape[1], dtype=np.bool_)
        kept = readings.division.kept
        for column, read in enumerate(plan.token_columns, start=len(plan.annotations)):
            is_vector[column] = read.name == attributes.VECTOR
            self._tokens.add(read, docs, readings.annotations[:, column], kept)
        vectors = readings.annotations[:, is_vector]
        vectors = vectors.astype(np.min_scalar_type(vectors.max(initial=0)))
        self._lexical[readings.lexicon] = readings.lexical
        annotations = readings.annotations[:, ~is_vector]
        nothing = readings.lexical[:0]
        own = readings._replace(annotations=annotations, lexical=nothing, values=NO_VALUES)
        self._kept.append(_KeptNames(own, vectors, is_vector, docs[0].vocab))

    def parts(self) -> Iterator[Readings]:
        """Yield the readings, in order, without real values."""
        for kept in self._kept:
            yield kept.restore(self._lexical[kept.readings.lexicon])

    def readings(self, values: Iterable[NDArray[np.float32]]) -> Iterator[Readings]:
        """Yield the readings, in order, with real values: those of each part."""
        for readings, own in zip(self.parts(), values, strict=True):
            yield readings._replace(values=own)

    def refill(self, fill: Callable[[Readings], Readings], texts: Mapping[int, str]) -> None:
        """Insert the predictions of a first-stage model.

        fill: inserts the predictions into one of the `parts`; texts: of predictions, by number.
        """
        for i, readings in enumerate(self.parts()):
            kept, filled = self._kept[i], fill(readings)
            annotations = filled.annotations[:, ~kept.is_vector]
            own = kept.readings._replace(templates=filled.templates, annotations=annotations)
            self._kept[i] = kept._replace(readings=own)
        self._tokens.know(self._features.plan.stacked, texts)

    @property
    def word_tokens(self) -> list[WordTokens]:
        """The words of all tokens."""
        return [
            WordTokens(own.annotations[:, 0], kept.vocab.strings, own.division.ends, own.offsets)
            for kept in self._kept
            for own in [kept.readings]
        ]

    def insert_word_labels(self, table: WordLabelTable, folds: Longs) -> None:
        """Insert the labels of words that each token reads. folds: [N], of all tokens."""
        assert isinstance(self._features, Featurizer)
        texts, of_token = table.texts, table.of_tokens(self.word_tokens, folds)
        values = np.array([*map(get_string_id, texts)], dtype=np.uint64)
        column, begin = _column_of_word_labels(self._features), 0
        # One row of values for each pair of a word and the labels that it reads.
        rows: dict[object, tuple[object, dict[int, int]]] = {}
        for i, kept in enumerate(self._kept):
            own = kept.readings
            end = begin + own.n_tokens
            lexicon, known = rows.setdefault(own.lexicon, (object(), {}))
            cells = own.words.astype(np.int64) * len(texts) + of_token[begin:end]
            distinct, of_cell = np.unique(cells, return_inverse=True)
            new = [known.setdefault(cell, len(known)) for cell in distinct.tolist()]
            words = np.array(new, dtype=np.int32)[of_cell]
            self._kept[i] = kept._replace(readings=own._replace(words=words, lexicon=lexicon))
            begin = end
        for old, (lexicon, known) in rows.items():
            old_rows, texts_read = np.divmod(np.array([*known], dtype=np.int64), len(texts))
            lexical = self._lexical.pop(old)[old_rows]
            lexical[:, column] = values[texts_read]
            self._lexical[lexicon] = lexical
        self._tokens.know([Read(WORD_LABELS)], dict(zip(values.tolist(), texts, strict=True)))

    def names(self, keys: Hashes) -> dict[int, str]:
        """Name features where they first occur.

        keys: [n] hashes.
        RETURNS: names by hash, without features that did not occur, and without names that would
            have another hash.
        """
        from ..kernels.hashing import build_table, find_features

        # The names of real values do not depend on readings.
        plan = self._features.plan
        for read, marks in self._features.marks.items():
            self._tokens.know([read], marks)
        reals = plan.templates.value_keys.tolist(), plan.value_names
        found = dict[int, str | None](zip(*reals, strict=True))
        left, lexicon, namers = keys, None, dict[int, CellNames]()
        make = self._features.names_of_cells or CellNames
        for kept in self._kept:
            if not len(left):
                break
            readings = kept.restore(self._lexical[kept.readings.lexicon])
            hashed = readings.templates.conjunctions.plan
            if readings.lexicon is not lexicon:
                lexicon = readings.lexicon
                seen = np.zeros((len(hashed.seeds), len(readings.lexical)), np.bool_)
            # Most slots are empty, as most hashes are of other features. Frequent features are
            # found at once, so that the table soon fits in a cache.
            slots, cells = build_table(left, capacity=4 * len(left)), np.full(len(left), -1)
            words = Tokens(readings.offsets, readings.words, readings.lexical, readings.annotations)
            find_features(words, hashed, slots, left, seen, cells)
            features, cells, left = left[cells >= 0], cells[cells >= 0], left[cells < 0]
            if id(kept.vocab) not in namers:
                namers[id(kept.vocab)] = make(self._features, kept.vocab, self._tokens)
            namer = namers[id(kept.vocab)]
            tokens, columns = np.divmod(cells, len(hashed.seeds))
            for p in np.unique(columns).tolist():
                own = columns == p
                names = namer.names(readings, p, tokens[own])
                found.update(zip(features[own].tolist(), names, strict=True))
        return {key: text for key in keys.tolist() if (text := found.get(key)) is not None}
