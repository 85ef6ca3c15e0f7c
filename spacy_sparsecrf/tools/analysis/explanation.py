"""Explanations by weights, of a model's labels and of the labels of tokens."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from ...crf.corpus.encoded import Observations
from ...crf.corpus.numbering import Floats, Hashes, Ints, find_keys
from ...crf.model.model import CRFModel, WeightTable
from ...crf.model.names import ALWAYS, Names, escape
from ..pages.rendering import Page, fill

BOUNDARY = ""  # the start label, which precedes the first label of a sequence
START = "(start)"  # its displayed name

Rivals: TypeAlias = tuple[int | None, int | None]  # label before and label, None where none is
Pairs: TypeAlias = dict[Rivals, float]  # weights by label before, -1 for none, and label


@dataclass(frozen=True)
class FeatureWeight:
    """The weight of a feature with a label, or with a pair of labels.

    Attributes
    ----------
    feature : str
        Name, or hash; "always" for transitions.
    previous : str or None
        The label before, "" at the beginning of a sequence, None if the feature is conjoined
        with the label alone.
    label : str
        The label.
    weight : float
        Its weight.

    Examples
    --------
    >>> FeatureWeight("lower[-1]=to", None, "U-CITY", 0.75).label
    'U-CITY'
    """

    feature: str
    previous: str | None
    label: str
    weight: float


@dataclass(frozen=True)
class LabelExplanation:
    """The strongest features of a label.

    Attributes
    ----------
    label : str
        Name of a label, or of a cluster of labels.
    supporting : tuple of FeatureWeight
        Weights above 0, descending.
    opposing : tuple of FeatureWeight
        Weights below 0, ascending.
    n_active : int
        Number of all its weights, without transitions.

    Examples
    --------
    >>> city = pipe.explain(n=2).labels[3]
    >>> city
    LabelExplanation(label='U-CITY', n_active=42)
    >>> [round(each.weight, 1) for each in city.supporting]
    [0.4, 0.4]
    """

    label: str
    supporting: tuple[FeatureWeight, ...] = field(repr=False)
    opposing: tuple[FeatureWeight, ...] = field(repr=False)
    n_active: int

    @property
    def strongest(self) -> tuple[FeatureWeight, ...]:
        """The supporting and opposing features, descending by weight."""
        return (*self.supporting, *reversed(self.opposing))


@dataclass(frozen=True)
class ModelExplanation(Page):
    """Explanation of a model. Notebooks show it as a page.

    Attributes
    ----------
    transitions : tuple of FeatureWeight
        Weights of label pairs, descending.
    labels : tuple of LabelExplanation
        The labels in the model's order, then clusters of labels.
    n_active : int
        Number of weights.

    Examples
    --------
    >>> pipe.explain()
    ModelExplanation(n_active=271)
    """

    page: ClassVar[str] = "model.html"
    transitions: tuple[FeatureWeight, ...] = field(repr=False)
    labels: tuple[LabelExplanation, ...] = field(repr=False)
    n_active: int

    @property
    def weights(self) -> dict[tuple[str | None, str], float]:
        """Weights of transitions, by (previous, label)."""
        return {(pair.previous, pair.label): pair.weight for pair in self.transitions}


@dataclass(frozen=True)
class Contribution:
    """Contribution of a feature, or of a transition, to the score of a token's label.

    Attributes
    ----------
    kind : str
        "feature" (with the token's label), "in" (with the previous label and the label) or
        "out" (with the label and the next label).
    feature : str
        Name, or hash.
    previous : str or None
        The first label of the pair; None for "feature".
    label : str
        The label, or the second label of the pair.
    weight : float
        Its part of the label's score; for a real-valued feature, weight times value.
    rival : float
        Its part of the runner-up's score, 0 without a runner-up. If the previous token also
        has a given runner-up, `rival` belongs to the pair of the two runners-up.

    Examples
    --------
    >>> Contribution("in", "always", "O", "U-CITY", 0.5, -0.25).name
    'O -> U-CITY'
    >>> Contribution("in", "always", "O", "U-CITY", 0.5, -0.25).difference
    0.75
    """

    kind: str
    feature: str
    previous: str | None
    label: str
    weight: float
    rival: float

    @property
    def difference(self) -> float:
        """Evidence for the label relative to the runner-up."""
        return self.weight - self.rival

    @property
    def name(self) -> str:
        """The feature, with its pair of labels if it has one."""
        if self.previous is None:
            return self.feature
        pair = f"{escape(self.previous) or START} -> {escape(self.label)}"
        return pair if self.feature == ALWAYS else f"{pair} {self.feature}"


@dataclass(frozen=True)
class TokenExplanation:
    """Explanation of a token's label.

    In a chain, the differences sum to the score of the sequence's labels minus its score with
    the runner-up in place of the label.

    Attributes
    ----------
    text : str
        The token's text.
    label : str
        Its label.
    probability : float
        Probability of the label, given the whole sequence.
    runner_up : str or None
        The label compared with, by default the most probable other label; None if no other
        label is possible.
    runner_up_probability : float
        Its probability; 0 without a runner-up.
    contributions : tuple of Contribution
        Contributions, descending by difference.

    Examples
    --------
    >>> token = pipe.explain_doc(nlp("We flew to Cairo.")).tokens[3]
    >>> token.label, round(token.probability, 2), token.runner_up
    ('U-CITY', 0.84, 'O')
    >>> round(token.strongest(1)[0].difference, 2)
    0.54
    """

    text: str
    label: str
    probability: float
    runner_up: str | None
    runner_up_probability: float
    contributions: tuple[Contribution, ...] = field(repr=False)

    def strongest(self, n: int) -> tuple[Contribution, ...]:
        """Return the n strongest contributions in favour of the label, and the n against it.

        Parameters
        ----------
        n : int
            Number of contributions on each side.

        Returns
        -------
        tuple of Contribution
            Contributions, descending by difference.
        """
        in_favour = [part for part in self.contributions if part.difference > 0][:n]
        against = [part for part in self.contributions if part.difference < 0][-n:]
        return (*in_favour, *against)


class LabelledSpan(NamedTuple):
    """A span encoded by the labels of tokens.

    Attributes
    ----------
    start : int
        First token.
    end : int
        Token after the last one.
    label : str
        Its label or type.
    probability : float
        Its probability.

    Examples
    --------
    >>> doc = nlp.make_doc("We flew to Cairo.")
    >>> [span] = pipe.confidences(doc).spans
    >>> doc[span.start : span.end], span.label, round(span.probability, 2)
    (Cairo, 'CITY', 0.84)
    """

    start: int
    end: int
    label: str
    probability: float


@dataclass(frozen=True, repr=False)
class Confidences:
    """The predictions for a Doc, with probabilities. Notebooks show them as highlighted text.

    Attributes
    ----------
    words : tuple of str
        Texts of the tokens, with following spaces.
    spans : tuple of LabelledSpan
        The predicted entities or spans, ascending; for a component that labels tokens, one
        for each word.

    Examples
    --------
    >>> found = pipe.confidences(nlp.make_doc("Omar Haddad flew to Cairo."))
    >>> found
    Confidences(Omar Haddad PERSON 0.95, Cairo CITY 0.84)
    >>> [span.label for span in found.spans if span.probability > 0.9]
    ['PERSON']
    """

    words: tuple[str, ...]
    spans: tuple[LabelledSpan, ...]

    def __repr__(self) -> str:
        shown = (f"{''.join(self.words[a:b])} {y} {p:.2f}" for a, b, y, p in self.spans)
        return f"Confidences({shorten(', '.join(shown), 90, placeholder=' ...')})"

    def _repr_html_(self) -> str:
        return fill("confidences.html", shown=self)


@dataclass(frozen=True, repr=False)
class DocExplanation(Page):
    """Explanation of the labels of a Doc's tokens. Notebooks show it as a page.

    Attributes
    ----------
    tokens : tuple of TokenExplanation
        One for each token.
    spans : tuple of LabelledSpan or None
        The spans that the labels encode, ascending; None for labels of tokens.

    Examples
    --------
    >>> pipe.explain_doc(nlp("We flew to Cairo."))
    DocExplanation(5 tokens, 1 spans)
    """

    page: ClassVar[str] = "doc.html"
    tokens: tuple[TokenExplanation, ...]
    spans: tuple[LabelledSpan, ...] | None = None

    def __repr__(self) -> str:
        return f"DocExplanation({len(self.tokens)} tokens, {len(self.spans or ())} spans)"

    def parts(self) -> Iterator[tuple[LabelledSpan | None, list[int]]]:
        """Yield each span with its words, and in order each word outside of spans.

        Yields
        ------
        (LabelledSpan or None, list of int)
            The span, or None, and the positions of its words.
        """
        end, words = 0, [t for t, token in enumerate(self.tokens) if token.label]
        for span in self.spans or ():
            yield from ((None, [t]) for t in words if end <= t < span.start)
            end = span.end
            yield span, [t for t in words if span.start <= t < end]
        yield from ((None, [t]) for t in words if t >= end)


def outcome_names(model: CRFModel) -> list[str]:
    """Return the names of labels, and of clusters of labels by their first and last label."""
    bounds = zip(model.bounds[:-1], model.bounds[1:], strict=True)
    clusters = [f"{model.labels[begin]} .. {model.labels[end - 1]}" for begin, end in bounds]
    return [*model.labels, *clusters]


def explain_model(
    model: CRFModel, names: Names, always: Collection[int], n: int
) -> ModelExplanation:
    """Explain a model.

    names: of features; always: hashes of the features without attributes, which are always active;
    n: number of features for, and against, each label.
    """
    names_before = [*model.labels, BOUNDARY]
    transitions: defaultdict[tuple[int, int], float] = defaultdict(float)
    weights: list[list[tuple[float, int, str | None]]] = [[] for _ in range(model.n_outcomes)]
    for (key, previous, label), weight in model.bigram.entries():
        if key in always:
            transitions[previous, label] += float(weight)
        else:
            weights[label].append((float(weight), key, names_before[previous]))
    for (key, _, label), weight in model.unigram.entries():
        weights[label].append((float(weight), key, None))
    labels = [
        _explain_label(label, of_label, names, n)
        for label, of_label in zip(outcome_names(model), weights, strict=True)
    ]
    pairs = [
        FeatureWeight(ALWAYS, previous=names_before[a], label=model.labels[b], weight=weight)
        for (a, b), weight in transitions.items()
    ]
    pairs.sort(key=lambda t: (-t.weight, t.previous, t.label))
    return ModelExplanation(tuple(pairs), tuple(labels), model.n_active)


def _explain_label(
    label: str, weights: list[tuple[float, int, str | None]], names: Names, n: int
) -> LabelExplanation:
    """Find the strongest features of a label. weights: value, hash and label before."""
    ascending = sorted(weights, key=lambda entry: (entry[0], entry[1], entry[2] or ""))
    supporting, opposing = (
        tuple(
            FeatureWeight(names[key], previous=previous, label=label, weight=weight)
            for weight, key, previous in strongest
            if weight * sign > 0
        )
        for strongest, sign in ((ascending[::-1][:n], 1), (ascending[:n], -1))
    )
    return LabelExplanation(label, supporting, opposing, len(weights))


def _lookup(table: WeightTable, hashes: Hashes) -> Callable[[int], Iterator[tuple[int, Pairs]]]:
    """Return a function that yields the hash and weights of features [N, P] at a token.

    Features without weights are left out.
    """
    rows = find_keys(table.keys, hashes.ravel()).reshape(hashes.shape)

    def at(t: int) -> Iterator[tuple[int, Pairs]]:
        for key, row in zip(hashes[t].tolist(), rows[t].tolist(), strict=True):
            if row < 0:
                continue
            entries = slice(int(table.indptr[row]), int(table.indptr[row + 1]))
            labels = table.labels[entries].tolist()
            previous = table.previous[entries].tolist() or [-1] * len(labels)
            pairs = zip(previous, labels, strict=True)
            yield key, dict(zip(pairs, table.values[entries].tolist(), strict=True))

    return at


class Explainer:
    """Explains the labels of tokens.

    observations: of N tokens; labels: [N] int32, ids; names: of features; rivals: for the position
    of each token to explain, the id of the label to compare with, -1 for the most probable other
    label. In a chain, the differences over consecutive tokens with given rivals sum to the
    sequence's score with all their labels minus its score with all their rivals.
    """

    def __init__(
        self,
        model: CRFModel,
        observations: Observations,
        labels: Ints,
        names: Names,
        rivals: Mapping[int, int],
    ) -> None:
        self._names = names
        self._before = [*model.labels, BOUNDARY]
        self._outcomes = outcome_names(model)
        bounds = np.array(model.bounds, np.int64)
        clusters = np.arange(len(model.labels), model.n_outcomes)
        self._cluster = np.repeat(clusters, bounds[1:] - bounds[:-1])
        self._unigram = _lookup(model.unigram, observations.unigram_hashes)
        self._valued = _lookup(model.unigram, observations.value_keys[:, None])
        self._values = observations.values
        has_pairs = model.kind != "maxent"
        bigram = observations.bigram_hashes
        self._bigram = _lookup(model.bigram, bigram if has_pairs else bigram[:, :0])
        # The label before each token: the start label at the first token of a sequence.
        self._chosen = labels.tolist()
        self._rivals = rivals
        firsts = observations.offsets[:-1][np.diff(observations.offsets) > 0]
        previous = np.concatenate(([-1], labels))[:-1] if len(labels) else labels
        previous[firsts] = len(model.labels)
        self._previous = previous.tolist()
        self._lasts = set((observations.offsets[1:] - 1).tolist())

    def tokens(self, marginals: Floats, texts: Sequence[str]) -> Iterator[TokenExplanation]:
        """Explain tokens. marginals: [N, Y], of all labels; texts: of the N tokens."""
        for t, requested in self._rivals.items():
            label, p = self._chosen[t], marginals[t]
            rival: int | None = requested
            if requested < 0:
                others = p.copy()
                others[label] = -1.0
                rival = int(others.argmax()) if others.max() > 0.0 else None
            yield TokenExplanation(
                text=texts[t],
                label=self._before[label],
                probability=float(p[label]),
                runner_up=None if rival is None else self._before[rival],
                runner_up_probability=0.0 if rival is None else float(p[rival]),
                contributions=tuple(self._contributions(t, rival)),
            )

    def _contributions(self, t: int, rival: int | None) -> list[Contribution]:
        """Return the contributions to token t's label, descending. rival: id to compare with."""
        label, previous = self._chosen[t], self._previous[t]
        parts = [*self._tests(t, label, rival)]
        requested = -1 if self._before[previous] == BOUNDARY else self._rivals.get(t - 1, -1)
        other = requested if requested >= 0 else previous
        parts += self._pairs("in", t, pair=(previous, label), other=(other, rival))
        # If the next label is compared too, the pair is reported there.
        if t not in self._lasts and self._rivals.get(t + 1, -1) < 0:
            following = self._chosen[t + 1]
            pair, others = (label, following), (rival, following)
            parts += self._pairs("out", t + 1, pair=pair, other=others)
        parts = [c for c in parts if c.weight or c.rival]
        return sorted(parts, key=lambda c: (-c.difference, c.kind, c.feature, c.label))

    def _tests(self, t: int, label: int, rival: int | None) -> Iterator[Contribution]:
        active = [(key, weights, 1.0) for key, weights in self._unigram(t)]
        for column, x in enumerate(self._values[t].tolist() if self._values.size else ()):
            active += [(key, weights, x) for key, weights in self._valued(column)]
        for key, weights, x in active:
            for outcome, other in self._outcome_pairs(label, rival):
                yield Contribution(
                    kind="feature",
                    feature=self._names[key],
                    previous=None,
                    label=self._outcomes[outcome],
                    weight=x * weights.get((-1, outcome), 0.0),
                    rival=x * weights.get((-1, other), 0.0),
                )

    def _outcome_pairs(self, label: int, rival: int | None) -> Iterator[tuple[int, int | None]]:
        """Yield the label and the rival, and then their clusters if the model has clusters."""
        yield label, rival
        if len(self._cluster):
            yield int(self._cluster[label]), None if rival is None else int(self._cluster[rival])

    def _pairs(
        self, kind: str, t: int, pair: tuple[int, int], other: Rivals
    ) -> Iterator[Contribution]:
        """Yield contributions of features at token t with a pair of labels, against `other`."""
        previous, label = pair
        for key, weights in self._bigram(t):
            yield Contribution(
                kind=kind,
                feature=self._names[key],
                previous=self._before[previous],
                label=self._before[label],
                weight=weights.get(pair, 0.0),
                rival=weights.get(other, 0.0),
            )
