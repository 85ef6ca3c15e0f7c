"""Uncertainty of predictions, to select Docs in active learning."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..crf.corpus.numbering import Floats, Ints
from .prediction import Batch, DocPredictor, predicted_spans
from .targets.scheme import OUTSIDE
from .targets.spans import SpanTarget

if TYPE_CHECKING:
    from ..crf.decoding.answers import LabelDecoder


class Uncertainty(NamedTuple):
    """Measures of uncertainty of the labels y of a Doc x of T tokens.

    y1 and y2 are the most and the second most probable label sequences of the Doc. Token
    entropy, least confidence and margin follow Settles & Craven (2008, section 3.1), in nats.

    Attributes
    ----------
    entropy : float
        Mean entropy of a token's label, -(1/T) sum_t sum_y p(y_t = y | x) log p(y_t = y | x).
    max_entropy : float
        The largest entropy of a token's label.
    least_confidence : float
        1 - p(y1 | x).
    margin : float
        p(y1 | x) - p(y2 | x), small if the Doc is uncertain.
    entity : float
        1 - the smallest probability of a predicted entity or span, 0 without any. For a
        component that labels tokens: 1 - the smallest p(y1_t | x).
    by_label : dict of str to float
        For each label or entity type, the mean binary entropy over tokens,
        -(1/T) sum_t (q_t log q_t + (1 - q_t) log(1 - q_t)), where q_t is the probability that
        token t has it.

    Examples
    --------
    >>> texts = "We met Julia Costa.", "We flew to Cairo."
    >>> docs = [nlp.make_doc(text) for text in texts]
    >>> [round(each.entity, 2) for each in pipe.uncertainty(docs)]
    [0.39, 0.16]
    """

    entropy: float
    max_entropy: float
    least_confidence: float
    margin: float
    entity: float
    by_label: dict[str, float]


def measure(predictor: DocPredictor, batch: Batch) -> list[Uncertainty]:
    """Compute the uncertainty of each Doc of a batch, from its words."""
    if not len(batch.division.ends):
        return []
    decoder = predictor.decoder
    ends = batch.division.ends
    n_docs = len(ends)
    by_part = [np.empty((0, len(predictor.labels)))]
    for source, permitted in batch.parts:
        by_part.append(decoder.marginals(source, permitted))
    marginals = np.concatenate(by_part)
    paths, log_best, log_gap = _two_best(decoder, batch)
    least = np.ones(n_docs)
    if isinstance(predictor.setup.target, SpanTarget):
        spans, probabilities = predicted_spans(predictor, batch.words([paths]), batch)
        np.minimum.at(least, ends.searchsorted(spans.starts, side="right"), probabilities)
    else:
        doc_of_word = np.repeat(np.arange(n_docs), np.diff(ends, prepend=0))
        np.minimum.at(least, doc_of_word, marginals[np.arange(len(paths)), paths])
    names, shares = _shares(predictor, marginals)
    entropies = batch.words([_plogp(marginals).sum(axis=1)])
    of_labels = batch.words([_plogp(shares) + _plogp(1.0 - shares)])
    best, gap = np.exp(log_best), -np.expm1(log_gap)
    return [
        Uncertainty(
            entropy=float(_mean(entropies[d])),
            max_entropy=float(entropies[d].max(initial=0.0)),
            least_confidence=float(1.0 - best[d]),
            margin=float(best[d] * gap[d]),
            entity=float(1.0 - least[d]),
            by_label=dict(zip(names, _mean(of_labels[d]).tolist(), strict=True)),
        )
        for d in range(n_docs)
    ]


def _two_best(decoder: "LabelDecoder", batch: Batch) -> tuple[Ints, Floats, Floats]:
    """Find the best and second best labels of the words of Docs.

    The second best labels of a Doc differ from the best in one sequence, where this costs least.
    RETURNS: [N] int32 label ids; [D] log p(y1 | x); and [D] log p(y2 | x) - log p(y1 | x).
    """
    ends = batch.division.ends
    log_best, log_gap = np.zeros(len(ends)), np.full(len(ends), -np.inf)
    paths = [np.empty(0, np.int32)]
    n_words = 0
    for source, permitted in batch.parts:
        for labels, log_p in decoder.nbest(source, 2, permitted):
            if labels.shape[1]:
                doc = ends.searchsorted(n_words, side="right")
                log_best[doc] += log_p[0]
                if len(log_p) > 1:
                    log_gap[doc] = max(log_gap[doc], log_p[1] - log_p[0])
                paths.append(labels[0])
                n_words += labels.shape[1]
    return np.concatenate(paths), log_best, log_gap


def _shares(predictor: DocPredictor, marginals: Floats) -> tuple[tuple[str, ...], Floats]:
    """Return the names of labels that users see, and their probabilities, [N, names]."""
    target, labels = predictor.setup.target, predictor.labels
    names = target.names_of(labels)
    outside = {OUTSIDE} if isinstance(target, SpanTarget) else set()
    shares = np.zeros((len(marginals), len(names)))
    for i, name in enumerate(names):
        of_name = {*target.labels_of(name)} - outside
        shares[:, i] = marginals[:, [label in of_name for label in labels]].sum(axis=1)
    return names, np.minimum(shares, 1.0)


def _plogp(p: Floats) -> Floats:
    """Compute -p log p."""
    terms: Floats = -p * np.log(np.where(p > 0.0, p, 1.0))
    return terms


def _mean(of_tokens: Floats) -> Floats:
    """Return the mean over tokens, 0 if there are none."""
    mean: Floats = of_tokens.sum(axis=0) / max(len(of_tokens), 1)
    return mean
