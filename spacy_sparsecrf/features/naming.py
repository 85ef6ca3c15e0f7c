"""Names of tests: which values of which tokens were hashed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.arrays import MEMORY, Memory
from ..corpus.encoded import NO_VALUES, Observations
from ..corpus.readings import Conjunctions, Readings
from ..kernels.layout import Tokens
from ..model.names import ALWAYS, Outside, Value, read_test, write_pattern_name
from .attributes import VECTOR
from .cell_names import TokenValues, cell_names
from .featurizer import Featurizer, by_vocab
from .patterns.featurizer import PatternFeaturizer
from .patterns.views import value_of
from .plan import seed_of
from .tokens import number_of

if TYPE_CHECKING:
    from ..corpus.readings import Hashes


def hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """Hash tests by their names, as they are hashed at a token: [n] uint64.

    RAISES: ValueError for a malformed name.
    """
    from ..kernels.hashing import hash_tests

    found = [read_test(name) for name in names]
    values = [value for test in found for value in test.values]
    none = np.zeros(len(values), dtype=np.int64)
    tests = Conjunctions(
        seeds=np.array([seed_of(test.key) for test in found], dtype=np.uint64),
        part_ptr=np.cumsum([0, *(len(test.values) for test in found)], dtype=np.int64),
        part_columns=np.arange(len(values)),
        part_offsets=none,
        part_anchors=none,
        n_edges=1,
    )
    # A sequence of one token that has all the values, each in a column of its own.
    offsets, rows = np.array([0, 1]), np.zeros(1, dtype=np.int32)
    lexical = np.array([[_number(value) for value in values]], dtype=np.uint64)
    annotations = np.zeros((1, 0), dtype=np.uint64)
    hashes = np.empty((1, len(found)), dtype=np.uint64)
    hash_tests(Tokens(offsets, rows, lexical, annotations), tests.plan, hashes)
    of_names: NDArray[np.uint64] = hashes[0]
    return of_names


def _number(value: Value) -> int:
    """What is hashed of a value."""
    if isinstance(value, Outside):
        from ..kernels.hashing import edge_value

        return int(edge_value(value.distance))
    # Templates have no empty texts, unlike patterns.
    return value_of(value) if isinstance(value, str) else number_of(value)


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

    def restore(self, lexical: "Hashes") -> Readings:
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

    def __init__(self, features: Featurizer | PatternFeaturizer, store: Memory = MEMORY) -> None:
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
        known = isinstance(features, Featurizer | PatternFeaturizer)
        return cls(features, store) if known else None

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the tests of Docs; see `Featurizer`."""
        found = []
        for of_vocab in by_vocab(docs):
            for readings in self._features.readings(of_vocab, sequences):
                found.append(readings)
                self._keep(readings, of_vocab)
        self._store.release()
        return _featurizer(self._features).observe(found)

    def _keep(self, readings: Readings, docs: Sequence[Doc]) -> None:
        """Keep what names are made of. readings: all of the Docs, which have one vocab."""
        features = _featurizer(self._features)
        is_vector = np.zeros(readings.annotations.shape[1], dtype=np.bool_)
        for column, read in enumerate(features.token_columns, start=len(features.annotations)):
            is_vector[column] = read.name == VECTOR
            self._tokens.add(read, docs, readings.annotations[:, column])
        vectors = readings.annotations[:, is_vector]
        vectors = vectors.astype(np.min_scalar_type(vectors.max(initial=0)))
        annotations = readings.annotations[:, ~is_vector]
        self._lexical[readings.lexicon] = readings.lexical
        kept = readings.offsets, readings.words, annotations, vectors
        offsets, words, annotations, vectors = self._store.kept(kept)
        own = readings._replace(offsets=offsets, words=words, annotations=annotations)
        own = own._replace(lexical=readings.lexical[:0], values=NO_VALUES)
        self._kept.append(_Kept(own, vectors, is_vector, docs[0].vocab))

    def names(self, keys: NDArray[np.uint64]) -> dict[int, str]:
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

    def _find(self, wanted: NDArray[np.uint64]) -> dict[int, str]:
        """Name tests where they first occur."""
        from ..kernels.hashing import build_table, lookup

        # Real values have their names from the first, whatever is read.
        known = _featurizer(self._features).value_names
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
            namer = cell_names(_featurizer(self._features), readings, kept.vocab, self._tokens)
            for test, cell in zip(tests.tolist(), cells[first].tolist(), strict=True):
                try:
                    name = namer.name(*divmod(cell, hashes.shape[1]))
                except KeyError:  # A string that the vocab no longer has.
                    continue
                found[int(wanted[test])] = name
        return found


def _featurizer(features: Featurizer | PatternFeaturizer) -> Featurizer:
    """What reads and hashes values."""
    return features if isinstance(features, Featurizer) else features.featurizer


def templates_by_kind(features: Any) -> dict[str, frozenset[str]] | None:
    """The keys (see `NamedTest`) of templates or patterns that are conjoined with the label (u) and
    with the pair of labels (b); None for features of another kind.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    if isinstance(features, PatternFeaturizer):
        made = [(pattern.key, pattern.kinds) for pattern in features.featurizer.patterns.patterns]
    elif isinstance(features, Featurizer):
        made = [(template.key, template.kinds) for template in features.parsed]
    else:
        return None
    return {kind: frozenset(key for key, kinds in made if kind in kinds) for kind in "ub"}


def constant_tests(features: Any) -> frozenset[int]:
    """Hashes of the tests that read nothing: they are on at every token.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    names = [ALWAYS]
    if isinstance(features, PatternFeaturizer):
        patterns = features.featurizer.patterns.patterns
        names = [write_pattern_name(p.literals, ()) for p in patterns if not p.tests]
    return frozenset(hash_names(names).tolist())
