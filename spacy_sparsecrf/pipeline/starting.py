"""The beginning of a training run on a corpus that has been read."""

import warnings
from typing import TYPE_CHECKING

from spacy.util import logger

from ..corpus import EncodedCorpus
from ..errors import SparseCRFWarning, Warnings
from ..model import CRFModel
from .compilation import announce_training
from .compiling import Compiled, Features
from .constrained import doc_named, warn_of_freedom
from .schedule_settings import training_class

if TYPE_CHECKING:
    from ..training import Training
    from .base import SparseCRF


def start_training(
    pipe: "SparseCRF",
    corpus: EncodedCorpus,
    read: Features,
    compiled: Compiled,
    start: CRFModel | None,
) -> "Training":
    """Begin a training run. Imports numba.

    pipe: the component; corpus: of compiled; read: what has read its features, see `with_kin`;
    start: weights to continue from, or None.
    RAISES: SparseCRFError for a corpus or settings that cannot be learnt from.
    """
    announce_training()
    name, labels = pipe.name, compiled.labels
    if 2 * compiled.n_missing > compiled.n_tokens:
        message = Warnings.SCW201.format(
            name=name, n_missing=compiled.n_missing, n_tokens=compiled.n_tokens
        )
        warnings.warn(message, SparseCRFWarning, stacklevel=3)
    settings, learning = pipe.settings, pipe.learning
    legal = None
    if learning.constrained:
        legal = pipe.decoding.legal(pipe.target, labels)
        warn_of_freedom(name, legal)
    make_training = training_class(name, learning.schedule, read, corpus)
    with doc_named(compiled):
        training = make_training(
            corpus,
            labels,
            pipe.solver,
            n_threads=settings.n_threads,
            observed_only=learning.observed_only,
            merge_tests=learning.merge_tests,
            label_weights=learning.weights_of(name, labels),
            legal=legal,
            init=start,
            **settings.problem,
        )
    counts = name, corpus.n_sequences, compiled.n_tokens, len(labels), training.size
    logger.info("%s: %d sequences, %d tokens, %d labels, %s", *counts)
    return training
