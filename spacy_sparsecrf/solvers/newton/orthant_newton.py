"""The name of a removed solver, kept to load pipelines that were trained with it."""

from dataclasses import dataclass

from ...registry import crf_solvers
from ..base import BatchSolver


@crf_solvers("spacy_sparsecrf.OrthantNewton.v1")
@dataclass(kw_only=True, eq=False)
class OrthantNewton(BatchSolver):
    """Placeholder of a removed solver: a pipeline loads and predicts, but cannot be trained.

    Its settings are those in configs of saved pipelines.
    """

    removed = True

    stored: int = -1
    xi: float = 0.1
    max_cg: int = 50
    max_line_search: int = 5
    inner_iterations: int = 5
