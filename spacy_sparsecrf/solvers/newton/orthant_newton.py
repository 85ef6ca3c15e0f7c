"""The name of a removed solver, kept so that pipelines which it trained can be loaded."""

from dataclasses import dataclass

from ...registry import crf_solvers
from ..base import BatchSolver


@crf_solvers("spacy_sparsecrf.OrthantNewton.v1")
@dataclass(kw_only=True, eq=False)
class OrthantNewton(BatchSolver):
    """Stands for a removed solver: a pipeline loads and predicts, but is not trained.

    Its settings are those in configs of saved pipelines.
    """

    removed = True

    stored: int = -1
    xi: float = 0.1
    max_cg: int = 50
    max_line_search: int = 5
    inner_iterations: int = 5
