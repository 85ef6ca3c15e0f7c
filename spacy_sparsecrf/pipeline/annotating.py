"""Annotation of earlier pipes, and sentence boundaries: the same in training and prediction.

Features read the annotation; boundaries divide Docs into sequences.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import SENT_START  # type: ignore[import-not-found]
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..corpus.readings import Readings
from ..errors import Warnings, warn
from ..features.coverage import Coverage

BATCH_SIZE = 128  # Docs that an upstream pipe annotates at once
SENTENCES = "sents"
WHOLE = "docs"
# Probability of no value at any token, taken as independent, below which values are missing.
_CHANCE = 1e-6


def annotated(examples: Iterable[Example], nlp: Language | None, pipe: object) -> Iterator[Example]:
    """Annotate predicted Docs with [training] annotating_components, as spaCy's loop does.

    examples, pipe: see `annotated_by` and `annotating`; nlp: the pipeline, or None. An enabled pipe
    that may be untrained raises a warning.
    """
    upstream = annotating(nlp, pipe)
    for name, proc in upstream.items():
        if nlp and name in nlp.pipe_names and getattr(proc, "is_trainable", False):
            warn(Warnings.SCW203.format(name=getattr(pipe, "name", ""), upstream=name))
    return annotated_by(upstream.values(), examples)


def annotated_by(upstream: Collection[Any], examples: Iterable[Example]) -> Iterator[Example]:
    """Annotate predicted Docs with pipes.

    examples: not changed; if there are pipes, copies are yielded.
    """
    if not upstream:
        yield from examples
        return
    for batch in minibatch(examples, BATCH_SIZE):  # type: ignore[no-untyped-call]
        docs = [example.predicted.copy() for example in batch]
        for proc in upstream:
            docs = list(proc.pipe(docs)) if hasattr(proc, "pipe") else list(map(proc, docs))
        for doc, example in zip(docs, batch, strict=True):
            yield Example(doc, example.reference)


def annotating(nlp: Language | None, pipe: object) -> dict[str, Any]:
    """Return the annotating pipes before `pipe`, by their names.

    Disabled pipes are included, because spaCy disables frozen and sourced pipes during
    `initialize`.
    """
    if nlp is None:
        return {}
    names = nlp.config.interpolate()["training"]["annotating_components"]
    before = takewhile(lambda own: own[1] is not pipe, nlp.components)
    return {name: proc for name, proc in before if name in names}


def observed_cut(example: Example) -> str | None:
    """Return how the predicted Doc is divided into sequences, if this can be determined.

    RETURNS: "sents" if it has sentence boundaries; "docs" if it has none although the gold
        Doc has several sentences; None if it makes no difference or is unknown, because a Doc
        without boundaries can be one sentence.
    """
    if _has_boundaries(example.predicted):
        return SENTENCES
    return WHOLE if _n_starts(example.reference) > 1 else None


def _has_boundaries(doc: Doc) -> bool:
    return len(doc) > 1 and doc.has_annotation(SENT_START)


def _n_starts(doc: Doc) -> int:
    """Count the tokens that are marked as the start of a sentence; the first always is."""
    return int((doc.to_array("SENT_START") == 1).sum())


# Attributes that features read


def warn_of_missing(name: str, coverage: Coverage, nlp: Language | None, pipe: object) -> None:
    """Warn about attributes of features that training Docs lack, or that only prediction sets.

    name: of the component `pipe`; nlp: its pipeline, or None.
    """
    idle = dict(_idle(nlp, pipe, coverage.counts))
    for attribute in coverage.missing:
        if attribute not in idle:
            values = {"name": name, "attribute": attribute, "n_tokens": coverage.n_tokens}
            warn(Warnings.SCW205.format(**values))
    for attribute, share in coverage.rare.items():
        values = {"attribute": attribute, "n_tokens": coverage.n_tokens, "share": share}
        warn(Warnings.SCW215.format(name=name, **values))
    for attribute, upstream in idle.items():
        warn(Warnings.SCW219.format(name=name, attribute=attribute, upstream=upstream))


def _idle(
    nlp: Language | None, pipe: object, attributes: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield attributes that earlier pipes set in prediction but not in training, with the pipe.

    Pipes that this run trains are left out, because they cannot annotate yet. spaCy disables frozen
    and sourced pipes during `initialize`.
    """
    if nlp is None:
        return
    config = nlp.config.interpolate()
    named, off = config["training"]["annotating_components"], config["nlp"]["disabled"]
    for name, proc in nlp.components:
        if proc is pipe:
            return
        is_trained = getattr(proc, "is_trainable", False) and name in nlp.pipe_names
        if name in (*named, *off) or is_trained:
            continue
        assigned = {assigned.split(".", 1)[-1] for assigned in nlp.get_pipe_meta(name).assigns}
        for attribute in attributes:
            if attribute in assigned:
                yield attribute, name


class Expected:
    """Expectations of Docs in prediction, from what training Docs had.

    Warns once about each missing attribute, and once about another division into sequences.

    name: of the component; shares: share of training tokens with a value, by attribute that has not
    been missing; cut: result of `observed_cut` in training, None after the warning.
    """

    def __init__(self, name: str, shares: Mapping[str, float], cut: str | None) -> None:
        self._name = name
        self.shares = dict(shares)
        self.cut = cut

    def check_cut(self, docs: Sequence[Doc]) -> None:
        """Warn if a Doc is not divided into sequences as the training Docs."""
        if self.cut == SENTENCES and not all(doc.has_annotation(SENT_START) for doc in docs):
            skew = "sentences", "Docs without sentence boundaries"
        elif self.cut == WHOLE and any(_has_boundaries(doc) and _n_starts(doc) > 1 for doc in docs):
            skew = "whole Docs of several sentences", "Docs that are cut into sentences"
        else:
            return
        self.cut = None
        warn(Warnings.SCW202.format(name=self._name, trained=skew[0], given=skew[1]))

    def check(self, columns: Mapping[str, int], parts: Sequence[Readings]) -> None:
        """Warn about attributes that no token of a batch has, although training tokens had them.

        An attribute that is rare in training is reported only if the batch has many tokens.

        columns: of annotations, by attribute; parts: readings of the batch.
        """
        n_tokens = sum(part.n_tokens for part in parts)
        for attribute, share in list(self.shares.items()):
            column = columns.get(attribute)
            if column is None or any(_has(part.annotations, column) for part in parts):
                continue
            if (1.0 - share) ** n_tokens < _CHANCE:
                del self.shares[attribute]
                values = {"attribute": attribute, "n_tokens": n_tokens, "share": share}
                warn(Warnings.SCW206.format(name=self._name, **values))


def _has(annotations: NDArray[np.uint64], column: int) -> bool:
    """Return whether any token has a value; checks the first token first, as it usually has one."""
    return bool(annotations[0, column] or annotations[:, column].any())
