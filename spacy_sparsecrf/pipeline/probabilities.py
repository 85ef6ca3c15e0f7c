"""Probabilities, n-best labels and explanations of Docs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
from spacy.tokens import Doc
from spacy.tokens import Span as DocSpan

from ..crf.corpus.encoded import Observations
from ..crf.corpus.numbering import Floats, Longs
from ..crf.decoding.chains import SpanEvents
from ..crf.model.names import Names
from ..errors import Errors, SparseCRFError
from .prediction import Batch, DocPredictor, predict
from .settings import Features
from .targets.spans import SpanTarget
from .targets.target import Target
from .uncertainty import Uncertainty, measure

if TYPE_CHECKING:
    from ..crf.model.model import CRFModel
    from ..tools.analysis.explanation import (
        Confidences,
        DocExplanation,
        LabelledSpan,
        ModelExplanation,
        TokenExplanation,
    )
    from .trained import Trained

# First token, labels of the span's tokens, and labels that may follow, or None for all.
Span = tuple[int, Sequence[str]] | tuple[int, Sequence[str], Collection[str] | None]


class Probabilities:
    """Methods of the component: probabilities, uncertainty and explanations of Docs.

    The Docs are not changed. Sequences of a Doc are independent: the probability of a Doc's
    labels is the product over its sequences. Probabilities of the valid sequences
    ([components.NAME.decoding], and the target's scheme) sum to 1.

    `forced=True` conditions on existing annotation of the Doc, unless [components.NAME]
    overwrite = true: labels that the component has set then have probability 1.

    Examples
    --------
    >>> doc = nlp("Last week, Maria Lopez flew to Lisbon.")
    >>> pipe.confidences(doc)
    Confidences(Maria Lopez PERSON 0.84, Lisbon CITY 0.82)
    >>> pipe.entity_probabilities(doc, [(3, 5, "PERSON")]).round(2).tolist()
    [0.84]
    >>> pipe.explain_doc(doc)
    DocExplanation(9 tokens, 2 spans)
    """

    name: str
    model: "CRFModel"
    features: Features
    target: Target
    # RAISES: SparseCRFError if there are no labels.
    predictor: Callable[[], DocPredictor]
    trained: "Trained"
    named: Callable[[], Names]

    @overload
    def marginals(self, docs: Doc, *, forced: bool = ...) -> Floats: ...
    @overload
    def marginals(self, docs: Iterable[Doc], *, forced: bool = ...) -> list[Floats]: ...
    def marginals(
        self, docs: Doc | Iterable[Doc], *, forced: bool = False
    ) -> Floats | list[Floats]:
        """Compute the probabilities of all labels of each token, p(y_t = y | x).

        Parameters
        ----------
        docs : Doc or iterable of Doc
            Docs, or a single Doc, for which a single array is returned.
        forced : bool, default False
            Whether to condition on existing annotation.

        Returns
        -------
        array or list of array
            For each Doc an array [tokens, labels] float64; rows of words sum to 1, of blanks to 0.
            The columns are `label_data`.

        Raises
        ------
        SparseCRFError
            If there are no labels.
        """
        if isinstance(docs, Doc):
            return self.marginals([docs], forced=forced)[0]
        docs = list(docs)
        predictor, batch = self._read(docs, forced)
        by_part = [np.zeros((0, len(predictor.labels)))]
        for source, permitted in batch.parts:
            by_part.append(predictor.decoder.marginals(source, permitted))
        return batch.tokens(by_part, 0.0)

    def nbest(self, doc: Doc, n: int, *, forced: bool = False) -> list[tuple[list[str], float]]:
        """Find the n most probable label sequences of a Doc.

        Parameters
        ----------
        doc : Doc
            The Doc.
        n : int
            Number of sequences, at least 1.
        forced : bool, default False
            Whether to condition on existing annotation.

        Returns
        -------
        list of (list of str, float)
            Up to n pairs of the labels of the Doc's tokens, "" for blanks, and their probability,
            the most probable first.

        Raises
        ------
        SparseCRFError
            If there are no labels, or n is not a number of at least 1.
        """
        from ..crf.decoding.decoder import check_n

        check_n(n)
        predictor, batch = self._read([doc], forced)
        by_sequence = [
            best
            for source, permitted in batch.parts
            for best in predictor.decoder.nbest(source, n, permitted)
        ]
        chosen, totals = combine([log_p for _, log_p in by_sequence], n)
        no_labels = np.empty(0, np.int32)
        names = (*predictor.labels, "")
        paths = []
        for ranks in chosen:
            ids = [ranked[k] for (ranked, _), k in zip(by_sequence, ranks, strict=True)]
            paths.append([names[y] for y in batch.tokens([no_labels, *ids], -1)[0].tolist()])
        return list(zip(paths, np.exp(totals).tolist(), strict=True))

    def log_probability(self, doc: Doc, labels: Sequence[str], *, forced: bool = False) -> float:
        """Compute the log-probability of labels of a Doc, log p(y | x).

        Parameters
        ----------
        doc : Doc
            The Doc.
        labels : sequence of str
            A label for each token; labels of blanks are ignored.
        forced : bool, default False
            Whether to condition on existing annotation.

        Returns
        -------
        float
            The log-probability in nats; -inf for labels that are not valid.

        Raises
        ------
        SparseCRFError
            If a label is unknown, or the number of labels is wrong.
        """
        predictor, batch = self._read([doc], forced)
        if len(labels) != len(doc):
            raise SparseCRFError(Errors.SC406.format(n_labels=len(labels), n_tokens=len(doc)))
        of_words = [labels[t] for t in batch.division.tokens]
        ids = np.array(self._ids(of_words, predictor.labels), dtype=np.int32)
        log_p = [
            predictor.decoder.log_probability(source, ids, permitted).sum()
            for source, permitted in batch.parts
        ]
        return float(sum(log_p))

    def span_probabilities(
        self, doc: Doc, spans: Iterable[Span], *, forced: bool = False
    ) -> Floats:
        """Compute the probabilities that runs of tokens have given labels, exactly.

        Parameters
        ----------
        doc : Doc
            The Doc.
        spans : iterable of tuple
            (first token, labels of the span's tokens), as in (3, ["B-PER", "L-PER"]). A third
            part lists the labels that the next word may have, for schemes in which labels do not
            mark the end of a span: (3, ["B-PER", "I-PER"], labels other than "I-PER"). It is
            ignored at the end of a sequence. Labels of blanks are ignored.
        forced : bool, default False
            Whether to condition on existing annotation.

        Returns
        -------
        array
            [spans] float64.

        Raises
        ------
        SparseCRFError
            If a label is unknown, or a span has no words or is not within the Doc.
        """
        predictor, batch = self._read([doc], forced)
        return self._span_probabilities(predictor, batch, spans)

    def _span_probabilities(
        self, predictor: DocPredictor, batch: Batch, spans: Iterable[Span]
    ) -> Floats:
        """Compute the probabilities of spans of a Doc that has been read; see there."""
        starts, runs, followers = list[int](), list[list[int]](), []
        for start, labels, *listed in spans:
            word, tokens = _words(batch, start, len(labels), number=len(starts))
            starts.append(word)
            runs.append(self._ids([labels[t - start] for t in tokens], predictor.labels))
            may_follow = np.ones(len(predictor.labels), dtype=bool)
            if listed and listed[0] is not None:
                may_follow[:] = False
                may_follow[self._ids(listed[0], predictor.labels)] = True
            followers.append(may_follow)
        if not starts:
            return np.zeros(0)
        events = SpanEvents.of(starts, runs, np.array(followers))
        [(source, permitted)] = batch.parts
        return predictor.decoder.span_probability(source, events, permitted)

    def entity_probabilities(
        self, doc: Doc, spans: Iterable[tuple[int, int, str] | DocSpan], *, forced: bool = False
    ) -> Floats:
        """Compute the probabilities that spans are entities, or spans, of given types, exactly.

        Parameters
        ----------
        doc : Doc
            The Doc.
        spans : iterable of tuple or Span
            (first token, end (exclusive), type), as in (3, 5, "PER"), or spaCy's Spans, as in
            `doc.ents`. Spans may overlap.
        forced : bool, default False
            Whether to condition on existing annotation.

        Returns
        -------
        array
            [spans] float64; 0 if the component lacks a label that the span would need.

        Raises
        ------
        SparseCRFError
            If a type is unknown, if a span is empty or not within the Doc, or if the component
            learns labels of tokens.
        """
        predictor, batch = self._read([doc], forced)
        target, known_labels = self.target, predictor.labels
        if not isinstance(target, SpanTarget):
            raise SparseCRFError(Errors.SC509.format(name=self.name))
        runs, encoded = [], []
        types = target.names_of(known_labels)
        typed = [(x.start, x.end, x.label_) if isinstance(x, DocSpan) else x for x in spans]
        for number, (start, end, name) in enumerate(typed):
            if name not in types:
                message = Errors.SC409.format(name=self.name, label=name, known=", ".join(types))
                raise SparseCRFError(message)
            _, tokens = _words(batch, start, end - start, number=number)
            labels = [""] * (end - start)
            for t, label in zip(tokens, target.scheme.labels_for(len(tokens), name), strict=True):
                labels[t - start] = label
            if {*labels} <= {*known_labels, ""}:
                encoded.append(number)
                runs.append((start, labels, target.labels_after(name, known_labels)))
        probabilities = np.zeros(len(typed))
        probabilities[encoded] = self._span_probabilities(predictor, batch, runs)
        return probabilities

    def uncertainty(self, docs: Iterable[Doc], *, forced: bool = False) -> list[Uncertainty]:
        """Compute the uncertainty of the labels of Docs, for active learning.

        Parameters
        ----------
        docs : iterable of Doc
            The Docs.
        forced : bool, default False
            Whether to condition on existing annotation.

        Returns
        -------
        list of Uncertainty
            An `Uncertainty` for each Doc, which has the formulas.

        Raises
        ------
        SparseCRFError
            If there are no labels.
        """
        predictor, batch = self._read(list(docs), forced)
        return measure(predictor, batch)

    def confidences(self, doc: Doc, *, forced: bool = False) -> "Confidences":
        """Predict the entities, spans or labels of a Doc, with the probability of each.

        Parameters
        ----------
        doc : Doc
            The Doc.
        forced : bool, default False
            Whether to condition on existing annotation.

        Returns
        -------
        Confidences
            The predictions, which notebooks show as highlighted text.

        Raises
        ------
        SparseCRFError
            If there are no labels.
        """
        from ..tools.analysis.explanation import Confidences, LabelledSpan

        predictor, _ = self._read([doc], forced)
        ids = predict(predictor, [doc], forced)[0].tolist() if len(doc) else []
        spans = self._predicted_spans(doc, [(*predictor.labels, "")[y] for y in ids], forced)
        if spans is None:
            p = self.marginals(doc, forced=forced)
            spans = tuple(
                LabelledSpan(t, t + 1, predictor.labels[y], float(p[t, y]))
                for t, y in enumerate(ids)
                if y >= 0
            )
        return Confidences(tuple(token.text_with_ws for token in doc), spans)

    def explain(self, n: int = 10) -> "ModelExplanation":
        """Explain transitions, and the n strongest features for and against each label.

        Parameters
        ----------
        n : int, default 10
            Number of features for, and against, each label.

        Returns
        -------
        ModelExplanation
            An explanation, which `render` and notebooks show as a page.
        """
        from ..tools.analysis.explanation import explain_model
        from .features.naming import constant_features

        return explain_model(self.model, self.named(), constant_features(self.features), n)

    def explain_doc(self, doc: Doc, *, forced: bool = False) -> "DocExplanation":
        """Explain the label of each token of a Doc, compared with the second most probable label.

        Parameters
        ----------
        doc : Doc
            The Doc.
        forced : bool, default False
            Whether to condition on existing annotation, as `predict` does.

        Returns
        -------
        DocExplanation
            An explanation, which `render` and notebooks show as a page.

        Raises
        ------
        SparseCRFError
            If there are tokens but no labels.
        """
        from ..tools.analysis.explanation import DocExplanation

        self._check_docs([doc])
        if not len(doc):
            return DocExplanation(())
        tokens = self.explain_tokens(doc, dict.fromkeys(range(len(doc))), forced=forced)
        spans = self._predicted_spans(doc, [token.label for token in tokens], forced)
        return DocExplanation(tokens, spans)

    def explain_tokens(
        self, doc: Doc, rivals: Mapping[int, str | None], *, forced: bool = False
    ) -> tuple["TokenExplanation", ...]:
        """Explain the predicted labels of some tokens of a Doc, compared with rival labels.

        Parameters
        ----------
        doc : Doc
            The Doc.
        rivals : mapping of int to str or None
            Rival labels by token position, None for the most probable other label. In a chain,
            the contributions of consecutive tokens sum to the difference between the scores with
            all of their labels and with all of their rivals.
        forced : bool, default False
            Whether to condition on existing annotation, as `predict` does.

        Returns
        -------
        tuple of TokenExplanation
            One for each position, in order; of blanks, without a label.

        Raises
        ------
        SparseCRFError
            If there are no labels, or for unknown labels and positions.
        """
        from ..tools.analysis.explanation import Explainer, TokenExplanation

        if outside := [position for position in rivals if not 0 <= position < len(doc)]:
            message = Errors.SC408.format(number=0, length=1, start=outside[0], n_tokens=len(doc))
            raise SparseCRFError(message)
        if not rivals:
            return ()
        marginals = self.marginals(doc, forced=forced)
        predictor, batch = self._read([doc], forced)
        # The method would warn that a Doc of the tokenizer has no sentences.
        [labels] = predict(predictor, [doc], forced)
        tokens = batch.division.tokens
        of_words = {w: rivals[t] for w, t in enumerate(tokens.tolist()) if t in rivals}
        words = sorted(of_words)
        observations, names = _observed(predictor, doc, words)
        rival_ids = {
            w: -1 if rival is None else self._ids([rival], predictor.labels)[0]
            for w, rival in sorted(of_words.items())
        }
        texts = [doc[t].text for t in tokens.tolist()]
        explainer = Explainer(
            self.model,
            observations,
            labels=labels[tokens],
            names=self.trained.names if names is None else names,
            rivals=rival_ids,
        )
        explained = explainer.tokens(marginals[tokens], texts)
        by_token = dict(zip(tokens[words].tolist(), explained, strict=True))
        for t in rivals.keys() - by_token.keys():
            by_token[t] = TokenExplanation(
                doc[t].text,
                label="",
                probability=1.0,
                runner_up=None,
                runner_up_probability=0.0,
                contributions=(),
            )
        return tuple(by_token[t] for t in sorted(rivals))

    def _predicted_spans(
        self, doc: Doc, labels: Sequence[str], forced: bool
    ) -> tuple["LabelledSpan", ...] | None:
        """Return the spans of a Doc's labels; None without a span target."""
        from ..tools.analysis.explanation import LabelledSpan

        target, known_labels = self.target, self.predictor().labels
        if not isinstance(target, SpanTarget):
            return None
        ids = np.array([known_labels.index(label) if label else -1 for label in labels])
        spans = target.spans([ids], known_labels).named()
        probabilities = self.entity_probabilities(doc, spans, forced=forced).tolist()
        return tuple(LabelledSpan(*span, p) for span, p in zip(spans, probabilities, strict=True))

    def _read(self, docs: Sequence[Doc], forced: bool) -> tuple[DocPredictor, Batch]:
        """Return the predictor, and what it reads; see `DocPredictor.batch`."""
        self._check_docs(docs)
        predictor = self.predictor()
        return predictor, predictor.batch(docs, forced)

    def _check_docs(self, docs: Sequence[object]) -> None:
        """Check an argument. RAISES: SparseCRFError if one is not a Doc."""
        for doc in docs:
            if not isinstance(doc, Doc):
                raise SparseCRFError(Errors.SC430.format(name=self.name, found=repr(doc)[:60]))

    def _ids(self, labels: Iterable[str], known: Sequence[str]) -> list[int]:
        """Return the ids of labels. RAISES: SparseCRFError for an unknown label."""
        ids = {label: i for i, label in enumerate(known)}
        labels = list(labels)
        for label in labels:
            if label not in ids:
                message = Errors.SC409.format(name=self.name, label=label, known=", ".join(known))
                raise SparseCRFError(message)
        return [ids[label] for label in labels]


def _observed(
    predictor: DocPredictor, doc: Doc, words: Sequence[int]
) -> tuple[Observations, Names | None]:
    """Return the observations of a Doc, and the names of the features of some of its words.

    The names come from the Doc, even if the model stores none; None for custom featurizers.
    """
    from .features.naming import NameRecord

    setup, model = predictor.setup, predictor.model
    record = NameRecord.of(setup.features)
    if record is None:
        return setup.features([doc], setup.settings.sequences), None
    parts = predictor.completed(record.read([doc], setup.settings.sequences))
    observations: Observations = setup.features.observe(parts)  # type: ignore[attr-defined]
    completed = iter(parts)
    record.refill(lambda *_: next(completed), predictor.texts)
    # Features of pairs of labels are weighed at the second word of a pair.
    near = sorted({min(w + step, observations.n_tokens - 1) for w in words for step in (0, 1)})
    hashes = np.concatenate(
        [
            observations.unigram_hashes[near].ravel(),
            observations.bigram_hashes[near].ravel(),
            observations.value_keys,
        ]
    )
    keys = np.concatenate((model.unigram.keys, model.bigram.keys))
    names = Names()
    names.add(record.names(np.intersect1d(hashes, keys)))
    return observations, names


def _words(batch: Batch, start: int, length: int, number: int) -> tuple[int, list[int]]:
    """Return the first word of a span of a Doc, and the tokens of its words.

    RAISES: SparseCRFError if the span has no words, or is not within the Doc.
    """
    tokens, n_tokens = batch.division.tokens, int(batch.division.behind[-1])
    begin, end = tokens.searchsorted((start, start + length)).tolist()
    if not 0 <= start < start + length <= n_tokens or begin == end:
        message = Errors.SC408.format(number=number, length=length, start=start, n_tokens=n_tokens)
        raise SparseCRFError(message)
    return begin, tokens[begin:end].tolist()


def combine(ranked: Sequence[Floats], n: int) -> tuple[Longs, Floats]:
    """Find the n largest sums of one value of each list.

    ranked: D lists in descending order. RETURNS: [K, D] int64 positions in the lists, and [K]
    float64 sums in descending order, K <= n.
    """
    chosen, totals = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for values in ranked:
        # At least i j - 1 other sums are no smaller than the sum of the i-th and j-th, from 1.
        limits = np.minimum(n // np.arange(1, len(totals) + 1), len(values))
        left = np.repeat(np.arange(len(totals)), limits)
        right = np.arange(len(left)) - np.repeat(np.cumsum(limits) - limits, limits)
        sums = totals[left] + values[right]
        best = np.argsort(-sums, kind="stable")[:n]
        chosen, totals = np.column_stack((chosen[left[best]], right[best])), sums[best]
    return chosen, totals
