"""Names of tests: which values of which tokens were hashed.

Tests are named by their cell among hashes: at which token, in which column they were on. The
numbers of attributes that are read in Python stand for values that only their Docs knew:
`TokenValues` remembers them.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.vocab import Vocab

from ..corpus.arrays import MEMORY, Memory
from ..corpus.encoded import NO_VALUES, Observations
from ..corpus.readings import Hashes, Readings, hash_values
from ..model.names import ALWAYS, Outside, read_test, write_name, write_pattern_name
from ..model.names import Value as NamedValue
from .arguments import Read
from .attributes import EXTENSION, NUMBERS, PHRASE, VECTOR, Ngrams, Value
from .featurizer import Featurizer, PlanFeaturizer, by_vocab
from .patterns.featurizer import PatternFeaturizer
from .patterns.macros import Pattern, text_of, value_of
from .patterns.plan import Shown, texts_of
from .plan import seed_of
from .templates import Template
from .tokens import number_of


def hash_names(names: Sequence[str]) -> Hashes:
    """Hash tests by their names, as they are hashed at a token: [n] uint64.

    RAISES: ValueError for a malformed name.
    """
    tests = [read_test(name) for name in names]
    seeds = np.array([seed_of(test.key) for test in tests], dtype=np.uint64)
    starts = np.cumsum([0, *(len(test.values) for test in tests)], dtype=np.int64)
    values = [_number(value) for test in tests for value in test.values]
    return hash_values(seeds, starts, np.array(values, dtype=np.uint64))


def _number(value: NamedValue) -> int:
    """What is hashed of a value."""
    if isinstance(value, Outside):
        from ..kernels.hashing import edge_values

        return int(edge_values(abs(value.distance))[int(value.distance > 0), -1])
    # Templates have no empty texts, unlike patterns.
    return value_of(value) if isinstance(value, str) else number_of(value)


def templates_by_kind(features: Any) -> dict[str, frozenset[str]] | None:
    """The keys (see `NamedTest`) of templates or patterns that are conjoined with the label (u) and
    with the pair of labels (b); None for features of another kind.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    if not isinstance(features, Featurizer | PatternFeaturizer):
        return None
    made: Sequence[Template | Pattern] = (
        features.parsed if isinstance(features, Featurizer) else features.patterns.patterns
    )
    return {kind: frozenset(each.key for each in made if kind in each.kinds) for kind in "ub"}


def constant_tests(features: Any) -> frozenset[int]:
    """Hashes of the tests that read nothing: they are on at every token.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    names = [ALWAYS]
    if isinstance(features, PatternFeaturizer):
        patterns = features.patterns.patterns
        names = [write_pattern_name(p.literals, ()) for p in patterns if not p.tests]
    return frozenset(hash_names(names).tolist())


class TokenValues:
    """Remembers the values that attributes have had in Docs, by their numbers.

    Strings need not be known to a vocab, see `tokens`.
    """

    def __init__(self) -> None:
        self._known: dict[Read, dict[int, Value]] = {}

    def add(self, read: Read, docs: Sequence[Doc], numbers: Hashes) -> None:
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
                    i = int(np.searchsorted(ends, t, side="right"))
                    known[number] = _value(docs[i][t - ends[i]], read.argument)
        else:
            known.update(texts_of(read, docs))

    def value(self, read: Read, number: int) -> Value:
        """The value that a number stands for. RAISES: KeyError if none is known."""
        return number if read.name == VECTOR else self._known[read][number]


def _value(token: Token, name: str) -> Value:
    value = token._.get(name)
    return value if isinstance(value, str) else int(value or 0)


class _TokenRead(NamedTuple):
    """A token that a part of a test reads. at: its number; outside: how far it is from the sequence
    (< 0 before its first, > 0 behind its last token), or 0; column: that is read.
    """

    at: int
    outside: int
    column: int


class CellNames:
    """Names tests of templates.

    features: made the hashes; readings: what was read; vocab: of the tokens; tokens: what was read
    in Python.
    """

    def __init__(
        self, features: PlanFeaturizer, readings: Readings, vocab: Vocab, tokens: TokenValues
    ) -> None:
        self._readings = readings
        self._strings = vocab.strings
        self._readers = features.readers(vocab)
        self._annotations = features.plan.annotations
        self._token_columns = features.plan.token_columns
        self._tokens = tokens
        self._words: dict[int, Sequence[Value | None]] = {}
        parsed = features.parsed if isinstance(features, Featurizer) else ()
        self._templates = {seed_of(template.key): template for template in parsed}

    def name(self, t: int, p: int) -> str:
        """Name the test p of token t. RAISES: KeyError for a value that is not known."""
        template = self._templates[int(self._readings.templates.tests.seeds[p])]
        values = map(self._value, self._reads(t, p))
        return write_name(zip(map(str, template.tests), values, strict=True))

    def _reads(self, t: int, p: int) -> list[_TokenRead]:
        """The tokens that the parts of the test p of token t read."""
        tests, offsets = self._readings.templates.tests, self._readings.offsets
        s = int(np.searchsorted(offsets, t, side="right"))
        first, last = int(offsets[s - 1]), int(offsets[s])
        found = []
        for k in range(int(tests.part_ptr[p]), int(tests.part_ptr[p + 1])):
            at = int(tests.part_offsets[k]) + (t, first, last)[int(tests.part_anchors[k])]
            outside = min(0, at - first) + max(0, at - last + 1)
            outside = max(-tests.n_edges, min(tests.n_edges, outside))
            found.append(_TokenRead(at, outside, int(tests.columns[k])))
        return found

    def _value(self, read: _TokenRead) -> Value | Outside:
        return Outside(read.outside) if read.outside else self._inside(read.at, read.column)

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
        self, features: PatternFeaturizer, readings: Readings, vocab: Vocab, tokens: TokenValues
    ) -> None:
        super().__init__(features, readings, vocab, tokens)
        self._plan = features.patterns
        seen = self._plan.seen.items()
        self._seen = [(column, see) for column, of_column in seen for see in of_column]

    def name(self, t: int, p: int) -> str:
        """Name the feature p of token t. RAISES: KeyError for a value that is not known."""
        pattern, dialect = self._plan.patterns[p], self._plan.dialect
        values = []
        for test, read in zip(pattern.tests, self._reads(t, p), strict=True):
            if read.outside:
                texts = dialect.before if read.outside < 0 else dialect.behind
                values.append(test.view.compile()(texts[abs(read.outside) - 1]))
            else:
                values.append(text_of(self._inside(read.at, read.column)))
        return write_pattern_name(pattern.literals, values)

    def _stored(self, at: int, column: int) -> Value:
        seen = column - len(self._annotations) - len(self._token_columns)
        if seen < 0:
            return super()._stored(at, column)
        column, see = self._seen[seen]
        return see(text_of(super()._stored(at, column)))


class _Kept(NamedTuple):
    """What is kept of the readings of Docs of a vocab.

    readings: without values of words; of annotations they have the columns that are not of vectors.
    vectors: [N, V] the columns that are, in small integers; is_vector: [A] bool, which they are.
    vocab: of the tokens.
    """

    readings: Readings
    vectors: NDArray[Any]
    is_vector: NDArray[np.bool_]
    vocab: Vocab

    def restore(self, lexical: Hashes) -> Readings:
        """What was read. lexical: values of words."""
        annotations = np.empty((self.readings.n_tokens, len(self.is_vector)), dtype=np.uint64)
        annotations[:, ~self.is_vector] = self.readings.annotations
        annotations[:, self.is_vector] = self.vectors
        return self.readings._replace(lexical=lexical, annotations=annotations)


class NameRecord:
    """Remembers what was read from Docs, and names their tests afterwards.

    Called like the features, it gives the same observations. It keeps the ids of words and
    annotations, 12 bytes a token, 8 for each annotation that templates or patterns read, and 1 or
    2 for each dimension of a vector.

    features: hashes the tests.
    store: where it keeps them.
    """

    def __init__(self, features: PlanFeaturizer, store: Memory = MEMORY) -> None:
        self._features = features
        self._store = store
        self._kept: list[_Kept] = []
        # Tables of words grow by copying: the last copy serves earlier readings too.
        self._lexical: dict[object, Hashes] = {}
        self._tokens = TokenValues()
        self._nameless: set[int] = set()

    @classmethod
    def of(cls, features: Any, store: Memory = MEMORY) -> "NameRecord | None":
        """A record for features, or None for those of another kind, whose tests have no names."""
        return cls(features, store) if isinstance(features, PlanFeaturizer) else None

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the tests of Docs; see `Featurizer`."""
        found = []
        for of_vocab in by_vocab(docs):
            for readings in self._features.readings(of_vocab, sequences):
                found.append(readings)
                self._keep(readings, of_vocab)
        self._store.release()
        return self._features.observe(found)

    def _keep(self, readings: Readings, docs: Sequence[Doc]) -> None:
        """Keep what names are made of. readings: all of the Docs, which have one vocab."""
        plan = self._features.plan
        is_vector = np.zeros(readings.annotations.shape[1], dtype=np.bool_)
        for column, read in enumerate(plan.token_columns, start=len(plan.annotations)):
            is_vector[column] = read.name == VECTOR
            self._tokens.add(read, docs, readings.annotations[:, column])
        vectors = readings.annotations[:, is_vector]
        vectors = vectors.astype(np.min_scalar_type(vectors.max(initial=0)))
        self._lexical[readings.lexicon] = readings.lexical
        kept = readings.offsets, readings.words, readings.annotations[:, ~is_vector], vectors
        offsets, words, annotations, vectors = self._store.kept(kept)
        own = readings._replace(offsets=offsets, words=words, annotations=annotations)
        own = own._replace(lexical=readings.lexical[:0], values=NO_VALUES)
        self._kept.append(_Kept(own, vectors, is_vector, docs[0].vocab))

    def names(self, keys: Hashes) -> dict[int, str]:
        """Name tests.

        keys: [n] hashes.
        RETURNS: names by hash. Tests that did not occur are left out, as are those whose name
            would not hash to them.
        """
        wanted = np.array([k for k in keys.tolist() if k not in self._nameless], dtype=np.uint64)
        found = self._find(wanted) if len(wanted) else {}
        if found:
            hashes = hash_names([*found.values()]).tolist()
            pairs = zip(found.items(), hashes, strict=True)
            found = {key: name for (key, name), hashed in pairs if key == hashed}
        self._nameless.update(key for key in wanted.tolist() if key not in found)
        return found

    def _find(self, wanted: Hashes) -> dict[int, str]:
        """Name tests where they first occur."""
        from ..kernels.hashing import build_table, lookup

        # Real values have their names from the first, whatever is read.
        plan = self._features.plan
        known = dict(zip(plan.templates.value_keys.tolist(), plan.value_names, strict=True))
        found = {key: known[key] for key in wanted.tolist() if key in known}
        slots = build_table(wanted)
        is_open = np.ones(len(wanted) + 1, dtype=np.bool_)
        is_open[-1] = False  # Where positions are -1.
        for kept in self._kept:
            if not is_open.any():
                break
            readings = kept.restore(self._lexical[kept.readings.lexicon])
            hashes = readings.hash(readings.templates.tests)
            positions = np.empty(hashes.size, dtype=np.int32)
            lookup(slots, wanted, hashes.reshape(-1), positions)
            cells = np.flatnonzero(is_open[positions])
            tests, first = np.unique(positions[cells], return_index=True)
            is_open[tests] = False
            namer = cell_names(self._features, readings, kept.vocab, self._tokens)
            for test, cell in zip(tests.tolist(), cells[first].tolist(), strict=True):
                try:
                    name = namer.name(*divmod(cell, hashes.shape[1]))
                except KeyError:  # A string that the vocab no longer has.
                    continue
                found[int(wanted[test])] = name
        return found


def cell_names(
    features: PlanFeaturizer, readings: Readings, vocab: Vocab, tokens: TokenValues
) -> CellNames:
    """What names the tests of readings; the arguments are those of `CellNames`."""
    if isinstance(features, PatternFeaturizer):
        return PatternCellNames(features, readings, vocab, tokens)
    return CellNames(features, readings, vocab, tokens)
