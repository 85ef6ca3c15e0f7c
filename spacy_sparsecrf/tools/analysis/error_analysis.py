"""Error analysis: compare predictions with gold annotation, and explain the errors."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ...crf.corpus.numbering import Ints
from ...errors import Errors, SparseCRFError, refused_option
from ...pipeline.component import SparseCRFPipe
from ...pipeline.targets.matching import KINDS, Group, Matches, Score
from ...pipeline.targets.scheme import OUTSIDE
from ...pipeline.targets.spans import Span, SpanTarget
from ...pipeline.targets.target import Not
from ...progress import Task
from ..pages.rendering import Page
from .explanation import Contribution, LabelledSpan, TokenExplanation

BATCH_SIZE = 128  # Docs predicted at once
N_AROUND = 8  # tokens shown before and after a mistake
N_EXAMPLES = 3  # shown for each confusion
N_LISTED = 30  # confusions that a page lists

Labels = Sequence[str | None]


@dataclass(frozen=True)
class Mistake:
    """Gold and predicted spans that overlap; a token's label counts as a span of one token.

    Attributes
    ----------
    doc : int
        Index of the Doc.
    before, words, after : tuple of str
        Texts of the tokens before, in and after the spans.
    gold, predicted : tuple of LabelledSpan
        The spans, () for none.
    pair : (str, str)
        Gold and predicted label of the largest overlap, "" for none.
    fault : str
        "label", "boundaries", "label and boundaries", "missed" or "spurious".
    tokens : tuple of TokenExplanation
        Tokens with wrong labels, with the contributions to the predicted label compared with
        the gold label.

    Examples
    --------
    >>> doc = nlp.make_doc("They sent Oslo to Berlin.")
    >>> entities = [(10, 14, "PERSON"), (18, 24, "CITY")]
    >>> gold = Example.from_dict(doc, {"entities": entities})
    >>> [mistake] = find_mistakes(pipe, [gold]).mistakes
    >>> mistake.words, mistake.labels, mistake.fault
    (('Oslo',), ['PERSON'], 'missed')
    """

    doc: int
    before: tuple[str, ...] = field(repr=False)
    words: tuple[str, ...]
    after: tuple[str, ...] = field(repr=False)
    gold: tuple[LabelledSpan, ...]
    predicted: tuple[LabelledSpan, ...]
    pair: tuple[str, str]
    fault: str
    tokens: tuple[TokenExplanation, ...] = field(repr=False)

    def strongest(self, n: int) -> list[tuple[str, Contribution]]:
        """Return the n strongest contributions in favour of the mistake, and the n against it.

        Parameters
        ----------
        n : int
            Number of contributions on each side.

        Returns
        -------
        list of (str, Contribution)
            Each with its token's text, descending by difference.
        """
        parts = [(token.text, part) for token in self.tokens for part in token.contributions]
        parts.sort(key=lambda pair: -pair[1].difference)
        in_favour = [pair for pair in parts if pair[1].difference > 0][:n]
        return in_favour + [pair for pair in parts if pair[1].difference < 0][-n:]

    @property
    def labels(self) -> list[str]:
        """The labels of the gold and of the predicted spans, each once."""
        return [*dict.fromkeys(span.label for span in self.gold + self.predicted)]

    def text_of(self, span: LabelledSpan) -> str:
        """Return the words of one of the spans.

        Parameters
        ----------
        span : LabelledSpan
            One of `gold` or `predicted`.

        Returns
        -------
        str
            The words, separated by spaces.
        """
        begin = min(other.start for other in self.gold + self.predicted)
        return " ".join(self.words[span.start - begin : span.end - begin])


@dataclass(frozen=True)
class Confusion:
    """A gold label and the label predicted instead, "" for none.

    Attributes
    ----------
    gold, predicted : str
        The labels.
    fault : str
        See `Mistake`.
    n : int
        Number of times.
    examples : tuple of (str, int)
        The most frequent texts, each with its count.

    Examples
    --------
    >>> Confusion("PERSON", "CITY", "label", 2, (("Oslo", 2),)).examples
    (('Oslo', 2),)
    """

    gold: str
    predicted: str
    fault: str
    n: int
    examples: tuple[tuple[str, int], ...]


@dataclass(frozen=True, repr=False)
class Report(Page):
    """Scores and errors of a component. Notebooks show it as a page.

    Attributes
    ----------
    kinds : tuple of str
        Types of match in the scores; only "strict" for labels of tokens.
    scores : tuple of Score
        Scores of all labels (label ""), then of each, most frequent first.
    pairs : mapping of (str, str) to int
        Numbers of groups of overlapping spans by gold and predicted label, "" for none.
    confusions : tuple of Confusion
        Confused labels, most frequent first.
    mistakes : tuple of Mistake
        The explained mistakes, most confident first.
    n_mistakes : int
        Number of all mistakes that match `label` and `word` of `find_mistakes`.
    conclusion : str
        The most frequent confusion in words, "" without errors.

    Examples
    --------
    >>> report = find_mistakes(pipe, examples)
    >>> report.scores[0].rates["strict"].f, report.mistakes
    (1.0, ())
    """

    page: ClassVar[str] = "mistakes.html"
    kinds: tuple[str, ...]
    scores: tuple[Score, ...]
    pairs: Mapping[tuple[str, str], int]
    confusions: tuple[Confusion, ...]
    mistakes: tuple[Mistake, ...]
    n_mistakes: int

    def __repr__(self) -> str:
        return f"Report(F1 {self.scores[0].rates['strict'].f:.3f}, n_mistakes={self.n_mistakes})"

    @property
    def conclusion(self) -> str:
        """The most frequent confusion in words; "" without errors."""
        if not self.confusions:
            return ""
        most, n_errors = self.confusions[0], sum(x.n for x in self.confusions)
        labels = " as ".join(filter(None, dict.fromkeys((most.gold, most.predicted))))
        return f"{most.n} of {n_errors} errors: {labels}, {most.fault}"

    @property
    def labels(self) -> list[str]:
        """All gold and predicted labels, and then "" if any span is missed or spurious."""
        is_missing = any("" in pair for pair in self.pairs)
        return [*(score.label for score in self.scores[1:]), *([""] if is_missing else [])]

    def groups(self) -> Iterator[tuple[tuple[str, str], int, list[Mistake]]]:
        """Yield the mistakes by gold and predicted label, the most frequent pair first.

        Yields
        ------
        ((str, str), int, list of Mistake)
            The labels, the number of all mistakes, and the explained ones.
        """
        counts: Counter[tuple[str, str]] = Counter()
        for confusion in self.confusions:
            counts[confusion.gold, confusion.predicted] += confusion.n
        for pair, n in counts.most_common():
            mistakes = [mistake for mistake in self.mistakes if mistake.pair == pair]
            if mistakes:
                yield pair, n, mistakes


class _Unexplained(NamedTuple):
    """A mistake not yet explained. sure: lowest probability of its tokens' predicted labels."""

    doc: int
    group: Group
    sure: float


def find_mistakes(
    pipe: SparseCRFPipe,
    examples: Iterable[Example],
    *,
    label: str = "",
    word: str = "",
    most: int | None = None,
) -> Report:
    """Compare a component's predictions with gold annotation.

    Tokens without a gold label are ignored, and so are predicted spans that contain one.

    Parameters
    ----------
    pipe : SparseCRFPipe
        The component.
    examples : iterable of Example
        Examples whose predicted Docs have the annotation of earlier pipes.
    label : str, default ""
        Explain only mistakes with this gold or predicted label.
    word : str, default ""
        Explain only mistakes with this word in the spans, ignoring case.
    most : int, optional
        Explain only so many: the `N_EXAMPLES` most confident of each frequent confusion, then
        the most confident of the others.

    Returns
    -------
    Report
        Scores, confusions and explained mistakes, which `render` and notebooks show as a page.

    Raises
    ------
    SparseCRFError
        If no token has a gold label, or `label` is neither a label of the component nor of the
        annotation.

    Examples
    --------
    >>> doc = nlp.make_doc("They sent Oslo to Berlin.")
    >>> entities = [(10, 14, "PERSON"), (18, 24, "CITY")]
    >>> gold = Example.from_dict(doc, {"entities": entities})
    >>> find_mistakes(pipe, [gold])
    Report(F1 0.667, n_mistakes=1)
    """
    comparison = _Comparison(pipe)
    for batch in minibatch(Task("Comparing", "docs", items=examples), BATCH_SIZE):  # type: ignore[no-untyped-call]
        comparison.add(batch, label, word.lower())
    if not comparison.n_gold:
        raise SparseCRFError(Errors.SC640.format(name=pipe.name))
    scores = tuple(comparison.matches.scores())
    labels = dict.fromkeys((*pipe.labels, *(score.label for score in scores)))
    if label and label not in labels:
        choices = ", ".join(filter(None, labels))
        raise refused_option("label", label, f"it is no label; choose one of {choices}")
    chosen = comparison.chosen(most)
    shown = Task("Explaining", "mistakes", len(chosen), chosen)
    return Report(
        kinds=KINDS if isinstance(pipe.target, SpanTarget) else KINDS[:1],
        scores=scores,
        pairs=dict(comparison.matches.pairs),
        confusions=comparison.confusions(),
        mistakes=tuple(map(comparison.explain, shown)),
        n_mistakes=len(comparison.mistakes),
    )


class _Comparison:
    """Compares batches; see `find_mistakes`.

    mistakes: with the requested label and word; n_gold: number of tokens with a gold label.
    """

    def __init__(self, pipe: SparseCRFPipe) -> None:
        self._pipe = pipe
        self.matches = Matches()
        self.mistakes: list[_Unexplained] = []
        self.n_gold = 0
        self._n_docs = 0
        # Docs with mistakes, with the gold and predicted labels of their tokens.
        self._docs: dict[int, tuple[Doc, Labels, list[str]]] = {}
        self._texts: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)

    def add(self, batch: Sequence[Example], label: str, word: str) -> None:
        """Compare predictions with gold labels, and keep the mistakes with the label and word."""
        pipe, wrong = self._pipe, []
        docs = [example.predicted for example in batch]
        for number, (example, ids) in enumerate(zip(batch, pipe.predict(docs), strict=True)):
            doc = example.predicted
            gold, predicted = labels_of(pipe, example, ids)
            self.n_gold += sum(map(bool, gold))
            gold_spans, predicted_spans = spans_of(pipe, gold, predicted)
            groups = self.matches.add(gold_spans, predicted_spans)
            groups = [group for group in groups if group.fault]
            for group in groups:
                start, end, _ = group.main[0] or group.predicted[0]
                self._texts[(*group.labels, group.fault)][doc[start:end].text] += 1
            groups = [group for group in groups if _is_requested(group, doc, label, word)]
            if groups:
                self._docs[self._n_docs + number] = doc, gold, predicted
                wrong.append((number, ids, groups))
        self._n_docs += len(batch)
        marginals = pipe.marginals([docs[number] for number, *_ in wrong], forced=True)
        for (number, ids, groups), p in zip(wrong, marginals, strict=True):
            sure = np.where(ids < 0, 1.0, p[np.arange(len(ids)), ids])
            number += self._n_docs - len(batch)
            for group in groups:
                start, end = group.extent
                lowest = float(sure[start:end].min())
                self.mistakes.append(_Unexplained(number, group, lowest))

    def confusions(self) -> tuple[Confusion, ...]:
        """Return all confusions, most frequent first."""
        confusions = [
            Confusion(
                gold=gold,
                predicted=predicted,
                fault=fault,
                n=texts.total(),
                examples=tuple(texts.most_common(N_EXAMPLES)),
            )
            for (gold, predicted, fault), texts in self._texts.items()
        ]
        return tuple(sorted(confusions, key=lambda c: (-c.n, c.gold, c.predicted)))

    def chosen(self, most: int | None) -> list[_Unexplained]:
        """Return the mistakes to explain, the most confident first; see `find_mistakes`."""
        by_sure = sorted(self.mistakes, key=lambda m: (-m.sure, m.doc, m.group.extent))
        pairs = [mistake.group.labels for mistake in by_sure]
        left = Counter(dict.fromkeys(dict(Counter(pairs).most_common(N_LISTED)), N_EXAMPLES))
        is_late = []
        for pair in pairs:
            is_late.append(left[pair] <= 0)
            left[pair] -= 1
        early = sorted(range(len(pairs)), key=is_late.__getitem__)[:most]
        return [by_sure[i] for i in sorted(early)]

    def explain(self, mistake: _Unexplained) -> Mistake:
        """Return a mistake with the contributions to its labels."""
        doc, gold, predicted = self._docs[mistake.doc]
        group = mistake.group
        start, end = group.extent
        wrong = [t for t in range(start, end) if gold[t] and gold[t] != predicted[t]]
        rivals = {t: gold[t] if gold[t] in self._pipe.label_data else None for t in wrong}
        texts = tuple(token.text for token in doc)
        return Mistake(
            doc=mistake.doc,
            before=texts[max(0, start - N_AROUND) : start],
            words=texts[start:end],
            after=texts[end:][:N_AROUND],
            gold=tuple(self._labelled(doc, span) for span in group.gold),
            predicted=tuple(self._labelled(doc, span) for span in group.predicted),
            pair=group.labels,
            fault=group.fault,
            tokens=self._pipe.explain_tokens(doc, rivals, forced=True),
        )

    def _labelled(self, doc: Doc, span: Span) -> LabelledSpan:
        """Return a span with its probability; 0 if the component does not have its label."""
        pipe, probability = self._pipe, 0.0
        start, end, label = span
        if label in pipe.labels and isinstance(pipe.target, SpanTarget):
            probability = float(pipe.entity_probabilities(doc, [span], forced=True)[0])
        elif label in pipe.labels:
            probability = float(pipe.span_probabilities(doc, [(start, [label])], forced=True)[0])
        return LabelledSpan(start, end, label=label, probability=probability)


def labels_of(
    pipe: SparseCRFPipe, example: Example, ids: Ints
) -> tuple[list[str | None], list[str]]:
    """Return the gold and predicted labels of a Doc's tokens. ids: [N] int32, of the latter."""
    predicted = [(*pipe.label_data, "")[i] for i in ids.tolist()]
    return list(map(_one_of, pipe.target.gold(example), predicted)), predicted


def _one_of(gold: str | tuple[str, ...] | Not | None, predicted: str) -> str | None:
    """Return the gold label; of several, the predicted label if among them, or else the first."""
    if isinstance(gold, Not):
        return predicted if predicted not in gold.labels else str(gold)
    if isinstance(gold, tuple):
        return predicted if predicted in gold else next(filter(None, gold), None)
    return gold or None


def spans_of(
    pipe: SparseCRFPipe, gold: Labels, predicted: Sequence[str]
) -> tuple[list[Span], list[Span]]:
    """Return the gold spans of a Doc, and the predicted spans on tokens with gold labels."""
    if not isinstance(pipe.target, SpanTarget):
        outside = pipe.target.outside_label
        golden, others = (
            [(t, t + 1, str(x)) for t, x in enumerate(labels) if gold[t] and x != outside]
            for labels in (gold, predicted)
        )
        return golden, others
    spans = []
    for labels in (gold, predicted):
        names = tuple(dict.fromkeys(label or OUTSIDE for label in labels))
        # A prediction of "" is of a blank, which is inside of a span or outside.
        ids = [-1 if label == "" else names.index(label or OUTSIDE) for label in labels]
        spans.append(pipe.target.spans([np.array(ids, np.int32)], names).named() if names else [])
    return spans[0], [span for span in spans[1] if all(gold[span[0] : span[1]])]


def _is_requested(group: Group, doc: Doc, label: str, word: str) -> bool:
    """Return whether a mistake has a label and a word, if given. word: in lower case."""
    start, end = group.extent
    has_word = not word or word in (token.lower_ for token in doc[start:end])
    return has_word and (not label or label in (span[2] for span in group.gold + group.predicted))
