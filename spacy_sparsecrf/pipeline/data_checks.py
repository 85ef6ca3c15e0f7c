"""Checks of the Docs of training and evaluation, with warnings about probable mistakes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from spacy.attrs import SENT_START  # type: ignore[import-not-found]
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.numbering import Longs
from ..corpus.readings import Readings
from ..corpus.words import MOST_BREAKS, count_lines, words_of
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..targets.base import Not, Target, have_same_tokens, string_ids
from ..targets.entities import Entities
from ..targets.scheme import OUTSIDE
from ..targets.spans import SpanGroups, SpanTarget, trimmed
from .tokenization import MOST_CUT, TokenCuts

if TYPE_CHECKING:
    from .settings import Setup

Gold = Sequence[str | tuple[str, ...] | Not | None]

LANG = "lang"
"""The key of `doc.user_data` for the language given to `convert`."""

SENTENCES = "sents"  # the setting `sequences`, and what it divides Docs into
# The words of the dummy Doc that spaCy creates if `nlp.initialize` gets no examples.
_MADE_UP = ("x", "y", "z")
_MOST_LOST = 0.01  # share of gold labels that alignment may lose without a warning
_RARE = 0.5  # share of tokens with a value, below which an attribute is rare
_ANY_LANGUAGE = ("", "xx")
# Maximum number of gold tokens to tokenize again.
_N_CUT = 20_000
_NO_VALUE = np.uint64(2**64 - 1)


@dataclass
class DataChecks:
    """Counts of the Docs of a corpus, and checks of Docs that come later, which warn once.

    n_examples, n_used: number of Docs, and of Docs with a positive weight; n_weighted: of Docs with
    their own weight, or of all Docs if there is no `doc_weight`; n_unset: of used Docs that lack
    the span group of the target.
    n_tokens, n_missing: number of words of the used Docs, and of words without a gold label.
    n_gold, n_lost: number of gold labels, and of gold labels of tokens whose aligned predicted
    tokens all lack a label; lost: the first such token, and the beginning of its Doc.
    n_cut, cut: number of gold spans that cross the start of a sentence or a blank line, and the
    beginning of the first of their Docs.
    n_trimmed, trimmed: number of gold spans that begin or end with blanks, and the text of one.
    has_sentences: whether Docs had sentence boundaries.
    docs: the position in the corpus after the last token of each Doc, and the beginning of its
    text; only if gold labels must be valid.
    values: of annotations that features read, by attribute: the number of tokens with a value, the
    smallest and the largest value.
    remedy: advice on the config for the annotation that the Docs have, if they have no label.
    is_warned: whether `warn_of_unseen` has warned, or must not because Docs are augmented.
    seen: a 64-bit hash of the words of each gold Doc, the same for any vocab in this process.
    """

    n_examples: int = 0
    n_used: int = 0
    n_weighted: int = 0
    n_unset: int = 0
    n_tokens: int = 0
    n_missing: int = 0
    n_gold: int = 0
    n_lost: int = 0
    lost: tuple[str, ...] = ()
    n_cut: int = 0
    cut: str = ""
    n_trimmed: int = 0
    trimmed: str = ""
    has_sentences: bool = False
    docs: list[tuple[int, str]] = field(default_factory=list)
    values: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    remedy: str = ""
    is_warned: bool = False
    seen: set[int] = field(default_factory=set)
    _is_evaluated: bool = False

    @property
    def made_up(self) -> bool:
        """Whether the only example was the dummy Doc that spaCy creates if it gets none."""
        return self.seen == {hash(string_ids(_MADE_UP).tobytes())} and self.n_examples == 1

    @property
    def shares(self) -> dict[str, float]:
        """The share of tokens with a value, for attributes that are not missing."""
        return {name: n / self.n_tokens for name, (n, *_) in self.values.items() if n}

    def watch(
        self, name: str, get_examples: Callable[[], Iterable[Example]], nlp: Language | None
    ) -> Iterator[Example]:
        """Yield the training examples of component `name`, and record them.

        Warns about the first example whose language differs from the language of the pipeline
        `nlp`, and if the pipeline's tokenizer splits many of the first gold tokens differently.
        RAISES: SparseCRFError for another type than examples.
        """
        if not callable(get_examples):
            raise SparseCRFError(Errors.SC216.format(name=name, got=type(get_examples)))
        cuts = None if nlp is None else TokenCuts(nlp.tokenizer)
        lang = "" if nlp is None else nlp.lang
        for example in get_examples():
            if not isinstance(example, Example):
                raise SparseCRFError(Errors.SC216.format(name=name, got=type(example)))
            doc = example.reference
            self.seen.add(hash(doc.to_array("ORTH").tobytes()))
            own = doc.user_data.get(LANG, doc.lang_)
            if own != lang and not {own, lang}.intersection(_ANY_LANGUAGE):
                values = {"name": name, "lang": lang, "own": own, "text": doc.text[:60]}
                warn(Warnings.SCW214.format(**values))
                lang = ""
            if cuts is not None and cuts.n_tokens < _N_CUT:
                cuts.add(doc)
            yield example
        if cuts is not None and cuts.share > MOST_CUT:
            values = {"n": cuts.n_others, "n_tokens": cuts.n_tokens, "words": cuts.examples}
            warn(Warnings.SCW220.format(name=name, **values))

    def add(self, setup: "Setup", example: Example, gold: Gold) -> None:
        """Count a used example. gold: labels that the target has read, [predicted tokens]."""
        doc, target, own = example.predicted, setup.target, example.reference
        self.n_used += 1
        if same := have_same_tokens(example):
            self.n_gold += sum(map(bool, gold))
        else:
            self._add_lost(example, gold, target)
        self.has_sentences |= len(doc) > 1 and doc.has_annotation(SENT_START)
        if isinstance(target, SpanGroups):
            self.n_unset += target.key not in own.spans
        if isinstance(target, SpanTarget):
            words = words_of(doc)
            self._add_cuts(doc, words, gold, target, setup.settings.sequences == SENTENCES)
            self._add_trimmed(own, words if same else words_of(own), target)

    def _add_lost(self, example: Example, gold: Gold, target: Target) -> None:
        """Count gold labels of tokens that differ from predicted tokens."""
        doc = example.reference
        for i, label in enumerate(target.gold(Example(doc, doc))):
            self.n_gold += bool(label)
            if label and not any(gold[int(j)] for j in example.alignment.y2x[i]):
                self.n_lost += 1
                self.lost = self.lost or (doc[i].text, doc.text[:60])

    def add_words(self, setup: "Setup", docs: Sequence[Doc], ends: Longs) -> None:
        """Count the words of Docs. ends: [D], end of each Doc, in words."""
        if setup.settings.learning.constrained:
            texts = [doc.text[:60] for doc in docs]
            self.docs += zip((self.n_tokens + ends).tolist(), texts, strict=True)
        self.n_tokens += int(ends[-1])

    def _add_trimmed(self, doc: Doc, words: Longs, target: SpanTarget) -> None:
        """Count the spans of a gold Doc that begin or end with blanks."""
        present = target.present(doc) if len(words) < len(doc) else None
        for span in () if present is None else present.spans:
            if trimmed(span, words) != span:
                self.n_trimmed += 1
                self.trimmed = self.trimmed or doc[span[0] : span[1]].text

    def _add_cuts(
        self, doc: Doc, words: Longs, gold: Gold, target: SpanTarget, sentences: bool
    ) -> None:
        """Count the spans that continue at a blank line, or the start of a sentence, of a Doc."""
        apart = pairwise(words.tolist() if len(words) < len(doc) else ())
        blanks = ((after, doc[word + 1 : after].text) for word, after in apart if after > word + 1)
        starts = {after for after, text in blanks if count_lines(text) > MOST_BREAKS}
        if sentences:
            starts.update(np.flatnonzero(doc.to_array("SENT_START") == 1).tolist())
        if starts:
            # Several labels are alternatives.
            labels = [own if isinstance(own, str) and own else OUTSIDE for own in gold]
            names = tuple(dict.fromkeys(labels))
            ids = np.array([names.index(own) for own in labels], np.int32)
            for first, end, _ in target.spans([ids], names).named():
                if not starts.isdisjoint(range(first + 1, end)):
                    self.n_cut += 1
                    self.cut = self.cut or doc.text[:60]

    def add_values(self, columns: Mapping[str, int], parts: Sequence[Readings]) -> None:
        """Count values of annotations. columns: of annotations, by attribute; 0: no value."""
        for name, column in columns.items():
            for part in parts:
                own = part.annotations[:, column]
                own = own[own != 0]
                values = len(own), int(own.min(initial=_NO_VALUE)), int(own.max(initial=0))
                self._add_values(name, *values)

    def _add_values(self, name: str, n: int, low: int, high: int) -> None:
        before, smallest, largest = self.values.get(name, (0, low, high))
        self.values[name] = before + n, min(smallest, low), max(largest, high)

    def join(self, other: "DataChecks") -> None:
        """Add the counts of further examples."""
        self.docs += [(self.n_tokens + end, text) for end, text in other.docs]
        for name, value in vars(other).items():
            if type(value) is int:
                setattr(self, name, getattr(self, name) + value)
        self.lost, self.cut = self.lost or other.lost, self.cut or other.cut
        self.trimmed = self.trimmed or other.trimmed
        self.has_sentences |= other.has_sentences
        for name, values in other.values.items():
            self._add_values(name, *values)

    def report(
        self, setup: "Setup", labels: Sequence[str], get_examples: Callable[[], Iterable[Example]]
    ) -> None:
        """Check the counts and the labels of a corpus, and warn about probable mistakes.

        get_examples: returns the examples again, if they have no label.
        RAISES: SparseCRFError without examples, and for labels that the target cannot write.
        """
        name, target = setup.name, setup.target
        if not self.n_used:
            message = Errors.SC356 if self.n_examples else Errors.SC217.format(name=name)
            raise SparseCRFError(message)
        for label in labels:
            target.check_label(label)
        if labels:
            setup.valid_transitions(labels)
        if self.n_missing == self.n_tokens or not target.names_of(labels):
            self.remedy = _remedy(target, get_examples())
        if isinstance(target, SpanTarget) and labels and not target.names_of(labels):
            warn(Warnings.SCW216.format(name=name, n=self.n_examples, remedy=self.remedy))
        if self.n_missing < self.n_tokens:
            self._warn_of_gold(setup)

    def _warn_of_gold(self, setup: "Setup") -> None:
        """Warn about gold annotation that is missing or cannot be used."""
        name, key = setup.name, getattr(setup.target, "key", "")
        share = self.n_lost / max(1, self.n_gold)
        if self.n_cut:
            warn(Warnings.SCW223.format(name=name, n=self.n_cut, text=self.cut))
        if self.n_trimmed:
            warn(Warnings.SCW233.format(name=name, n=self.n_trimmed, text=self.trimmed))
        if self.n_unset:
            warn(Warnings.SCW227.format(name=name, n=self.n_unset, of=self.n_used, key=key))
        if not self.n_weighted:
            warn(Warnings.SCW224.format(name=name, n=self.n_examples))
        if 2 * self.n_missing > self.n_tokens:
            counts = {"n_missing": self.n_missing, "n_tokens": self.n_tokens}
            warn(Warnings.SCW201.format(name=name, **counts))
        elif share > _MOST_LOST:
            word, text = self.lost
            values = {"n_lost": self.n_lost, "n_gold": self.n_gold, "share": share}
            warn(Warnings.SCW208.format(name=name, **values, word=word, text=text))

    def warn_of_values(self, name: str, idle: Mapping[str, str]) -> None:
        """Warn about attributes of features that training Docs lack, or that only prediction sets.

        Few tokens are part of an entity or a span, and an extension attribute with one value is a
        flag that is false at the other tokens: these may be rare. name: of the component; idle:
        pipes that set attributes in prediction only.
        """
        for attribute, (n, low, high) in self.values.items():
            values = {"name": name, "attribute": attribute, "n_tokens": self.n_tokens}
            share, is_flag = n / max(1, self.n_tokens), attribute.startswith("_.") and low == high
            may_be_rare = is_flag or attribute.startswith(("ent_", "span("))
            if not n and attribute not in idle:
                warn(Warnings.SCW205.format(**values))
            elif n and share < _RARE and not may_be_rare:
                warn(Warnings.SCW215.format(**values, share=share))
        for attribute, upstream in idle.items():
            warn(Warnings.SCW219.format(name=name, attribute=attribute, upstream=upstream))

    def warn_of_unseen(self, name: str, examples: Sequence[Example]) -> None:
        """Warn component `name` about an update without examples that are `seen`, but once."""
        if self.seen and examples and not self.is_warned:
            self.is_warned = True
            values = {"n": self.n_examples, "text": examples[0].reference.text[:60]}
            warn(Warnings.SCW207.format(name=name, **values))

    def warn_of_evaluated(self, name: str, target: Target, examples: Sequence[Example]) -> None:
        """Warn if component `name` is evaluated in training on Docs without gold annotation."""
        if self._is_evaluated:
            return
        self._is_evaluated = True
        labels = (label for each in examples for label in target.gold(each))
        if any(label not in (None, "", (), OUTSIDE) for label in labels):
            return
        what = f"{len(examples)} Docs without gold annotation" if examples else "no Docs"
        warn(Warnings.SCW217.format(name=name, what=what))


def _remedy(target: Target, examples: Iterable[Example]) -> str:
    """Return advice on the config for the annotation that examples have."""
    kinds = {kind: how for example in examples for kind, how in _found(example.reference)}
    if isinstance(target, Entities) and "entities" in kinds:
        return "`python -m spacy_sparsecrf debug` counts entities that do not fit the tokens."
    if not kinds:
        return "The Docs have no tags, entities or spans: check the file, and how it was made."
    return " ".join(f"The Docs have {kind}: {how}." for kind, how in kinds.items())


def _found(doc: Doc) -> Iterator[tuple[str, str]]:
    """Yield each type of annotation that a Doc has, and how to learn it."""
    if doc.to_array("ENT_TYPE").any():
        yield "entities", "use `python -m spacy_sparsecrf config ner`"
    for key, group in doc.spans.items():
        if len(group):
            where = f'with key = "{key}" in [components.chunks.target]'
            yield f"doc.spans[{key!r}]", f"use `python -m spacy_sparsecrf config spans` {where}"
    if doc.to_array("TAG").any():
        yield "tags", "use `python -m spacy_sparsecrf config tagger`"
    elif doc.to_array("POS").any():
        yield "parts of speech", 'set attr = "pos" in the target of `config tagger`'
