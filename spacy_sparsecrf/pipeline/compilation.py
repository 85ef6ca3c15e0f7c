"""Tells the user when kernels are compiled, which happens once after installation."""

from spacy.util import logger

_NOTICE = (
    "spacy-sparsecrf compiles its %s kernels for this machine: once after installation, for "
    "about %d seconds. `python -m spacy_sparsecrf warmup` does it ahead."
)
_TRAINING_SECONDS = 25
_PREDICTION_SECONDS = 6


def announce_training() -> None:
    """Log a notice if training will have to compile."""
    from ..kernels.cache import is_compiled
    from ..kernels.forward_backward import forward_backward

    if not is_compiled(forward_backward):
        logger.warning(_NOTICE, "training", _TRAINING_SECONDS)


def announce_prediction() -> None:
    """Log a notice if prediction will have to compile."""
    from ..kernels.cache import is_compiled
    from ..kernels.viterbi import viterbi

    if not is_compiled(viterbi):
        logger.warning(_NOTICE, "prediction", _PREDICTION_SECONDS)
