"""Doc -> hashed observation features, without a Python string per token."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.attrs import LIKE_NUM, LOWER  # type: ignore[import-not-found]
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...crf.corpus.encoded import NO_VALUES, Observations
from ...crf.corpus.numbering import Longs, Singles
from ...crf.corpus.readings import Division, Readings, kept_of
from ...crf.model.names import ALWAYS
from ...errors import Errors, SparseCRFError, Warnings, warn
from ...registry import crf_features
from . import tokens
from .attributes import document
from .attributes.attribute import (
    Attribute,
    PhraseList,
    Sources,
    TokenReader,
    Value,
    Values,
    WordReader,
)
from .attributes.clusters import OF_WORDS, Cluster, LabelsOfWord
from .attributes.phrases import Phrase, restored, saved
from .attributes.word_vectors import BinnedVector, RealVector, width_of_vectors
from .attributes.words import FUNCTIONS, seen
from .class_sources import check_sources, read_classes
from .classes import WordClasses
from .defaults import DEFAULT_TEMPLATES
from .phrase_sources import Tokenize, check_phrases, read_phrases, undoubled
from .plan import TemplatePlan, make_plan
from .templates import Conjunction, Template, parse_templates, without_sets
from .tokens import Alone

if TYPE_CHECKING:
    from .lexemes import LexemeTable


class PlanFeaturizer:
    """Base class of featurizers, which hash the features of a plan at each token of Docs.

    templates: the texts that `TemplatePlan.first` indexes; start_label: see `Featurizer`.
    """

    seen: Callable[[str], str] = staticmethod(seen)
    """The text of a word that attributes read."""

    def __init__(self, templates: Sequence[str], start_label: bool) -> None:
        self.templates = tuple(templates)
        self.start_label = start_label
        # With `like_num`, the only word attribute that depends on the language.
        self._table: tuple[Callable[[str], Value], LexemeTable] | None = None
        self.token_readers: list[TokenReader] = []

    @cached_property
    def plan(self) -> TemplatePlan:
        """The current layout of attributes and hashed features."""
        raise NotImplementedError

    @cached_property
    def parsed(self) -> Sequence[Conjunction]:
        """The templates or patterns, in order."""
        raise NotImplementedError

    @property
    def constant_names(self) -> list[str]:
        """The names of the features that occur at every token."""
        return [ALWAYS]

    @property
    def names_of_cells(self) -> Callable[..., Any] | None:
        """Factory of feature names, with the arguments of `CellNames`; None for `CellNames`."""
        return None

    learnt: Any
    """The data learnt before training, JSON-able except for `clusters`."""

    def initialize(self, nlp: Language | None = None) -> None:
        """Learn again."""
        raise NotImplementedError

    def restore(self, learnt: dict[str, Any]) -> None:
        """Restore the data learnt before training."""
        raise NotImplementedError

    def __setstate__(self, learnt: dict[str, Any]) -> None:
        self.restore(learnt)

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs.

        docs: not modified; may be empty, and of several vocabs.
        sequences: "sents" (sentences if a Doc has them, otherwise the whole Doc) or "docs".
        RETURNS: observations of all words, in order.
        RAISES: SparseCRFError for another value of `sequences`.
        """
        return self.observe(self.readings(docs, sequences))

    def readings(
        self, docs: Sequence[Doc], sequences: str = "sents", alone: Alone = None
    ) -> list[Readings]:
        """Read the attribute values of Docs, without hashing features.

        The first Docs with tokens determine the width of vectors, hence the number of features.

        docs, sequences: as for `__call__`; alone: see `Alone`.
        RETURNS: the readings of all words, in order, one for each run of `by_vocab`.
        RAISES: SparseCRFError for another value of `sequences`, and for words and annotations that
            cannot be read.
        """
        if sequences not in (modes := tokens.MODES):
            raise SparseCRFError(Errors.SC105.format(value=sequences, known=", ".join(modes)))
        return [self._read(run, sequences, alone) for run in by_vocab(docs)]

    def observe(self, readings: Sequence[Readings]) -> Observations:
        """Hash the features of the output of `readings`."""
        templates = readings[0].templates if readings else self.plan.first_templates
        nothing = np.empty((0, len(templates.conjunctions.seeds)), dtype=np.uint64)
        hashes = [of_vocab.hash(templates.conjunctions) for of_vocab in readings]
        offsets = [np.zeros(1, dtype=np.int64)]
        values = [np.empty((0, len(templates.value_seeds)), dtype=np.float32)]
        for of_vocab in readings:
            values.append(of_vocab.values)
            offsets.append(offsets[-1][-1] + of_vocab.offsets[1:])
        return Observations(
            hashes=hashes[0] if len(hashes) == 1 else np.concatenate([nothing, *hashes]),
            offsets=np.concatenate(offsets),
            unigram_columns=templates.unigram_columns,
            families=templates.conjunctions.families,
            bigram_columns=templates.bigram_columns,
            start_label=self.start_label,
            values=np.concatenate(values) if self.plan.real.attributes else NO_VALUES,
            value_keys=templates.value_keys,
            kept=kept_of(readings),
        )

    def words(self, vocab: Vocab, docs: Sequence[Doc] = ()) -> "LexemeTable":
        """Return the table of words, which depends only on strings and language, not on a vocab.

        Its `readers` are functions of a word's string that fill the columns of `Readings.lexical`.
        docs: with at least one token, if none have been read before.
        """
        getters = vocab.lex_attr_getters  # type: ignore[attr-defined]
        like_num = getters.get(LIKE_NUM, FUNCTIONS["like_num"])
        table = self._table
        if table is None or table[0] is not like_num:
            from .lexemes import LexemeTable  # imports numba

            self._prepare(vocab.lang, docs)
            sources = self._sources({**FUNCTIONS, "like_num": like_num})
            self.token_readers = [read.reader(sources) for read in self.plan.tokens]
            widths = [read.width() for read in self.plan.words]
            readers = self._word_readers(sources)
            table = self._table = like_num, LexemeTable(readers, widths, self.seen)
        return table[1]

    def where(self, read: Attribute) -> dict[str, Any]:
        """Return number and text of the first template that reads an attribute, for messages."""
        position = self.plan.first[read]
        return {"number": position + 1, "template": self.templates[position]}

    def _read(self, docs: Sequence[Doc], sequences: str, alone: Alone) -> Readings:
        """Read Docs of one vocab, with at least one token; see `readings`."""
        vocab = docs[0].vocab
        table = self.words(vocab, docs)
        plan = self.plan
        values = tokens.read_annotations(docs, plan.annotations)
        rows, lexical, kinds, lexicon = table.find(values, vocab.strings)
        offsets, division = tokens.sequences_of(
            docs,
            values,
            rows=rows,
            kinds=kinds,
            sentences=sequences == "sents",
            glued=plan.glued,
            breaks=plan.breaks,
        )
        if alone is not None:
            offsets = tokens.joined(offsets, division.ends, [doc in alone for doc in docs])
        token_of_word = division.kept
        if token_of_word is not None:
            rows = rows[: len(token_of_word)]
            values = values[: len(token_of_word)]
        if plan.tokens:
            values = self._with_tokens(docs, values, division)
        return Readings(
            templates=plan.first_templates,
            offsets=offsets,
            words=rows,
            lexical=lexical,
            annotations=values,
            lexicon=lexicon,
            values=self._real_values(docs, offsets, token_of_word),
            division=division,
        )

    def _with_tokens(self, docs: Sequence[Doc], values: Values, division: Division) -> Values:
        """Append the values of attributes that are read in Python to annotations [N, A]."""
        words = slice(None) if division.kept is None else division.kept
        columns = (reader(docs)[words] for reader in self.token_readers)
        values = np.concatenate([values, *columns], axis=1)
        if self.plan.document:
            lower = self.plan.annotations.index(LOWER)
            document.fill(values, self.plan.document, lower=lower, division=division)
        return values

    def _real_values(
        self, docs: Sequence[Doc], offsets: Longs, token_of_word: Longs | None
    ) -> Singles:
        """Read the real-valued features of words: [N, V]."""
        plan = self.plan
        if not plan.real.attributes:
            return NO_VALUES
        return tokens.read_values(
            plan.real.attributes,
            docs,
            offsets=offsets,
            token_of_word=token_of_word,
            vector_width=plan.vector_width,
        )

    def _prepare(self, lang: str, docs: Sequence[Doc]) -> None:
        """Learn what readers need, if it is not known. docs: as for `words`."""
        return None

    def _sources(self, functions: Mapping[str, Callable[[str], Value]]) -> Sources:
        """Return the sources of attributes. functions: of words, in the language."""
        return Sources(
            functions=functions,
            where=self.where,
            phrases={},
            phrase_attr="LOWER",
            classes={},
            word_labels=None,
            vector_width=0,
        )

    def _word_readers(self, sources: Sources) -> list[WordReader]:
        """Return the readers of the plan's word attributes."""
        return [read.reader(sources) for read in self.plan.words]


@crf_features("spacy_sparsecrf.Templates.v1")
class Featurizer(PlanFeaturizer):
    """Featurizer that hashes the features of templates at each token of Docs.

    A hash depends only on the canonical text of the template's attributes and on the values that
    they read, not on the template's kind or position, nor on process, machine or vocab. Of the
    values, only `norm`, `like_num` and annotations depend on the language and on earlier pipes.

    templates: see `features.templates` for the syntax, `attributes.table` for the attributes.
        The attribute `written_out` has the templates of their sets instead of the sets.
    start_label: whether the first token of a sequence has the pair (start, y), too.
    phrases: lists for `phrase(name)` by name: the path of a file with one phrase per line, or a
        list of phrases, see `phrase_sources`. `initialize` reads them; otherwise they are read at
        first use, and split at white space.
    phrase_attr: token attribute by which phrases are compared, "LOWER", "ORTH" or "FOLD".
    clusters: word classes for `cluster(name)` by name: the settings of a source, see
        `class_sources`. `initialize` reads them; otherwise they are read at first use.
    boundaries: number of distances that are distinguished for positions outside a sequence;
        positions farther away are treated alike. None distinguishes all distances.
    RAISES: SparseCRFError if templates are empty, malformed or repeated, or settings are invalid.
    """

    parsed: Sequence[Template]

    def __init__(
        self,
        templates: Sequence[str] = DEFAULT_TEMPLATES,
        start_label: bool = True,
        phrases: Mapping[str, Any] | None = None,
        phrase_attr: str = "LOWER",
        boundaries: int | None = None,
        clusters: Mapping[str, Any] | None = None,
    ) -> None:
        if boundaries is not None and (isinstance(boundaries, bool) or boundaries < 0):
            raise SparseCRFError(Errors.SC150.format(value=boundaries))
        super().__init__(templates, start_label)
        phrases = {} if phrases is None else phrases
        check_phrases(phrases, phrase_attr)
        self.phrases = undoubled(phrases)
        self.phrase_attr = phrase_attr
        self.clusters: dict[str, Any] = {}
        if clusters is not None:
            check_sources(clusters)
            self.clusters = undoubled(clusters)
        self.boundaries = boundaries
        self.parsed = parse_templates(templates)
        self.plan = make_plan(self.parsed, start_label, boundaries=boundaries)
        self.written_out = without_sets(self.templates, self.parsed)
        self._phrase_lists = self._check_keys(Phrase, self.phrases)
        self._class_lists = self._check_keys(Cluster, self.clusters)
        self.reads_word_labels = any(isinstance(read, LabelsOfWord) for read in self.plan.first)
        self._lists: dict[str, PhraseList] | None = None if self._phrase_lists else {}
        self._classes: dict[str, WordClasses] | None = None if self._class_lists else {}
        self._word_labels: WordClasses | None = None
        self.earlier: list[WordClasses] = []

    def _check_keys(self, of: type[Phrase] | type[Cluster], lists: Mapping[str, Any]) -> list[str]:
        """Return the keys of the lists that templates read, ascending.

        of: the attribute that reads them; lists: of the setting. RAISES: SparseCRFError if a key is
        missing there.
        """
        keys: set[str] = set()
        for read in self.plan.first:
            if not isinstance(read, of):
                continue
            if read.key not in lists:
                known = ", ".join(map(repr, lists)) or "none"
                message = Errors.SC131.format(
                    **self.where(read), name=read.key, known=known, setting=of.SETTING
                )
                raise SparseCRFError(message)
            keys.add(read.key)
        return sorted(keys)

    @property
    def stacked(self) -> Collection[Attribute]:
        """Attributes of a first-stage model that templates read."""
        return self.plan.stacked

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments for copies and pickles, which start with an empty table of words."""
        settings = (
            self.templates,
            self.start_label,
            self.phrases,
            self.phrase_attr,
            self.boundaries,
            self.clusters,
        )
        return type(self), settings, self.learnt or None

    # Data learnt before training

    def initialize(self, nlp: Language | None = None) -> None:
        """Read phrases and word classes again, and reset the width of vectors.

        nlp: pipeline whose tokenizer splits phrases into tokens; None splits at white space.
        RAISES: SparseCRFError for files that cannot be read; the state then stays unchanged.
        """
        if self.phrases or self.clusters:
            self._read_again(nlp)
        self._word_labels = None
        self._lay_out(0)

    def _read_again(self, nlp: Language | None) -> None:
        """Read phrases and word classes again; warn about those that no template reads."""
        unread = sorted({*self.phrases} - {*self._phrase_lists})
        unread += sorted({*self.clusters} - {*self._class_lists})
        if unread:
            warn(Warnings.SCW226.format(names=", ".join(map(repr, unread))))
        cut = str.split if nlp is None else nlp.tokenizer
        lists = self._read_lists(lambda text: [w for w in map(str, cut(text)) if not w.isspace()])
        # Lookup tables need the language, which without a pipeline is known only from Docs.
        classes = None if nlp is None else self._read_classes(nlp.lang or "")
        self._lists = lists
        self._classes = classes

    @property
    def learnt(self) -> dict[str, Any]:
        """Data to save with a trained pipeline, so that it needs no source files.

        Lists of phrases by name, width of vectors, and word classes by name; all but the classes
        are for JSON.
        """
        learnt: dict[str, Any] = {}
        if self._lists:
            learnt["phrases"] = saved(self._lists)
        if self.plan.vector_width:
            learnt["vector_width"] = self.plan.vector_width
        if self._classes:
            learnt["clusters"] = self._classes
        if self._word_labels is not None:
            learnt["clusters"] = {**learnt.get("clusters", {}), OF_WORDS: self._word_labels}
        return learnt

    def restore(self, learnt: dict[str, Any]) -> None:
        """Restore a value of `learnt`.

        RAISES: SparseCRFError if it does not fit the templates.
        """
        lists = restored(learnt, self._phrase_lists)
        classes = dict(learnt.get("clusters", {}))
        labels = classes.pop(OF_WORDS, None)
        if classes:
            for name in self._class_lists:
                if name not in classes:
                    reason = f"the word classes {name!r} are missing"
                    raise SparseCRFError(Errors.SC137.format(reason=reason))
            self._check_bits(classes)
        self._lists = lists
        self._classes = classes or None
        self._word_labels = labels
        self._lay_out(learnt.get("vector_width", 0))

    def _lay_out(self, width: int) -> None:
        """Lay out templates for vectors of another width, 0 if unknown; make readers again."""
        if width != self.plan.vector_width:
            self.plan = make_plan(self.parsed, self.start_label, width, self.boundaries)
        self._table = None

    def _read_lists(self, tokenize: Tokenize) -> dict[str, PhraseList]:
        return {
            name: read_phrases(name, self.phrases[name], tokenize) for name in self._phrase_lists
        }

    def _read_classes(self, lang: str) -> dict[str, WordClasses]:
        classes = {
            name: read_classes(name, self.clusters[name], lang) for name in self._class_lists
        }
        self._check_bits(classes)
        return classes

    def _check_bits(self, classes: Mapping[str, WordClasses]) -> None:
        """Check that templates read numbers of bits only from classes that are paths."""
        for read in self.plan.first:
            if isinstance(read, Cluster) and read.bits and not classes[read.key].are_paths:
                raise SparseCRFError(Errors.SC147.format(**self.where(read), name=read.key))

    def take_word_labels(self, labels: WordClasses) -> None:
        """Set the labels of words that templates read; other words have those of `earlier`."""
        self._word_labels = reduce(WordClasses.joined, self.earlier, labels)
        self._table = None

    @property
    def prunes(self) -> bool:
        """Return whether to prune the saved word classes that templates read."""
        return any(self.clusters[name].get("prune", False) for name in self._class_lists)

    def pruned_classes(self, parts: Iterable[tuple[str, Any]]) -> dict[str, WordClasses]:
        """Return the word classes to save, pruned if their setting `prune` is true.

        parts: attributes of active weights, as in feature names, and the values that they read.
        """
        placed = {attribute for template in self.parsed for attribute in template.attributes}
        clusters = {str(attribute): attribute.read for attribute in placed}
        read_values: dict[str, dict[int, set[str]]] = {name: {} for name in self._class_lists}
        for attribute, value in parts:
            read = clusters.get(attribute)
            if isinstance(read, Cluster) and isinstance(value, str):
                read_values[read.key].setdefault(read.bits, set()).add(value)
        pruned = {
            name: classes.pruned(read_values[name]) if self.clusters[name].get("prune") else classes
            for name, classes in (self._classes or {}).items()
            if name in read_values
        }
        return pruned if self._word_labels is None else {**pruned, OF_WORDS: self._word_labels}

    # Reading

    def _prepare(self, lang: str, docs: Sequence[Doc]) -> None:
        reads_vectors = any(isinstance(read, BinnedVector | RealVector) for read in self.plan.first)
        if reads_vectors and not self.plan.vector_width:
            self._lay_out(width_of_vectors(docs))
        if self._classes is None:
            self._classes = self._read_classes(lang)
        if self._lists is None:
            self._lists = self._read_lists(str.split)

    def _sources(self, functions: Mapping[str, Callable[[str], Value]]) -> Sources:
        return Sources(
            functions=functions,
            where=self.where,
            phrases=self._lists or {},
            phrase_attr=self.phrase_attr,
            classes=self._classes or {},
            word_labels=self._word_labels,
            vector_width=self.plan.vector_width,
        )


def by_vocab(docs: Sequence[Doc]) -> list[Sequence[Doc]]:
    """Return the runs of consecutive Docs with the same vocab that have tokens."""
    if len(docs) == 1:
        return [docs] if len(docs[0]) else []
    runs = [list(run) for _, run in groupby(docs, key=attrgetter("vocab"))]
    return [run for run in runs if any(map(len, run))]
