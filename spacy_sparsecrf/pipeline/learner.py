"""Steps on the batches that spaCy's loop hands over.

Imports numba.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from spacy.training import Example
from spacy.util import logger

from ..corpus import EncodedCorpus
from ..errors import Errors
from ..model import CRFModel
from ..solvers.streaming import StreamSolver
from ..streaming import Stream
from ..targets.base import Target
from .compilation import announce_training
from .compiling import Features, LabelIds, compile_corpus

if TYPE_CHECKING:
    from .base import SparseCRF


@dataclass
class Learner:
    """What turns Examples of a batch into steps of the solver.

    sequences: "sents" or "docs"; label_ids: fixed.
    """

    stream: Stream
    features: Features
    target: Target
    sequences: str
    label_ids: LabelIds

    def learn(self, examples: Iterable[Example]) -> float:
        """Featurise and encode a batch, and make the solver's steps on it.

        RETURNS: the batch's loss, see `Stream.learn`; 0 where no token has a gold label.
        RAISES: SparseCRFError for a gold label that is not known, or weights without bounds.
        """
        parts = self.features, self.target, self.sequences, self.label_ids
        compiled = compile_corpus(examples, *parts)
        if compiled.corpus is None:
            return 0.0
        loss = self.stream.learn(compiled.corpus)
        logger.debug("learnt from %s", self.stream.progress)
        return loss


def start_learner(
    pipe: "SparseCRF",
    corpus: EncodedCorpus,
    labels: tuple[str, ...],
    start: CRFModel | None,
    *,
    whole: bool,
) -> Learner:
    """Begin a training run on batches.

    pipe: the component; corpus: of first examples; labels: of its label ids; start: weights to
    continue from, or None; whole: whether the corpus is all there is.
    RAISES: SparseCRFError for settings that need the whole corpus.
    """
    announce_training()
    settings = pipe.settings
    stream = Stream(
        corpus,
        labels,
        cast(StreamSolver, pipe.solver),
        l1=settings.l1,
        l2=settings.l2,
        dtype=settings.dtype,
        precision=settings.precision,
        kind=settings.model,
        clusters=settings.clusters,
        whole=whole,
        init=start,
    )
    logger.info("%s: learns %d labels from batches", pipe.name, len(labels))
    label_ids = LabelIds(pipe.name, labels, fixed=True, unknown=Errors.SC380)
    parts = pipe.features, pipe.target, settings.sequences
    return Learner(stream, *parts, label_ids)
