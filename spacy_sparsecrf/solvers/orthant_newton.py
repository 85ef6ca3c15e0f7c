"""The name of a solver that is gone, which stays so that what it trained can be loaded."""

from ..registry import crf_solvers
from .base import BatchSettings


@crf_solvers("spacy_sparsecrf.OrthantNewton.v1")
class OrthantNewton(BatchSettings):
    """Stands for a solver that is gone: a pipeline loads and predicts, but is not trained.

    The settings are those that configs of stored pipelines have.
    RAISES: SparseCRFError where a setting that all solvers have is out of range.
    """

    gone = True

    def __init__(
        self,
        *,
        stored: int = -1,
        xi: float = 0.1,
        max_cg: int = 50,
        max_line_search: int = 5,
        tolerance: float = 1e-3,
        window: float = 1e-5,
        inner_iterations: int = 5,
        warm_start_epochs: int = 6,
        seed: int = 0,
        polish_iterations: int = 0,
        polish_l2: float = 1e-5,
    ) -> None:
        common = tolerance, window, inner_iterations, warm_start_epochs, seed
        super().__init__(*common, polish_iterations, polish_l2)
