"""Tells the user when kernels are compiled, which happens once after installation."""

import warnings
from functools import cache
from typing import Any

from spacy.util import logger

from ..errors import SparseCRFWarning, Warnings

_NOTICE = (
    "spacy-sparsecrf compiles its %s kernels for this machine: once after installation, for "
    "about %d seconds. `python -m spacy_sparsecrf warmup` does it ahead."
)
_TRAINING_SECONDS = 25
_PREDICTION_SECONDS = 6


def announce_training() -> None:
    """Log a notice if training will have to compile; warn if it will have to each time."""
    from ..kernels.expectations import infer_chunk

    _announce(infer_chunk, "training", _TRAINING_SECONDS)


def announce_prediction() -> None:
    """Log a notice if prediction will have to compile; warn if it will have to each time."""
    from ..kernels.viterbi import viterbi

    _announce(viterbi, "prediction", _PREDICTION_SECONDS)


def _announce(kernel: Any, purpose: str, seconds: int) -> None:
    from ..kernels.compiled import is_compiled, is_kept

    if is_compiled(kernel):
        return
    if is_kept(kernel):
        logger.warning(_NOTICE, purpose, seconds)
    else:
        _warn_of_loss()


@cache  # once in a process, whatever it does first
def _warn_of_loss() -> None:
    warnings.warn(Warnings.SCW204, SparseCRFWarning, stacklevel=4)
