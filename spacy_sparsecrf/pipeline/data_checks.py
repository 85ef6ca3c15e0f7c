"""Checks of the Docs of training and evaluation, with warnings about probable mistakes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import Warnings, warn
from ..targets.base import Target, have_same_tokens, string_ids
from ..targets.entities import Entities
from ..targets.scheme import OUTSIDE
from ..targets.spans import SpanTarget
from .batchers import is_augmented
from .tokenization import TokenCuts

Gold = Sequence[str | tuple[str, ...] | None]

LANG = "lang"
"""The key of `doc.user_data` for the language given to `convert`."""

# The words of the dummy Doc that spaCy creates if `nlp.initialize` gets no examples.
_MADE_UP = ("x", "y", "z")
_MOST_LOST = 0.01  # share of gold labels that alignment may lose without a warning
_ANY_LANGUAGE = ("", "xx")
# Maximum number of gold tokens to tokenize again.
_N_CUT = 20_000


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


class AlignmentCount:
    """Counts gold labels, and gold labels lost because predicted and gold tokens differ.

    n_gold: number of gold labels; n_lost: number of gold labels of tokens whose aligned predicted
    tokens all lack a label; word, text: the first such token, and the beginning of its Doc; n_cut,
    cut: number of gold spans that cross the start of a sentence, and the first of their Docs.
    """

    def __init__(self) -> None:
        self.n_gold = self.n_lost = self.n_cut = 0
        self.word = self.text = self.cut = ""

    @property
    def share(self) -> float:
        """The share of gold labels that are lost."""
        return self.n_lost / self.n_gold if self.n_gold else 0.0

    def join(self, other: "AlignmentCount") -> None:
        """Add the counts of further examples."""
        self.n_gold += other.n_gold
        self.n_lost += other.n_lost
        self.n_cut += other.n_cut
        self.cut = self.cut or other.cut
        if not self.text:
            self.word, self.text = other.word, other.text

    def add_cuts(self, doc: Doc, gold: Gold) -> None:
        """Count the spans that continue at the start of a sentence of a predicted Doc."""
        starts = {*np.flatnonzero(doc.to_array("SENT_START") == 1).tolist()}
        counted: set[str] = set()  # types of open spans
        for token, label in enumerate(gold if len(starts) > 1 else ()):
            # Several labels are alternatives.
            own = label if isinstance(label, str) and label else OUTSIDE
            if own.startswith(("B-", "U-")):
                counted.discard(own[2:])
            elif token in starts and own.startswith(("I-", "L-")) and own[2:] not in counted:
                counted.add(own[2:])
                self.n_cut += 1
                self.cut = self.cut or doc.text[:60]

    def add(self, example: Example, gold: Gold, target: Target) -> None:
        """Count an example. gold: labels that the target has read, [predicted tokens]."""
        if have_same_tokens(example):
            self.n_gold += sum(map(bool, gold))
            return
        doc = example.reference
        own = target.gold(Example(doc, doc))
        of_gold_token = example.alignment.y2x
        for i, label in enumerate(own):
            if not label:
                continue
            self.n_gold += 1
            if not any(gold[int(j)] for j in of_gold_token[i]):
                self.n_lost += 1
                if not self.text:
                    self.word, self.text = doc[i].text, doc.text[:60]


@dataclass
class GoldCounts:
    """Counts of training examples.

    n_examples, n_used: number of Docs, and of Docs with a positive weight.
    n_tokens, n_missing: number of tokens of the used Docs, and of tokens without a gold label.
    aligned: counts of gold labels, and of gold labels lost by alignment.
    n_weighted: number of Docs with their own weight, or of all Docs if there is no `doc_weight`.
    n_unset, key: number of used Docs that lack the span group of the target, and its key.
    cuts: how the Docs were divided into sequences, see `observed_cut`.
    """

    n_examples: int = 0
    n_used: int = 0
    n_tokens: int = 0
    n_missing: int = 0
    aligned: AlignmentCount = field(default_factory=AlignmentCount)
    n_weighted: int = 0
    n_unset: int = 0
    key: str = ""
    cuts: set[str] = field(default_factory=set)

    @property
    def cut(self) -> str | None:
        """The division of all Docs into sequences; None if Docs differ or it is unknown."""
        return next(iter(self.cuts)) if len(self.cuts) == 1 else None

    def join(self, other: "GoldCounts") -> None:
        """Add the counts of further examples."""
        self.n_weighted += other.n_weighted
        self.n_examples += other.n_examples
        self.n_used += other.n_used
        self.n_tokens += other.n_tokens
        self.n_missing += other.n_missing
        self.aligned.join(other.aligned)
        self.cuts |= other.cuts
        self.n_unset += other.n_unset
        self.key = self.key or other.key

    def warn_of_gold(self, name: str) -> None:
        """Warn if most tokens lack a gold label, or if alignment loses labels."""
        aligned = self.aligned
        if aligned.n_cut:
            warn(Warnings.SCW223.format(name=name, n=aligned.n_cut, text=aligned.cut))
        if self.n_unset:
            counts = {"n": self.n_unset, "of": self.n_used, "key": self.key}
            warn(Warnings.SCW227.format(name=name, **counts))
        if not self.n_weighted:
            warn(Warnings.SCW224.format(name=name, n=self.n_examples))
        if 2 * self.n_missing > self.n_tokens:
            counts = {"n_missing": self.n_missing, "n_tokens": self.n_tokens}
            warn(Warnings.SCW201.format(name=name, **counts))
        elif aligned.share > _MOST_LOST:
            counts = {"n_lost": aligned.n_lost, "n_gold": aligned.n_gold}
            place = {"share": aligned.share, "word": aligned.word, "text": aligned.text}
            warn(Warnings.SCW208.format(name=name, **counts, **place))


class DataChecks:
    """The examples that `initialize` has read, and checks of those that come later.

    Stores a 64-bit hash of the words of each gold Doc, and the types of annotation that Docs have.
    Each check warns once.

    n_tokens: number of tokens of the examples.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._target: Target | None = None
        self._kinds: dict[str, str] = {}
        self._n = 0
        self.n_tokens = 0
        self._augmented = False
        self._is_warned = self._is_evaluated = False

    def watch(
        self, examples: Iterable[Example], name: str, nlp: Language | None
    ) -> Iterator[Example]:
        """Yield the examples, and record them.

        Warns about the first example whose language differs from the language of the pipeline
        `nlp`, and if the pipeline's tokenizer splits many of the first gold tokens differently.
        name: of the component, for warnings.
        """
        self._augmented = nlp is not None and is_augmented(nlp)
        cuts = None if nlp is None else TokenCuts(nlp.tokenizer)
        lang = None if nlp is None or nlp.lang in _ANY_LANGUAGE else nlp.lang
        for example in examples:
            doc = example.reference
            self._hashes.add(_hash_of(doc))
            self._n += 1
            self._kinds.update(_found(doc))
            own = doc.user_data.get(LANG, doc.lang_)
            if lang is not None and own != lang and own not in _ANY_LANGUAGE:
                values = {"name": name, "lang": lang, "own": own, "text": doc.text[:60]}
                warn(Warnings.SCW214.format(**values))
                lang = None
            if cuts is not None and cuts.n_tokens < _N_CUT:
                cuts.add(doc)
            yield example
        if cuts is not None and cuts.are_many:
            values = {"n": cuts.n_others, "n_tokens": cuts.n_tokens, "words": cuts.examples}
            warn(Warnings.SCW220.format(name=name, **values))

    @property
    def made_up(self) -> bool:
        """Whether the only example was the dummy Doc that spaCy creates if it gets none."""
        return self._n == 1 and self._hashes == {hash(string_ids(_MADE_UP).tobytes())}

    @property
    def remedy(self) -> str:
        """Advice on the config for the annotation that the examples have."""
        if isinstance(self._target, Entities) and "entities" in self._kinds:
            return "`python -m spacy_sparsecrf debug` counts entities that do not fit the tokens."
        if not self._kinds:
            return "The Docs have no tags, entities or spans: check the file, and how it was made."
        return " ".join(f"The Docs have {kind}: {how}." for kind, how in self._kinds.items())

    def check_labels(self, name: str, target: Target, labels: Sequence[str], n_tokens: int) -> None:
        """Record the target and the number of tokens; warn if `name` has no entity or span."""
        self._target, self.n_tokens = target, n_tokens
        if isinstance(target, SpanTarget) and labels and not target.names_of(labels):
            warn(Warnings.SCW216.format(name=name, n=self._n, remedy=self.remedy))

    def warn_of_unseen(self, name: str, examples: Sequence[Example]) -> None:
        """Warn component `name` about an update that has none of the examples of `initialize`.

        There is no warning if an augmenter changes the examples.
        """
        if self._is_warned or self._augmented or not (self._hashes and examples):
            return
        if not any(_hash_of(each.reference) in self._hashes for each in examples):
            self._is_warned = True
            values = {"n": self._n, "text": examples[0].reference.text[:60]}
            warn(Warnings.SCW207.format(name=name, **values))

    def warn_of_evaluated(self, name: str, target: Target, examples: Sequence[Example]) -> None:
        """Warn if component `name` is evaluated in training on Docs without gold annotation."""
        if self._is_evaluated:
            return
        self._is_evaluated = True
        if any(
            label not in (None, "", (), OUTSIDE) for each in examples for label in target.gold(each)
        ):
            return
        what = f"{len(examples)} Docs without gold annotation" if examples else "no Docs"
        warn(Warnings.SCW217.format(name=name, what=what))


def _hash_of(doc: Doc) -> int:
    """Return a hash of a Doc's words, the same for Docs of any vocab in this process."""
    return hash(doc.to_array("ORTH").tobytes())
