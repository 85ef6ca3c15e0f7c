"""Whether to train on the batches of spaCy's loop instead of on a corpus that is read before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spacy.language import Language

from ..errors import Errors, SparseCRFError

if TYPE_CHECKING:
    from ..solvers.base import BatchSolver

_STARVING_BATCHER = "spacy_sparsecrf.one_step_per_epoch.v1"
ENDLESS = -1  # the value of [training] max_epochs


def is_endless(nlp: Language | None) -> bool:
    """Whether the training corpus is streamed, so that `initialize` sees its first examples only.

    nlp: the pipeline, or None outside of one.
    """
    return nlp is not None and _training(nlp)["max_epochs"] == ENDLESS


def is_on_batches(nlp: Language | None, solver: BatchSolver, name: str) -> bool:
    """Whether to train on the batches of the loop.

    nlp: the pipeline, or None; name: of the component.
    RAISES: SparseCRFError where the corpus is streamed and the solver needs all of it, and where
        the config's batcher would hand over a single example of each epoch.
    """
    endless = is_endless(nlp)
    if endless and not solver.streaming:
        raise SparseCRFError(Errors.SC204.format(name=name))
    wanted: bool = endless or getattr(solver, "on_batches", False)
    if wanted and nlp is not None and _batcher(nlp) == _STARVING_BATCHER:
        raise SparseCRFError(Errors.SC381.format(name=name))
    return wanted


def _training(nlp: Language) -> dict[str, object]:
    settings: dict[str, object] = nlp.config.interpolate()["training"]
    return settings


def _batcher(nlp: Language) -> object:
    batcher = _training(nlp).get("batcher")
    return batcher.get("@batchers") if isinstance(batcher, dict) else None
