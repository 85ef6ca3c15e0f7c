"""Doc -> hashed observation tests, without a Python string per token."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import LIKE_NUM, ORTH, SPACY  # type: ignore[import-not-found]
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus import Observations
from ..registry import crf_features
from .attributes import AFFIX, ANNOTATION, WORD
from .defaults import DEFAULT_TEMPLATES
from .lexemes import LexemeTable, Reader
from .sequences import sequence_offsets
from .templates import Template, parse_templates


@dataclass(frozen=True)
class _Plan:
    """Templates as the arrays that the hashing kernel takes, and where values come from.

    words: [L] word attributes with their affix length, columns 0..L-1 of values.
    annotations: [A] spaCy attribute ids, columns L..L+A-1 of values; the first is ORTH.
    """

    words: tuple[tuple[str, int], ...]
    annotations: tuple[int, ...]
    seeds: NDArray[np.uint64]
    part_ptr: NDArray[np.int64]
    part_columns: NDArray[np.int64]
    part_offsets: NDArray[np.int64]


def _plan(templates: Sequence[Template]) -> _Plan:
    """Lay templates out as arrays."""
    tests = [test for template in templates for test in template.tests]
    used = dict.fromkeys((test.attribute, test.length) for test in tests)
    words = tuple(column for column in used if column[0] not in ANNOTATION)
    attributes = [ANNOTATION[name] for name, _ in used if name in ANNOTATION]
    annotations = tuple(dict.fromkeys([ORTH, *attributes]))
    columns = {column: i for i, column in enumerate(words)}
    for name, attribute in ANNOTATION.items():
        if attribute in annotations:
            columns[name, 0] = len(words) + annotations.index(attribute)
    return _Plan(
        words=words,
        annotations=annotations,
        seeds=np.array([_seed(template.key) for template in templates], dtype=np.uint64),
        part_ptr=np.cumsum([0, *(len(template.tests) for template in templates)], dtype=np.int64),
        part_columns=np.array([columns[t.attribute, t.length] for t in tests], dtype=np.int64),
        part_offsets=np.array([test.offset for test in tests], dtype=np.int64),
    )


def _seed(key: str) -> int:
    """64 bits from the canonical text of a template's tests, the same in every process."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def _columns(templates: Sequence[Template], kind: str) -> NDArray[np.int32]:
    """Positions of the templates whose tests are conjoined with a label (u) or a pair (b)."""
    return np.array([i for i, t in enumerate(templates) if kind in t.kinds], dtype=np.int32)


@crf_features("spacy_sparsecrf.Templates.v1")
class Featurizer:
    """Hashes the tests of templates at each token of Docs.

    A hash depends on the canonical text of the template's tests and on the strings that they
    read: neither on the template's kind and position, nor on process, machine or vocab. Only
    `norm`, `like_num` and annotations depend on the language and on earlier pipes.

    templates: see `features.templates` for the language, `features.attributes` for what can be
        read.
    start_label: whether the first token of a sequence has the pair (start, y) too.
    Raises SparseCRFError if templates are empty, malformed, or repeated.
    """

    def __init__(
        self, templates: Sequence[str] = DEFAULT_TEMPLATES, start_label: bool = True
    ) -> None:
        parsed = parse_templates(templates)
        self.templates = tuple(templates)
        self.start_label = start_label
        self._plan = _plan(parsed)
        self._unigram_columns = _columns(parsed, "u")
        self._bigram_columns = _columns(parsed, "b")
        # Kept with the one word attribute that depends on the language.
        self._table: tuple[Reader, LexemeTable] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles start with an empty table of words."""
        return type(self), (self.templates, self.start_label)

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the tests of Docs.

        docs: are not changed; may be empty, and of several vocabs.
        sequences: "sents" (sentences where a Doc has them, else the Doc) or "docs".
        RETURNS: observations of all their tokens, in order.
        Raises SparseCRFError for another value of `sequences`.
        """
        offsets = sequence_offsets(docs, sequences)
        hashes = np.empty((int(offsets[-1]), len(self._plan.seeds)), dtype=np.uint64)
        first = 0
        for _, group in groupby(docs, key=_vocab_identity):
            of_vocab = list(group)
            last = first + sum(map(len, of_vocab))
            inside = offsets[(first <= offsets) & (offsets <= last)] - first
            self._hash(of_vocab, inside, hashes[first:last])
            first = last
        return Observations(
            hashes=hashes,
            offsets=offsets,
            unigram_columns=self._unigram_columns,
            bigram_columns=self._bigram_columns,
            start_label=self.start_label,
        )

    def _hash(
        self, docs: Sequence[Doc], offsets: NDArray[np.int64], hashes: NDArray[np.uint64]
    ) -> None:
        """Hash Docs of one vocab. offsets: [S + 1] int64; hashes: [N, P] uint64, out."""
        from ..kernels.hashing import hash_tests

        plan = self._plan
        annotations = _read(docs, plan.annotations)
        if not len(annotations):
            return
        orths = np.ascontiguousarray(annotations[:, 0])
        vocab = docs[0].vocab
        rows, lexical = self._lexemes(vocab).find(orths, vocab.strings)
        hash_tests(
            offsets,
            rows,
            lexical,
            annotations,
            plan.seeds,
            plan.part_ptr,
            plan.part_columns,
            plan.part_offsets,
            hashes,
        )

    def _lexemes(self, vocab: Vocab) -> LexemeTable:
        """The table of words, for strings alone: good for all vocabs of a language."""
        getters = vocab.lex_attr_getters  # type: ignore[attr-defined]
        like_num = getters.get(LIKE_NUM, WORD["like_num"])
        if self._table is None or self._table[0] is not like_num:
            functions = {**WORD, "like_num": like_num}
            readers = [
                partial(AFFIX[name], length) if name in AFFIX else functions[name]
                for name, length in self._plan.words
            ]
            self._table = like_num, LexemeTable(readers)
        return self._table[1]


def _read(docs: Sequence[Doc], attributes: tuple[int, ...]) -> NDArray[np.uint64]:
    """Read annotations of tokens: [N, A] uint64."""
    # A single attribute comes as a vector.
    arrays = [doc.to_array([*attributes]).reshape(len(doc), -1) for doc in docs if len(doc)]
    if not arrays:
        return np.empty((0, len(attributes)), dtype=np.uint64)
    values = np.concatenate(arrays).astype(np.uint64, copy=False)
    if SPACY in attributes:
        column = attributes.index(SPACY)
        # Nothing follows a Doc's last token: whether white space does is not known of all texts.
        values[np.cumsum([len(array) for array in arrays]) - 1, column] = 1
        values[:, column] = 1 - values[:, column]
    return values


def _vocab_identity(doc: Doc) -> int:
    return id(doc.vocab)
