"""Doc -> hashed observation tests, without a Python string per token."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.attrs import LIKE_NUM  # type: ignore[import-not-found]
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus import Observations
from ..readings import Readings
from ..registry import crf_features
from .attributes import AFFIX, WORD
from .defaults import DEFAULT_TEMPLATES
from .plan import make_plan
from .templates import parse_templates

if TYPE_CHECKING:
    from .lexemes import LexemeTable, Reader


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
        self.templates = tuple(templates)
        self.start_label = start_label
        self.parsed = parse_templates(templates)
        self._plan = make_plan(self.parsed, start_label)
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
        return self.observe(self.readings(docs, sequences))

    def observe(self, readings: Sequence[Readings]) -> Observations:
        """Hash the tests of what `readings` returned."""
        templates = self._plan.templates
        hashes = [np.empty((0, len(templates.tests.seeds)), dtype=np.uint64)]
        offsets = [np.zeros(1, dtype=np.int64)]
        for part in readings:
            hashes.append(part.hash(templates.tests))
            offsets.append(offsets[-1][-1] + part.offsets[1:])
        return Observations(
            hashes=np.concatenate(hashes),
            offsets=np.concatenate(offsets),
            unigram_columns=templates.unigram_columns,
            bigram_columns=templates.bigram_columns,
            start_label=self.start_label,
        )

    def readings(self, docs: Sequence[Doc], sequences: str = "sents") -> list[Readings]:
        """Read the values that are to be tested, for who need not see every test.

        docs, sequences: as for `__call__`.
        RETURNS: the readings of all their tokens, in order, in parts of one vocab each.
        Raises SparseCRFError for another value of `sequences`.
        """
        # These import numba.
        from .tokens import check_mode, read_tokens

        check_mode(sequences)
        plan = self._plan
        parts = []
        for of_vocab in by_vocab(docs):
            offsets, values = read_tokens(of_vocab, plan.annotations, sequences)
            if len(values):
                vocab = of_vocab[0].vocab
                words = np.ascontiguousarray(values[:, 0])
                found = self._lexemes(vocab).find(words, vocab.strings)
                rows, lexical, lexicon = found
                parts.append(Readings(plan.templates, offsets, rows, lexical, values, lexicon))
        return parts

    @property
    def annotations(self) -> tuple[int, ...]:
        """The spaCy attribute ids of the columns of `Readings.annotations`."""
        return self._plan.annotations

    def readers(self, vocab: Vocab) -> "Sequence[Reader]":
        """The functions of a word's string that the columns of `Readings.lexical` have."""
        return self._lexemes(vocab).readers

    def _lexemes(self, vocab: Vocab) -> "LexemeTable":
        """The table of words, for strings alone: good for all vocabs of a language."""
        getters = vocab.lex_attr_getters  # type: ignore[attr-defined]
        like_num = getters.get(LIKE_NUM, WORD["like_num"])
        if self._table is None or self._table[0] is not like_num:
            from .lexemes import LexemeTable

            functions = {**WORD, "like_num": like_num}
            readers = [
                partial(AFFIX[name], length) if name in AFFIX else functions[name]
                for name, length in self._plan.words
            ]
            self._table = like_num, LexemeTable(readers)
        return self._table[1]


def by_vocab(docs: Sequence[Doc]) -> Iterator[Sequence[Doc]]:
    """Cut Docs into runs of the same vocab."""
    first = 0
    for last in range(1, len(docs) + 1):
        if last == len(docs) or docs[last].vocab is not docs[first].vocab:
            yield docs[first:last]
            first = last
