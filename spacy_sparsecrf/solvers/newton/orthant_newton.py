"""The name of a solver that is gone, which stays so that what it trained can be loaded."""

from dataclasses import dataclass

from ...registry import crf_solvers
from ..base import BatchSolver


@crf_solvers("spacy_sparsecrf.OrthantNewton.v1")
@dataclass(kw_only=True, eq=False)
class OrthantNewton(BatchSolver):
    """Stands for a solver that is gone: a pipeline loads and predicts, but is not trained.

    The settings are those that configs of stored pipelines have.
    RAISES: SparseCRFError where a setting that all solvers have is out of range.
    """

    gone = True

    stored: int = -1
    xi: float = 0.1
    max_cg: int = 50
    max_line_search: int = 5
    inner_iterations: int = 5
