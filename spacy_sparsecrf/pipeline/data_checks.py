"""Checks of the Docs of training and evaluation, with warnings about probable mistakes."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from spacy.attrs import SENT_START  # type: ignore[import-not-found]
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..crf.corpus.blanks import MOST_BREAKS, count_lines, words_of
from ..crf.corpus.numbering import Longs
from ..crf.corpus.readings import Readings
from ..errors import Errors, SparseCRFError, Warnings, warn
from .targets.entities import Entities
from .targets.scheme import OUTSIDE, typed_labels
from .targets.spans import SpanGroups, SpanTarget, trimmed
from .targets.target import Not, Target, have_same_tokens, string_ids
from .tokenization import MOST_CUT, TokenCuts
from .type_counts import TypeCounts

if TYPE_CHECKING:
    from .settings import Setup

Gold: TypeAlias = Sequence[str | tuple[str, ...] | Not | None]
Case: TypeAlias = dict[str, Any]
"""Values that a message has of a case."""

LANG = "lang"
"""The key of `doc.user_data` for the language given to `convert`."""

# The words of the dummy Doc that spaCy creates if `nlp.initialize` gets no examples.
_MADE_UP = ("x", "y", "z")
_RARE = 0.5  # share of tokens with a value, below which an attribute is rare
_ALMOST_ALL = math.nextafter(1.0, 0.0)
_ANY_LANGUAGE = {"", "xx"}
# Maximum number of gold tokens to tokenize again.
_N_CUT = 20_000
_NO_VALUE = np.uint64(2**64 - 1)


class GoldDoc(NamedTuple):
    """A used Example, and its gold labels.

    labels: of the predicted tokens; reference_labels: of the gold tokens, the same object if the
    tokens are the same.
    """

    setup: "Setup"
    example: Example
    labels: Gold
    reference_labels: Gold


class Check(NamedTuple):
    """A probable mistake in gold annotation.

    name: of the number of its cases; message: of the warning, which is due if the cases are more
    than a share `most` of the number with the name `of`; counts: yields the cases in a Doc, with
    values for the message; by default, the reader counts them.
    """

    name: str
    message: str
    counts: Callable[[GoldDoc], Iterable[Case]] = lambda _: ()
    of: str = "used"
    most: float = 0.0


def _cut_spans(gold: GoldDoc) -> Iterator[Case]:
    """Yield the spans that continue at a blank line, or at the start of a sentence."""
    doc, target = gold.example.predicted, gold.setup.target
    if not isinstance(target, SpanTarget):
        return
    starts = {
        following
        for word, following in pairwise(words_of(doc).tolist())
        if following > word + 1 and count_lines(doc[word + 1 : following].text) > MOST_BREAKS
    }
    if gold.setup.settings.sequences == "sents":
        starts.update(np.flatnonzero(doc.to_array("SENT_START") == 1).tolist())
    if starts:
        # Several labels are alternatives.
        labels = [label if isinstance(label, str) and label else OUTSIDE for label in gold.labels]
        names = tuple(dict.fromkeys(labels))
        ids = np.array([*map(names.index, labels)], np.int32)
        text = doc.text[:60]
        for start, end, _ in target.spans([ids], names).named():
            if not starts.isdisjoint(range(start + 1, end)):
                yield {"text": text}


def _spans_with_blanks(gold: GoldDoc) -> Iterator[Case]:
    """Yield the gold spans that begin or end with blanks."""
    doc, target = gold.example.reference, gold.setup.target
    if not isinstance(target, SpanTarget):
        return
    words = words_of(doc)
    present = target.present(doc) if len(words) < len(doc) else None
    for span in present.spans if present else ():
        if trimmed(span, words) != span:
            yield {"text": doc[span[0] : span[1]].text}


def _docs_without_group(gold: GoldDoc) -> Iterator[Case]:
    """Yield a Doc that lacks the span group of the target."""
    target = gold.setup.target
    if isinstance(target, SpanGroups) and target.key not in gold.example.reference.spans:
        yield {"key": target.key}


def _labels_of_spans(gold: GoldDoc) -> Iterator[Case]:
    """Yield a Doc whose tags are labels of tokens of entities or spans."""
    typed = typed_labels(gold.labels)
    if typed and not isinstance(gold.setup.target, SpanTarget):
        yield {"label": typed[0]}


def _lost_labels(gold: GoldDoc) -> Iterator[Case]:
    """Yield the labels of gold tokens whose aligned predicted tokens all lack a label."""
    if gold.reference_labels is gold.labels:
        return
    doc = gold.example.reference
    text = doc.text[:60]
    for i, label in enumerate(gold.reference_labels):
        if label and not any(gold.labels[int(j)] for j in gold.example.alignment.y2x[i]):
            yield {"word": doc[i].text, "text": text}


CHECKS = (
    Check("cut", Warnings.SCW223, _cut_spans),
    Check("trimmed", Warnings.SCW233, _spans_with_blanks),
    Check("unset", Warnings.SCW227, _docs_without_group),
    Check("typed", Warnings.SCW238, _labels_of_spans),
    Check("unweighted", Warnings.SCW224, of="examples", most=_ALMOST_ALL),
    Check("missing", Warnings.SCW201, of="tokens", most=0.5),
    Check("lost", Warnings.SCW208, _lost_labels, of="gold", most=0.01),
)
"""Checks of gold annotation, in the order of their warnings."""


@dataclass
class DataChecks:
    """Counts of the Docs of a corpus, and checks of Docs that come later, which warn once.

    n: numbers by name: "examples", and of these "used", with a positive weight, and "unweighted",
    without their own `doc_weight`; of the used Docs those "divided" into sentences, their "tokens"
    that are words, their "gold" labels, words with a "missing" label, and the cases of `CHECKS`.
    cases: the first case of each check.
    docs: the position in the corpus after the last token of each Doc, and the beginning of its
    text; only if gold labels must be valid.
    values: of annotations that features read, by attribute: the number of tokens with a value, the
    smallest and the largest value.
    remedy: advice on the config for the annotation that the Docs have, if they have no label.
    is_warned: whether `warn_of_unseen` has warned, or must not because Docs are augmented.
    seen: a 64-bit hash of the words of each gold Doc, the same for any vocab in this process.
    types: counts of the types of gold spans.
    """

    n: Counter[str] = field(default_factory=Counter)
    cases: dict[str, Case] = field(default_factory=dict)
    docs: list[tuple[int, str]] = field(default_factory=list)
    values: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    remedy: str = ""
    is_warned: bool = False
    seen: set[int] = field(default_factory=set)
    types: TypeCounts = field(default_factory=TypeCounts)
    _is_evaluated: bool = False

    @property
    def made_up(self) -> bool:
        """Whether the only example was the dummy Doc that spaCy creates if it gets none."""
        return self.seen == {hash(string_ids(_MADE_UP).tobytes())} and self.n["examples"] == 1

    @property
    def shares(self) -> dict[str, float]:
        """The share of tokens with a value, for attributes that are not missing."""
        return {name: n / self.n["tokens"] for name, (n, *_) in self.values.items() if n}

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
            self.seen.add(_hash_of(doc))
            of_doc = doc.user_data.get(LANG, doc.lang_)
            if len({of_doc, lang} - _ANY_LANGUAGE) > 1:
                text = doc.text[:60]
                warn(Warnings.SCW214.format(name=name, lang=lang, own=of_doc, text=text))
                lang = ""
            if cuts is not None and cuts.n_tokens < _N_CUT:
                cuts.add(doc)
            yield example
        if cuts is not None and cuts.share > MOST_CUT:
            warn(Warnings.SCW220.format(name=name, cuts=cuts))

    def add(self, setup: "Setup", example: Example, gold: Gold) -> None:
        """Count a used example. gold: labels that the target has read, [predicted tokens]."""
        doc, reference = example.predicted, example.reference
        same = have_same_tokens(example)
        labels = gold if same else setup.target.gold(Example(reference, reference))
        self.n["used"] += 1
        self.n["gold"] += sum(map(bool, labels))
        self.n["divided"] += len(doc) > 1 and doc.has_annotation(SENT_START)
        if isinstance(setup.target, SpanTarget) and any(labels):
            begins = (x[2:] for x in labels if isinstance(x, str) and x[:1] in ("B", "U"))
            self.types.add(Counter(begins), reference.user_data)
        gold_doc = GoldDoc(setup, example, gold, labels)
        for check in CHECKS:
            for case in check.counts(gold_doc):
                self.n[check.name] += 1
                self.cases.setdefault(check.name, case)

    def add_words(self, setup: "Setup", docs: Sequence[Doc], ends: Longs) -> None:
        """Count the words of Docs. ends: [D], end of each Doc, in words."""
        if setup.settings.learning.constrained:
            texts = [doc.text[:60] for doc in docs]
            self.docs += zip((self.n["tokens"] + ends).tolist(), texts, strict=True)
        self.n["tokens"] += int(ends[-1])

    def add_values(self, columns: Mapping[str, int], parts: Sequence[Readings]) -> None:
        """Count values of annotations. columns: of annotations, by attribute; 0: no value."""
        for attribute, column in columns.items():
            for part in parts:
                values = part.annotations[:, column]
                values = values[values != 0]
                low, high = int(values.min(initial=_NO_VALUE)), int(values.max(initial=0))
                self._join_values(attribute, (len(values), low, high))

    def _join_values(self, attribute: str, values: tuple[int, int, int]) -> None:
        n, low, high = values
        total, smallest, largest = self.values.get(attribute, (0, low, high))
        self.values[attribute] = total + n, min(smallest, low), max(largest, high)

    def join(self, other: "DataChecks") -> None:
        """Add the counts of further examples."""
        self.docs += [(self.n["tokens"] + end, text) for end, text in other.docs]
        self.n.update(other.n)
        self.types.join(other.types)
        self.cases = other.cases | self.cases
        for attribute, values in other.values.items():
            self._join_values(attribute, values)

    def report(
        self,
        setup: "Setup",
        labels: Sequence[str],
        get_examples: Callable[[], Iterable[Example]],
        idle: Mapping[str, str],
    ) -> None:
        """Check the counts and the labels of a corpus, and warn about probable mistakes.

        get_examples: returns the examples again, if they have no label; idle: pipes that set
        attributes in prediction only, by attribute.
        RAISES: SparseCRFError without examples, and for labels that the target cannot write.
        """
        name, target = setup.name, setup.target
        if not self.n["used"]:
            message = Errors.SC356 if self.n["examples"] else Errors.SC217.format(name=name)
            raise SparseCRFError(message)
        for label in labels:
            target.check_label(label)
        if labels:
            setup.transitions_of(labels)
        is_labelled, names = self.n["missing"] < self.n["tokens"], target.names_of(labels)
        if not (is_labelled and names):
            self.remedy = _remedy(target, get_examples())
        if isinstance(target, SpanTarget) and labels and not names:
            n = self.n["examples"]
            warn(Warnings.SCW216.format(name=name, n=n, remedy=self.remedy))
        if is_labelled:
            self._warn_of_gold(name)
            for text in self.types.messages():
                warn(Warnings.SCW251.format(name=name, text=text))
            if incomplete := self.types.incomplete():
                warn(Warnings.SCW252.format(name=name, types=", ".join(incomplete)))
            self._warn_of_values(name, idle)

    def _warn_of_gold(self, name: str) -> None:
        """Warn about gold annotation that is missing or cannot be used."""
        for check in CHECKS:
            share = self.n[check.name] / max(1, self.n[check.of])
            if share > check.most:
                case = self.cases.get(check.name, {})
                warn(check.message.format(name=name, n=self.n, share=share, **case))
                if check.name == "missing":  # lost labels are missing too
                    return

    def _warn_of_values(self, name: str, idle: Mapping[str, str]) -> None:
        """Warn about attributes of features that training Docs lack, or that only prediction sets.

        Few tokens are part of an entity or a span, and an extension attribute with one value is a
        flag that is false at the other tokens: these may be rare. name: of the component; idle: see
        `report`.
        """
        n_tokens = self.n["tokens"]
        for attribute, (n, low, high) in self.values.items():
            is_flag = attribute.startswith("_.") and low == high
            may_be_rare = is_flag or attribute.startswith(("ent_", "span("))
            case = {"name": name, "attribute": attribute, "n_tokens": n_tokens}
            if not n and attribute not in idle:
                warn(Warnings.SCW205.format(**case))
            elif 0 < n < _RARE * n_tokens and not may_be_rare:
                warn(Warnings.SCW215.format(**case, share=n / n_tokens))
        for attribute, upstream in idle.items():
            warn(Warnings.SCW219.format(name=name, attribute=attribute, upstream=upstream))

    def warn_of_unseen(self, name: str, examples: Sequence[Example]) -> None:
        """Warn component `name`, once, about an update with examples none of which is `seen`."""
        if self.is_warned or not (self.seen and examples):
            return
        if self.seen.isdisjoint(_hash_of(example.reference) for example in examples):
            self.is_warned = True
            text = examples[0].reference.text[:60]
            warn(Warnings.SCW207.format(name=name, n=self.n["examples"], text=text))

    def warn_of_evaluated(
        self, setup: "Setup", labels: Sequence[str], examples: Sequence[Example]
    ) -> None:
        """Warn, once, about an evaluation in training.

        It is on Docs without gold annotation, or with labels that are not among those learnt.
        """
        if self._is_evaluated:
            return
        self._is_evaluated = True
        name, target = setup.name, setup.target
        gold = [label for example in examples for label in target.gold(example)]
        if all(label in (None, "", (), OUTSIDE, target.outside_label) for label in gold):
            what = f"{len(examples)} Docs without gold annotation" if examples else "no Docs"
            warn(Warnings.SCW217.format(name=name, what=what))
        elif unseen := unseen_names(target, gold, labels):
            warn(Warnings.SCW239.format(name=name, unseen=unseen))


def unseen_names(target: Target, gold: Gold, labels: Sequence[str]) -> str:
    """Name the gold labels, or types of spans, that are not among the labels, with counts."""
    named = [label for label in gold if isinstance(label, str) and label]
    if isinstance(target, SpanTarget):
        named = [label[2:] for label in named if label[0] in "BU"]
    learnt = target.names_of(labels)
    return ", ".join(
        f"{name} ({n})" for name, n in Counter(named).most_common() if name not in learnt
    )


def _hash_of(doc: Doc) -> int:
    return hash(doc.to_array("ORTH").tobytes())


def _remedy(target: Target, examples: Iterable[Example]) -> str:
    """Return advice on the config for the annotation that examples have."""
    kinds = dict(advice for example in examples for advice in _advice(example.reference))
    if isinstance(target, Entities) and "entities" in kinds:
        return "`python -m spacy_sparsecrf debug` counts entities that do not fit the tokens."
    if not kinds:
        return "The Docs have no tags, entities or spans: check the file, and how it was made."
    return " ".join(f"The Docs have {kind}: {how}." for kind, how in kinds.items())


def _advice(doc: Doc) -> Iterator[tuple[str, str]]:
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
