"""Steps on the batches that spaCy's loop hands over.

Imports numba.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example
from spacy.util import logger

from ..corpus import EncodedCorpus
from ..errors import Errors, SparseCRFError
from ..model import CRFModel
from ..solvers.streaming import StreamSolver
from ..streaming import Stream
from ..targets.base import Target
from ..weighting import weighted
from .compilation import announce_training
from .compiling import Features, LabelIds, compile_corpus
from .defaults import DEFAULT_LEARNING
from .learning_settings import LearningSettings

if TYPE_CHECKING:
    from .base import SparseCRF


@dataclass
class Learner:
    """What turns Examples of a batch into steps of the solver.

    sequences: "sents" or "docs"; label_ids: fixed; learning: of component `name`; label_weights:
    [Y] float64, or None.
    """

    stream: Stream
    features: Features
    target: Target
    sequences: str
    label_ids: LabelIds
    learning: LearningSettings
    name: str
    label_weights: NDArray[np.float64] | None

    def learn(self, examples: Iterable[Example]) -> float:
        """Featurise and encode a batch, and make the solver's steps on it.

        RETURNS: the batch's loss, see `Stream.learn`; 0 where no token has a gold label.
        RAISES: SparseCRFError for a gold label that is not known, or weights without bounds.
        """
        parts = self.features, self.target, self.sequences, self.label_ids
        compiled = compile_corpus(examples, *parts, self.learning, self.name)
        corpus = compiled.corpus
        if corpus is not None and self.label_weights is not None:
            corpus = weighted(corpus, self.label_weights)
        if corpus is None or not corpus.weights.any():
            return 0.0
        loss = self.stream.learn(corpus)
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
    learning = pipe.learning
    for key in ("min_freq", "observed_only", "merge_tests", "constrained", "schedule"):
        value, needed = getattr(learning, key), DEFAULT_LEARNING[key]
        if value != needed:
            values = {"name": pipe.name, "key": key, "value": value, "needed": needed}
            raise SparseCRFError(Errors.SC384.format(**values))
    announce_training()
    settings = pipe.settings
    stream = Stream(
        corpus,
        labels,
        cast(StreamSolver, pipe.solver),
        whole=whole,
        init=start,
        **settings.problem,
    )
    logger.info("%s: learns %d labels from batches", pipe.name, len(labels))
    label_ids = LabelIds(pipe.name, labels, fixed=True, unknown=Errors.SC380)
    parts = pipe.features, pipe.target, settings.sequences
    weights = learning.weights_of(pipe.name, labels)
    return Learner(stream, *parts, label_ids, learning, pipe.name, weights)
