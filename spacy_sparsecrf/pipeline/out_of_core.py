"""`corpus_dir` of a component's initialize block: a corpus in files instead of in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spacy.language import Language

from ..arrays import MEMORY, Files, Memory
from ..corpus_files import check_directory
from ..errors import Errors, SparseCRFError
from ..solvers.base import check_out_of_core
from .streaming import is_on_batches

if TYPE_CHECKING:
    from .base import SparseCRF


def open_store(pipe: SparseCRF, corpus_dir: str | Path | None, nlp: Language | None) -> Memory:
    """Where arrays go that are as long as the corpus of a component.

    corpus_dir: path of a directory, made where there is none; None for memory.
    nlp: the pipeline, or None.
    RAISES: SparseCRFError for a directory that cannot be made, and for settings and solvers that
        need the whole corpus in memory.
    """
    if corpus_dir is None:
        return MEMORY
    name, model, learning = pipe.name, pipe.settings.model, pipe.learning
    needing = {
        "training on batches": is_on_batches(nlp, pipe.solver, name),
        f'[components.{name}] model = "{model}"': model != "chain",
        f"[components.{name}.learning] constrained = true": learning.constrained,
    }
    for setting, needs in needing.items():
        if needs:
            raise SparseCRFError(Errors.SC346.format(setting=setting))
    check_out_of_core(pipe.solver)
    check_directory(Path(corpus_dir))
    return Files(Path(corpus_dir))
