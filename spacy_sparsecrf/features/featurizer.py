"""Doc -> hashed observation tests, without a Python string per token."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import LIKE_NUM  # type: ignore[import-not-found]
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.encoded import NO_VALUES, Observations
from ..corpus.readings import Readings
from ..errors import Errors, SparseCRFError
from ..registry import crf_features
from .arguments import Read
from .attributes import PHRASE, WORD
from .defaults import DEFAULT_TEMPLATES
from .phrases import Tokenize, Tokens, check_phrases, check_saved, read_phrases, undoubled
from .plan import Plan, make_plan
from .templates import parse_templates
from .tokens import TokenReader, check_mode, read_tokens, read_values, token_reader, vector_width

if TYPE_CHECKING:
    from .lexemes import LexemeTable, Reader


class PlanFeaturizer(ABC):
    """Hashes the tests that a plan lays out, at each token of Docs.

    templates: the texts that `Plan.first` numbers; start_label: see `Featurizer`.
    The attribute `watch` is None, or a function that is shown each plan and annotations [N, A] that
    are read by it (see `coverage`).
    """

    def __init__(self, templates: Sequence[str], start_label: bool) -> None:
        self.templates = tuple(templates)
        self.start_label = start_label
        # Kept with the one word attribute that depends on the language.
        self._table: tuple[Reader, LexemeTable] | None = None
        self._token_readers: list[TokenReader] | None = None
        self.watch: Callable[[Plan, NDArray[np.uint64]], None] | None = None

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """What is read and hashed, as it is laid out now."""

    @abstractmethod
    def restore(self, learnt: dict[str, Any]) -> None:
        """Take over what was learnt before training."""

    def __setstate__(self, learnt: dict[str, Any]) -> None:
        self.restore(learnt)

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the tests of Docs.

        docs: are not changed; may be empty, and of several vocabs.
        sequences: "sents" (sentences where a Doc has them, else the Doc) or "docs".
        RETURNS: observations of all their tokens, in order.
        Raises SparseCRFError for another value of `sequences`.
        """
        return self.observe(self.readings(docs, sequences))

    def readings(self, docs: Sequence[Doc], sequences: str = "sents") -> list[Readings]:
        """Read the values that are to be tested, for who need not see every test.

        docs, sequences: as for `__call__`.
        RETURNS: the readings of all their tokens, in order, for each run of Docs of one vocab.
        Raises SparseCRFError for another value of `sequences`, and for words and annotations that
            cannot be read.
        """
        check_mode(sequences)
        return [self._read(run, sequences) for run in by_vocab(docs) if any(map(len, run))]

    def observe(self, readings: Sequence[Readings]) -> Observations:
        """Hash the tests of what `readings` returned."""
        templates = self.plan.templates
        hashes = [np.empty((0, len(templates.tests.seeds)), dtype=np.uint64)]
        offsets = [np.zeros(1, dtype=np.int64)]
        values = [np.empty((0, len(templates.value_seeds)), dtype=np.float32)]
        for of_vocab in readings:
            values.append(of_vocab.values)
            hashes.append(of_vocab.hash(templates.tests))
            offsets.append(offsets[-1][-1] + of_vocab.offsets[1:])
        return Observations(
            hashes=np.concatenate(hashes),
            offsets=np.concatenate(offsets),
            unigram_columns=templates.unigram_columns,
            bigram_columns=templates.bigram_columns,
            start_label=self.start_label,
            values=np.concatenate(values) if self.plan.values else NO_VALUES,
            value_keys=templates.value_keys,
        )

    def readers(self, vocab: Vocab) -> "Sequence[Reader]":
        """The functions of a word's string that the columns of `Readings.lexical` have."""
        return self._lexemes(vocab).readers

    def _read(self, docs: Sequence[Doc], sequences: str) -> Readings:
        """Read Docs of one vocab, with at least one token; see `readings`."""
        plan, vocab = self.plan, docs[0].vocab
        offsets, values = read_tokens(docs, plan.annotations, sequences)
        words = np.ascontiguousarray(values[:, 0])
        rows, lexical, lexicon = self._lexemes(vocab).find(words, vocab.strings)
        if plan.tokens:
            if self._token_readers is None:
                self._token_readers = [*map(self._token_reader, plan.tokens)]
            values = np.concatenate([values, *(read(docs) for read in self._token_readers)], axis=1)
        if self.watch is not None:
            self.watch(plan, values)
        return Readings(plan.templates, offsets, rows, lexical, values, lexicon)

    def _token_reader(self, read: Read) -> TokenReader:
        """The function of Docs that an attribute is which is read in Python."""
        return token_reader(read)

    def _lexemes(self, vocab: Vocab) -> "LexemeTable":
        """The table of words, for strings alone: good for all vocabs of a language."""
        getters = vocab.lex_attr_getters  # type: ignore[attr-defined]
        like_num = getters.get(LIKE_NUM, WORD["like_num"])
        if self._table is None or self._table[0] is not like_num:
            from .lexemes import LexemeTable  # imports numba

            self._table = like_num, LexemeTable(self._make_readers(like_num))
        return self._table[1]

    def _make_readers(self, like_num: "Reader") -> list["Reader"]:
        """The functions of a word that are read."""
        from .lexemes import word_reader

        first = self.plan.first
        readers = [
            word_reader(read, first[read] + 1, self.templates[first[read]])
            for read in self.plan.words
        ]
        return [like_num if reader is WORD["like_num"] else reader for reader in readers]


@crf_features("spacy_sparsecrf.Templates.v1")
class Featurizer(PlanFeaturizer):
    """Hashes the tests of templates at each token of Docs.

    A hash depends on the canonical text of the template's tests and on the strings that they
    read: neither on the template's kind and position, nor on process, machine or vocab. Only
    `norm`, `like_num` and annotations depend on the language and on earlier pipes.

    templates: see `features.templates` for the language, `features.attributes` for what can be
        read.
    start_label: whether the first token of a sequence has the pair (start, y) too.
    phrases: what `phrase(name)` reads: by name, the path of a file of one phrase a line, or the
        phrases. They are read by `initialize`, or else, cut at white space, when first needed.
    phrase_attr: what of tokens phrases are compared by, "LOWER" or "ORTH".
    boundaries: how many distances from a sequence are told apart where a template reads tokens
        before or behind it: all that are farther away are like one another; None: all distances.
    Raises SparseCRFError if templates are empty, malformed, or repeated, or settings not valid.
    """

    def __init__(
        self,
        templates: Sequence[str] = DEFAULT_TEMPLATES,
        start_label: bool = True,
        phrases: Mapping[str, Any] | None = None,
        phrase_attr: str = "LOWER",
        boundaries: int | None = None,
    ) -> None:
        if boundaries is not None and (isinstance(boundaries, bool) or boundaries < 0):
            raise SparseCRFError(Errors.SC150.format(value=boundaries))
        super().__init__(templates, start_label)
        phrases = {} if phrases is None else phrases
        check_phrases(phrases, phrase_attr)
        self.phrases = undoubled(phrases)
        self.phrase_attr = phrase_attr
        self.boundaries = boundaries
        self.parsed = parse_templates(templates)
        self._learn(None, 0)
        self._check_names()

    def _check_names(self) -> None:
        """Check that there is a list for each name that templates read."""
        for read, first in self.plan.first.items():
            if read.name == PHRASE and read.argument not in self.phrases:
                where = {"number": first + 1, "template": self.templates[first]}
                known = ", ".join(map(repr, self.phrases)) or "none"
                message = Errors.SC131.format(**where, name=read.argument, known=known)
                raise SparseCRFError(message)

    @property
    def plan(self) -> Plan:
        """The templates as they are laid out now."""
        return self._plan

    @property
    def _phrase_names(self) -> list[str]:
        """The names of the phrases that templates read."""
        return sorted({read.argument for read in self.plan.tokens if read.name == PHRASE})

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles start with an empty table of words."""
        settings = self.templates, self.start_label, self.phrases, self.phrase_attr
        return type(self), (*settings, self.boundaries), self.learnt or None

    # What is learnt before training

    def initialize(self, nlp: Language | None = None) -> None:
        """Read phrases anew, and forget the width of vectors.

        nlp: its tokenizer cuts phrases into tokens; without it they are cut at white space.
        Raises SparseCRFError for files that cannot be read; then all is as before.
        """
        self._learn(self._read_lists(str.split if nlp is None else _tokenize(nlp)), 0)

    @property
    def learnt(self) -> dict[str, Any]:
        """What is to be saved with a trained pipeline, for JSON: tokens of phrases, by the name of
        their list, so that it needs no files; and the width of vectors.
        """
        learnt: dict[str, Any] = {}
        if self._phrase_names and self._lists is not None:
            learnt["phrases"] = self._lists
        if self._vector_width:
            learnt["vector_width"] = self._vector_width
        return learnt

    def restore(self, learnt: dict[str, Any]) -> None:
        """Take over what `learnt` was.

        Raises SparseCRFError where it does not fit the templates.
        """
        check_saved(learnt, self._phrase_names)
        self._learn(learnt.get("phrases"), learnt.get("vector_width", 0))

    def _learn(self, lists: dict[str, list[Tokens]] | None, width: int) -> None:
        """Lay templates out. lists: None where not read yet; width: of vectors, 0 where unknown."""
        self._plan = make_plan(self.parsed, self.start_label, width, self.boundaries)
        self._lists, self._vector_width, self._token_readers = lists, width, None

    def _read_lists(self, tokenize: Tokenize) -> dict[str, list[Tokens]]:
        names = self._phrase_names
        return {name: read_phrases(name, self.phrases[name], tokenize) for name in names}

    # Reading

    def readings(self, docs: Sequence[Doc], sequences: str = "sents") -> list[Readings]:
        """Read the values that are to be tested, see `PlanFeaturizer.readings`.

        The first Docs with tokens tell how many dimensions vectors have, hence how many tests
        there are.
        """
        check_mode(sequences)
        if self.plan.reads_vectors and not self._vector_width and any(map(len, docs)):
            self._learn(self._lists, vector_width(docs))
        return super().readings(docs, sequences)

    def _read(self, docs: Sequence[Doc], sequences: str) -> Readings:
        readings, tests = super()._read(docs, sequences), self.plan.values
        if not tests:
            return readings
        reals = read_values(tests, docs, readings.offsets, self._vector_width)
        return readings._replace(values=reals)

    def _token_reader(self, read: Read) -> TokenReader:
        if self._lists is None:
            self._lists = self._read_lists(str.split)
        return token_reader(read, self._lists, self.phrase_attr, self._vector_width)


def _tokenize(nlp: Language) -> Tokenize:
    """The words that a pipeline's tokenizer finds, as a function of a text."""
    return lambda text: [token.text for token in nlp.tokenizer(text) if not token.is_space]


def by_vocab(docs: Sequence[Doc]) -> Iterator[Sequence[Doc]]:
    """Cut Docs into runs of the same vocab."""
    first = 0
    for last in range(1, len(docs) + 1):
        if last == len(docs) or docs[last].vocab is not docs[first].vocab:
            yield docs[first:last]
            first = last
