"""Error analysis: compare predictions with gold annotation, and explain the errors."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..errors import Errors, SparseCRFError, refused_option
from ..pages.rendering import Page
from ..pipeline.component import SparseCRFPipe
from ..progress import Task
from ..targets.base import Not
from ..targets.matching import KINDS, Matches, Pair, Score
from ..targets.scheme import OUTSIDE
from ..targets.spans import Span, SpanTarget
from .explanation import Contribution, LabelledSpan, TokenExplanation

BATCH_SIZE = 128  # Docs predicted at once
N_AROUND = 8  # tokens shown before and after a mistake
N_EXAMPLES = 3  # shown for each confusion

Labels = Sequence[str | None]


@dataclass(frozen=True)
class Mistake:
    """A gold span and the span predicted instead; a token's label counts as a span of one token.

    doc: index of the Doc; before, words, after: texts of the tokens before, in and after the two
    spans; gold, predicted: the spans, or None; fault: "label", "boundaries", "label and
    boundaries", "missed" or "spurious"; tokens: tokens with wrong labels, with the contributions
    to the predicted label compared with the gold label.
    """

    doc: int
    before: tuple[str, ...]
    words: tuple[str, ...]
    after: tuple[str, ...]
    gold: LabelledSpan | None
    predicted: LabelledSpan | None
    fault: str
    tokens: tuple[TokenExplanation, ...]

    def strongest(self, n: int) -> list[tuple[str, Contribution]]:
        """Return the n strongest contributions in favour of the mistake, and the n against it.

        RETURNS: each with its token's text, descending by difference.
        """
        found = [(token.text, each) for token in self.tokens for each in token.contributions]
        found.sort(key=lambda item: -item[1].difference)
        shown = [item for item in found if item[1].difference > 0][:n]
        return shown + [item for item in found if item[1].difference < 0][-n:]

    @property
    def labels(self) -> list[str]:
        """The gold label and the predicted label, if there are such spans."""
        return [span.label for span in (self.gold, self.predicted) if span is not None]

    def text_of(self, span: LabelledSpan) -> str:
        """Return the words of one of the two spans."""
        first = min(each.start for each in (self.gold, self.predicted) if each is not None)
        return " ".join(self.words[span.start - first : span.end - first])


@dataclass(frozen=True)
class Confusion:
    """A gold label and the label predicted instead, "" for none.

    gold, predicted: labels; fault: see `Mistake`; n: count; examples: the most frequent texts,
    each with its count.
    """

    gold: str
    predicted: str
    fault: str
    n: int
    examples: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Report(Page):
    """Scores and errors of a component.

    kinds: types of match in the scores, only "strict" for labels of tokens; scores: of all labels
    (""), then of each; pairs: numbers of spans by gold and predicted label, "" for none;
    confusions: most frequent first; mistakes: the explained ones, most confident first;
    n_mistakes: number of all that match `label` and `word` of `find_mistakes`.
    """

    page: ClassVar[str] = "mistakes.html"
    kinds: tuple[str, ...]
    scores: tuple[Score, ...]
    pairs: Mapping[tuple[str, str], int]
    confusions: tuple[Confusion, ...]
    mistakes: tuple[Mistake, ...]
    n_mistakes: int

    @property
    def labels(self) -> list[str]:
        """All gold and predicted labels, and then "" if any span is missed or spurious."""
        found = {label for pair in self.pairs for label in pair}
        return [*sorted(found - {""}), *({""} & found)]


class _Found(NamedTuple):
    """A mistake not yet explained. sure: lowest probability of its tokens' predicted labels."""

    doc: int
    pair: Pair
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

    examples: their predicted Docs have the annotation of earlier pipes. Tokens without a gold label
    are ignored, and so are predicted spans that contain one.
    label, word: explain only mistakes with this gold or predicted label, and with this word in
    either span, ignoring case; most: explain only so many, the most confident first.
    RETURNS: a report that `render` shows as a page.
    RAISES: SparseCRFError if no token has a gold label, or `label` is neither a label of the
        component nor of the annotation.
    """
    found = _Comparison(pipe)
    for batch in minibatch(Task("Comparing", "docs", items=examples), BATCH_SIZE):  # type: ignore[no-untyped-call]
        found.add(batch, label, word.lower())
    if not found.n_gold:
        raise SparseCRFError(Errors.SC640.format(name=pipe.name))
    known = dict.fromkeys((*pipe.labels, *(score.label for score in found.matches.scores())))
    if label and label not in known:
        choices = ", ".join(filter(None, known))
        raise refused_option("label", label, f"it is no label; choose one of {choices}")
    chosen = sorted(found.mistakes, key=lambda each: (-each.sure, each.doc, each.pair.extent))
    shown = Task("Explaining", "mistakes", len(chosen[:most]), chosen[:most])
    return Report(
        kinds=KINDS if isinstance(pipe.target, SpanTarget) else KINDS[:1],
        scores=tuple(found.matches.scores()),
        pairs=dict(found.matches.pairs),
        confusions=found.confusions(),
        mistakes=tuple(map(found.explain, shown)),
        n_mistakes=len(chosen),
    )


class _Comparison:
    """Compares batches; see `find_mistakes`.

    mistakes: with the requested label and word; n_gold: number of tokens with a gold label.
    """

    def __init__(self, pipe: SparseCRFPipe) -> None:
        self._pipe = pipe
        self.matches = Matches()
        self.mistakes: list[_Found] = []
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
            predicted = [(*pipe.label_data, "")[i] for i in ids.tolist()]
            gold = list(map(one_of, pipe.target.gold(example), predicted))
            self.n_gold += sum(map(bool, gold))
            pairs = self.matches.add(*spans_of(pipe, gold, predicted))
            pairs = [pair for pair in pairs if pair.gold != pair.predicted]
            for pair in pairs:
                start, end, _ = pair.gold or pair.predicted or (0, 0, "")
                self._texts[(*pair.labels, pair.fault)][doc[start:end].text] += 1
            pairs = [pair for pair in pairs if _is_requested(pair, doc, label, word)]
            if pairs:
                self._docs[self._n_docs + number] = doc, gold, predicted
                wrong.append((number, ids, pairs))
        self._n_docs += len(batch)
        marginals = pipe.marginals([docs[number] for number, *_ in wrong], forced=True)
        for (number, ids, pairs), p in zip(wrong, marginals, strict=True):
            sure = np.where(ids < 0, 1.0, p[np.arange(len(ids)), ids])
            number += self._n_docs - len(batch)
            for pair in pairs:
                lowest = float(sure[slice(*pair.extent)].min())
                self.mistakes.append(_Found(number, pair, lowest))

    def confusions(self) -> tuple[Confusion, ...]:
        """Return all confusions, most frequent first."""
        found = [
            Confusion(*key, texts.total(), tuple(texts.most_common(N_EXAMPLES)))
            for key, texts in self._texts.items()
        ]
        return tuple(sorted(found, key=lambda each: (-each.n, each.gold, each.predicted)))

    def explain(self, found: _Found) -> Mistake:
        """Return a mistake with the contributions to its labels."""
        doc, gold, predicted = self._docs[found.doc]
        start, end = found.pair.extent
        wrong = [t for t in range(start, end) if gold[t] and gold[t] != predicted[t]]
        rivals = {t: gold[t] if gold[t] in self._pipe.label_data else None for t in wrong}
        texts = tuple(token.text for token in doc)
        words = texts[max(0, start - N_AROUND) : start], texts[start:end], texts[end:][:N_AROUND]
        gold_span, predicted_span = (self._labelled(doc, span) for span in found.pair)
        explained = self._pipe.explain_tokens(doc, rivals, forced=True)
        return Mistake(found.doc, *words, gold_span, predicted_span, found.pair.fault, explained)

    def _labelled(self, doc: Doc, span: Span | None) -> LabelledSpan | None:
        """Return a span with its probability; 0 if the component does not have its label."""
        pipe, probability = self._pipe, 0.0
        if span is None:
            return None
        start, _, label = span
        if label in pipe.labels and isinstance(pipe.target, SpanTarget):
            probability = float(pipe.entity_probabilities(doc, [span], forced=True)[0])
        elif label in pipe.labels:
            probability = float(pipe.span_probabilities(doc, [(start, [label])], forced=True)[0])
        return LabelledSpan(*span, probability)


def one_of(gold: str | tuple[str, ...] | Not | None, predicted: str) -> str | None:
    """Return the gold label; of several, the predicted label if among them, or else the first."""
    if isinstance(gold, Not):
        return predicted if predicted != gold.label else str(gold)
    if isinstance(gold, tuple):
        return predicted if predicted in gold else next(filter(None, gold), None)
    return gold or None


def spans_of(
    pipe: SparseCRFPipe, gold: Labels, predicted: Sequence[str]
) -> tuple[list[Span], list[Span]]:
    """Return the gold spans of a Doc, and the predicted spans on tokens with gold labels."""
    if not isinstance(pipe.target, SpanTarget):
        known = [t for t, label in enumerate(gold) if label]
        return [(t, t + 1, gold[t] or "") for t in known], [(t, t + 1, predicted[t]) for t in known]
    found = []
    for labels in (gold, predicted):
        names = tuple(dict.fromkeys(label or OUTSIDE for label in labels))
        # A prediction of "" is of a blank, which is inside of a span or outside.
        ids = [-1 if label == "" else names.index(label or OUTSIDE) for label in labels]
        found.append(pipe.target.spans([np.array(ids, np.int32)], names).named() if names else [])
    return found[0], [span for span in found[1] if all(gold[span[0] : span[1]])]


def _is_requested(pair: Pair, doc: Doc, label: str, word: str) -> bool:
    """Return whether a mistake has a label and a word, if given. word: in lower case."""
    start, end = pair.extent
    has_word = not word or word in (token.lower_ for token in doc[start:end])
    return has_word and (not label or label in pair.labels)
