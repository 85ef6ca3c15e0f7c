"""The estimator by the parameters that scripts for sklearn-crfsuite have."""

from ...errors import Errors, SparseCRFError
from .estimator import Estimator, EstimatorSettings

_ALGORITHMS = (None, "lbfgs", "l2sgd")  # that minimise the objective


class CRF(Estimator):
    """`SparseCRF` by the parameters of CRFsuite, whose objective and features it has.

    Minimises -log p + c1 |theta|_1 + c2 |theta|_2^2, so that l1 = c1 and l2 = 2 c2. None stands for
    CRFsuite's default.

    algorithm: "lbfgs" or "l2sgd", which have one minimum.
    min_freq: features that fewer tokens have are left out, with whatever label.
    all_possible_states, all_possible_transitions, max_iterations: see `SparseCRF`.
    c1, c2: penalties; by default 0 and 1.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: int | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations

    def settings(self) -> EstimatorSettings:
        """Translate the parameters. RAISES: SparseCRFError for another algorithm."""
        if self.algorithm not in _ALGORITHMS:
            raise SparseCRFError(Errors.SC813.format(value=self.algorithm))
        return EstimatorSettings(
            l1=self.c1 or 0.0,
            l2=2.0 * (1.0 if self.c2 is None else self.c2),
            all_possible_states=bool(self.all_possible_states),
            all_possible_transitions=bool(self.all_possible_transitions),
            min_freq=self.min_freq or 1,
            max_iterations=self.max_iterations,
        )
