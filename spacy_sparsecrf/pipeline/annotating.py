"""Annotation of earlier pipes, and sentence boundaries: the same in training and prediction.

Features read the annotation; boundaries divide Docs into sequences.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spacy.attrs import SENT_START  # type: ignore[import-not-found]
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..crf.corpus.readings import Readings
from ..errors import Warnings, warn

BATCH_SIZE = 128  # Docs that an upstream pipe annotates at once
# Probability of no value at any token, taken as independent, below which values are missing.
_CHANCE = 1e-6


def annotated(examples: Iterable[Example], upstream: Collection[Any]) -> Iterator[Example]:
    """Annotate predicted Docs with [training] annotating_components, as spaCy's loop does.

    examples: not changed; copies are yielded; upstream: the pipes.
    """
    for batch in minibatch(examples, BATCH_SIZE):  # type: ignore[no-untyped-call]
        docs = [example.predicted.copy() for example in batch]
        for proc in upstream:
            docs = list(proc.pipe(docs)) if hasattr(proc, "pipe") else list(map(proc, docs))
        for doc, example in zip(docs, batch, strict=True):
            yield Example(doc, example.reference)


@dataclass
class Expected:
    """Expectations of Docs in prediction, from what training Docs had.

    Warns once about each missing attribute, and once about missing sentence boundaries.

    name: of the component; shares: share of training tokens with a value, by attribute that has not
    been missing; cut: whether they had sentence boundaries, False after the warning.
    """

    name: str
    shares: dict[str, float]
    cut: bool

    def check_cut(self, docs: Sequence[Doc]) -> None:
        """Warn if a Doc has no sentence boundaries."""
        if not all(doc.has_annotation(SENT_START) for doc in docs):
            self.cut = False
            warn(Warnings.SCW202.format(name=self.name))

    def check(self, columns: Mapping[str, int], parts: Sequence[Readings]) -> None:
        """Warn about attributes that no token of a batch has, although training tokens had them.

        An attribute that is rare in training is reported only if the batch has many tokens.

        columns: of annotations, by attribute; parts: readings of the batch.
        """
        n_tokens = sum(part.n_tokens for part in parts)
        for attribute, share in list(self.shares.items()):
            column = columns.get(attribute)
            if column is None or any(part.annotations[:, column].any() for part in parts):
                continue
            if (1.0 - share) ** n_tokens < _CHANCE:
                del self.shares[attribute]
                message = Warnings.SCW206.format(
                    name=self.name, attribute=attribute, n_tokens=n_tokens, share=share
                )
                warn(message)
