"""Names of features, made from the attribute values that were hashed.

For attributes that are read in Python, only the Docs map numbers to values; these are recorded
while Docs are read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...crf.corpus.encoded import NO_VALUES, Observations
from ...crf.corpus.numbering import Hashes, Longs
from ...crf.corpus.readings import Readings, hash_values
from ...crf.kernels.layout import Tokens
from ...crf.model.names import ALWAYS, read_feature
from .attributes.clusters import LabelsOfWord
from .cell_names import CellNames, TokenValues, hashed_number
from .featurizer import PlanFeaturizer, by_vocab
from .plan import seed_of
from .tokens import Alone
from .word_labels import WordLabelTable, WordTokens


def hash_names(names: Sequence[str]) -> Hashes:
    """Return the hashes of features from their names, the same as at a token: [n] uint64.

    RAISES: ValueError for a malformed name.
    """
    features = [read_feature(name) for name in names]
    seeds = np.array([seed_of(feature.key) for feature in features], dtype=np.uint64)
    starts = np.cumsum([0, *(len(feature.values) for feature in features)], dtype=np.int64)
    values = [hashed_number(value) for feature in features for value in feature.values]
    return hash_values(seeds, starts, np.array(values, dtype=np.uint64))


def templates_by_kind(features: Any) -> dict[str, frozenset[str]] | None:
    """Return the keys (see `NamedFeature`) of templates or patterns conjoined with the label (u)
    and with the label pair (b); None for custom featurizers.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    if not isinstance(features, PlanFeaturizer):
        return None
    return {
        kind: frozenset(parsed.key for parsed in features.parsed if kind in parsed.kinds)
        for kind in "ub"
    }


def constant_features(features: Any) -> frozenset[int]:
    """Return the hashes of the features without attributes, which occur at every token.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    names = features.constant_names if isinstance(features, PlanFeaturizer) else [ALWAYS]
    return frozenset(hash_names(names).tolist())


class _Recorded(NamedTuple):
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
        self._batches: list[_Recorded] = []
        # Tables of words grow by copying, so the last copy also serves earlier readings.
        self._lexical: dict[object, Hashes] = {}

    @cached_property
    def _tokens(self) -> TokenValues:
        return TokenValues()

    @classmethod
    def of(cls, features: Any) -> "NameRecord | None":
        """Return a record for a featurizer; None for custom featurizers, which have no names."""
        return cls(features) if isinstance(features, PlanFeaturizer) else None

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs; see `Featurizer`."""
        return self._features.observe(self.read(docs, sequences))

    def read(self, docs: Sequence[Doc], sequences: str, alone: Alone = None) -> list[Readings]:
        """Read Docs and record the readings; see `Featurizer.readings`."""
        parts = self._features.readings(docs, sequences, alone)
        for readings, of_vocab in zip(parts, by_vocab(docs), strict=True):
            self._record(readings, of_vocab)
        return parts

    def _record(self, readings: Readings, docs: Sequence[Doc]) -> None:
        """Store the values that names need. readings: of all Docs, which have the same vocab."""
        plan = self._features.plan
        is_vector = np.zeros(readings.annotations.shape[1], dtype=np.bool_)
        readers = dict(zip(plan.tokens, self._features.token_readers, strict=True))
        for column, read in enumerate(plan.token_columns, start=len(plan.annotations)):
            is_vector[column] = read.is_number
            if not read.is_number:
                self._tokens.add(
                    read,
                    readers[read],
                    docs=docs,
                    numbers=readings.annotations[:, column],
                    token_of_word=readings.division.kept,
                )
        vectors = readings.annotations[:, is_vector]
        vectors = vectors.astype(np.min_scalar_type(vectors.max(initial=0)))
        self._lexical[readings.lexicon] = readings.lexical
        short = readings._replace(
            annotations=readings.annotations[:, ~is_vector],
            lexical=readings.lexical[:0],
            values=NO_VALUES,
        )
        self._batches.append(_Recorded(short, vectors, is_vector=is_vector, vocab=docs[0].vocab))

    def parts(self) -> Iterator[Readings]:
        """Yield the readings, in order, without real values."""
        for batch in self._batches:
            yield batch.restore(self._lexical[batch.readings.lexicon])

    def readings(self, values: Iterable[NDArray[np.float32]]) -> Iterator[Readings]:
        """Yield the readings, in order, with real values: those of each part."""
        for readings, of_part in zip(self.parts(), values, strict=True):
            yield readings._replace(values=of_part)

    def refill(self, fill: Callable[[Readings], Readings], texts: Mapping[int, str]) -> None:
        """Insert the predictions of a first-stage model.

        fill: inserts the predictions into one of the `parts`; texts: of predictions, by number.
        """
        for i, readings in enumerate(self.parts()):
            batch = self._batches[i]
            filled = fill(readings)
            short = batch.readings._replace(
                templates=filled.templates, annotations=filled.annotations[:, ~batch.is_vector]
            )
            self._batches[i] = batch._replace(readings=short)
        self._tokens.know(self._features.plan.stacked, texts)

    @property
    def word_tokens(self) -> list[WordTokens]:
        """The words of all tokens."""
        return [
            WordTokens(
                orths=batch.readings.annotations[:, 0],
                strings=batch.vocab.strings,
                ends=batch.readings.division.ends,
                offsets=batch.readings.offsets,
            )
            for batch in self._batches
        ]

    def insert_word_labels(self, table: WordLabelTable, folds: Longs) -> None:
        """Insert the labels of words that each token reads. folds: [N], of all tokens."""
        texts = table.texts
        of_token = table.of_tokens(self.word_tokens, folds)
        values = np.array([*map(get_string_id, texts)], dtype=np.uint64)
        begin = 0
        # One row of values for each pair of a word and the labels that it reads.
        rows: dict[object, tuple[object, dict[int, int]]] = {}
        for i, batch in enumerate(self._batches):
            readings = batch.readings
            end = begin + readings.n_tokens
            lexicon, row_of_pair = rows.setdefault(readings.lexicon, (object(), {}))
            pairs = readings.words.astype(np.int64) * len(texts) + of_token[begin:end]
            distinct, pair_of_token = np.unique(pairs, return_inverse=True)
            numbers = [row_of_pair.setdefault(p, len(row_of_pair)) for p in distinct.tolist()]
            words = np.array(numbers, dtype=np.int32)[pair_of_token]
            self._batches[i] = batch._replace(
                readings=readings._replace(words=words, lexicon=lexicon)
            )
            begin = end
        read, column = self._word_labels
        for old, (lexicon, row_of_pair) in rows.items():
            old_rows, texts_read = np.divmod(np.array([*row_of_pair], dtype=np.int64), len(texts))
            lexical = self._lexical.pop(old)[old_rows]
            lexical[:, column] = values[texts_read]
            self._lexical[lexicon] = lexical
        self._tokens.know([read], dict(zip(values.tolist(), texts, strict=True)))

    @property
    def _word_labels(self) -> tuple[LabelsOfWord, int]:
        """The attribute of the labels of words, which templates read, and its lexical column."""
        column = 0
        for read in self._features.plan.words:
            if isinstance(read, LabelsOfWord):
                return read, column
            column += read.width()
        raise AssertionError

    def names(self, keys: Hashes) -> dict[int, str]:
        """Name features where they first occur.

        keys: [n] hashes.
        RETURNS: names by hash, without features that did not occur, and without names that would
            have another hash.
        """
        from ...crf.kernels.hashing import build_table, find_features

        # The names of real values do not depend on readings.
        plan = self._features.plan
        real_keys = plan.templates.value_keys.tolist()
        names = dict[int, str | None](zip(real_keys, plan.real.names, strict=True))
        left = keys
        lexicon = None
        namers: dict[int, CellNames] = {}
        make = self._features.names_of_cells or CellNames
        for batch in self._batches:
            if not len(left):
                break
            readings = batch.restore(self._lexical[batch.readings.lexicon])
            hashed = readings.templates.conjunctions.plan
            if readings.lexicon is not lexicon:
                lexicon = readings.lexicon
                seen = np.zeros((len(hashed.seeds), len(readings.lexical)), np.bool_)
            # Most slots are empty, as most hashes are of other features. Frequent features are
            # found at once, so that the table soon fits in a cache.
            slots = build_table(left, capacity=4 * len(left))
            cells = np.full(len(left), -1)
            words = Tokens(readings.offsets, readings.words, readings.lexical, readings.annotations)
            find_features(words, hashed, slots, left, seen, cells)
            features, cells, left = left[cells >= 0], cells[cells >= 0], left[cells < 0]
            if id(batch.vocab) not in namers:
                namers[id(batch.vocab)] = make(self._features, batch.vocab, self._tokens)
            namer = namers[id(batch.vocab)]
            tokens, columns = np.divmod(cells, len(hashed.seeds))
            for p in np.unique(columns).tolist():
                of_column = columns == p
                texts = namer.names(readings, p, tokens[of_column])
                names.update(zip(features[of_column].tolist(), texts, strict=True))
        return {key: text for key in keys.tolist() if (text := names.get(key)) is not None}
