"""Names of tests: which values of which tokens were hashed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus import Observations
from ..names import Outside, Value, read_name, write_name
from ..readings import Readings
from .attributes import NUMBERS
from .featurizer import Featurizer, by_vocab
from .plan import seed_of

if TYPE_CHECKING:
    from ..readings import Hashes


def hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """Hash tests by their names, as they are hashed at a token: [n] uint64.

    RAISES: ValueError for a malformed name.
    """
    from ..kernels.hashing import hash_tests

    tests = [read_name(name) for name in names]
    keys = ["|".join(test for test, _ in parts) for parts in tests]
    values = [value for parts in tests for _, value in parts]
    # A sequence of one token that has all the values, each in a column of its own.
    lexical = np.array([[_number(value) for value in values]], dtype=np.uint64)
    hashes = np.empty((1, len(tests)), dtype=np.uint64)
    hash_tests(
        np.array([0, 1]),
        np.zeros(1, dtype=np.int32),
        lexical,
        np.zeros((1, 0), dtype=np.uint64),
        np.array([seed_of(key) for key in keys], dtype=np.uint64),
        np.cumsum([0, *map(len, tests)], dtype=np.int64),
        np.arange(len(values)),
        np.array([_distance(value) for value in values], dtype=np.int64),
        hashes,
    )
    found: NDArray[np.uint64] = hashes[0]
    return found


def _number(value: Value) -> int:
    """What is hashed of a value; 0 where that follows from the distance alone."""
    if isinstance(value, str):
        return int(get_string_id(value))
    return 0 if isinstance(value, Outside) else value


def _distance(value: Value) -> int:
    """How far from the sequence's only token a value is read."""
    return value.distance if isinstance(value, Outside) else 0


class NameRecord:
    """Remembers what was read from Docs, and names their tests afterwards.

    Called like the featurizer, it gives the same observations. It keeps the ids of words and
    annotations, 12 bytes a token and 8 for each annotation that templates read.

    features: hashes the tests.
    """

    def __init__(self, features: Featurizer) -> None:
        self._features = features
        self._kept: list[tuple[Readings, Vocab]] = []
        # Tables of words grow by copying: the last copy serves earlier readings too.
        self._lexical: dict[object, Hashes] = {}
        self._nameless: set[int] = set()

    @classmethod
    def of(cls, features: Any) -> "NameRecord | None":
        """A record for features, or None for those of another kind, whose tests have no names."""
        return cls(features) if isinstance(features, Featurizer) else None

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the tests of Docs; see `Featurizer`."""
        parts = []
        for of_vocab in by_vocab(docs):
            for part in self._features.readings(of_vocab, sequences):
                parts.append(part)
                self._lexical[part.lexicon] = part.lexical
                self._kept.append((part._replace(lexical=part.lexical[:0]), of_vocab[0].vocab))
        return self._features.observe(parts)

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

        slots = build_table(wanted)
        is_open = np.ones(len(wanted) + 1, dtype=np.bool_)
        is_open[-1] = False  # Where positions are -1.
        found: dict[int, str] = {}
        for kept, vocab in self._kept:
            if not is_open.any():
                break
            part = kept._replace(lexical=self._lexical[kept.lexicon])
            hashes = part.hash(part.templates.tests)
            positions = np.empty(hashes.size, dtype=np.int32)
            lookup(slots, wanted, hashes.reshape(-1), positions)
            cells = np.flatnonzero(is_open[positions])
            tests, first = np.unique(positions[cells], return_index=True)
            is_open[tests] = False
            namer = _Namer(self._features, part, vocab)
            for test, cell in zip(tests.tolist(), cells[first].tolist(), strict=True):
                try:
                    name = namer.name(*divmod(cell, hashes.shape[1]))
                except KeyError:  # The vocab no longer has a string.
                    continue
                found[int(wanted[test])] = name
        return found


class _Namer:
    """Names tests of tokens. features, part: what was read; vocab: of the tokens."""

    def __init__(self, features: Featurizer, part: Readings, vocab: Vocab) -> None:
        self._part = part
        self._strings = vocab.strings
        self._readers = features.readers(vocab)
        self._annotations = features.annotations
        self._templates = {seed_of(template.key): template for template in features.parsed}
        self._words: dict[int, dict[int, Value]] = {}

    def name(self, t: int, p: int) -> str:
        """Name the test p of token t. RAISES: KeyError for a string that is not known."""
        tests = self._part.templates.tests
        places = range(tests.part_ptr[p], tests.part_ptr[p + 1])
        texts = map(str, self._templates[int(tests.seeds[p])].tests)
        pairs = zip(texts, places, strict=True)
        return write_name([(text, self._value(t, k)) for text, k in pairs])

    def _value(self, t: int, k: int) -> Value:
        """The value that the part k of a test reads from token t."""
        part = self._part
        tests, n_lexical = part.templates.tests, part.templates.n_lexical
        s = int(np.searchsorted(part.offsets, t, side="right"))
        first, last = int(part.offsets[s - 1]), int(part.offsets[s])
        at, column = t + int(tests.part_offsets[k]), int(tests.part_columns[k])
        if at < first:
            return Outside(at - first)
        if at >= last:
            return Outside(at - last + 1)
        if column < n_lexical:
            word = int(part.annotations[at, 0])
            return self._of_word(word)[int(part.lexical[part.words[at], column])]
        number = int(part.annotations[at, column - n_lexical])
        if self._annotations[column - n_lexical] in NUMBERS:
            return number
        return self._strings[number]

    def _of_word(self, word: int) -> dict[int, Value]:
        """All values of a word, by what is hashed of them."""
        if word not in self._words:
            text = self._strings[word]
            values = [reader(text) for reader in self._readers]
            values = [value if isinstance(value, str) else int(value) for value in values]
            self._words[word] = {_number(value): value for value in values}
        return self._words[word]


def templates_by_kind(features: Any) -> dict[str, frozenset[str]] | None:
    """The canonical texts of templates conjoined with the label (u) and with the pair of labels
    (b); None for features that are no templates.
    """
    if not isinstance(features, Featurizer):
        return None
    return {
        kind: frozenset(template.key for template in features.parsed if kind in template.kinds)
        for kind in "ub"
    }
