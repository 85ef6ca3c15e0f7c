"""The course of training: objective, weights and scores by iteration, shown as a curve."""

from typing import NamedTuple


class Iteration(NamedTuple):
    """Progress of training after some iterations.

    Attributes
    ----------
    number : int
        Number of iterations so far.
    loss : float
        The objective: loss plus penalty.
    n_active : int
        Number of non-zero weights.
    seconds : float
        Time since the start of training.
    score : float or None
        Of an estimator: share of correct labels of held-out tokens. Of a component: score of the
        evaluation that followed, such as `ents_f`. None without them.

    Examples
    --------
    >>> Iteration(10, 71.8, 1210, 0.4, 0.97).loss
    71.8
    """

    number: int
    loss: float
    n_active: int
    seconds: float
    score: float | None


class TrainingLog(list[Iteration]):
    """The course of a training run: a list of `Iteration`. Notebooks show it as a curve.

    Examples
    --------
    >>> log = pipe.training_log
    >>> [(each.number, each.n_active) for each in log]
    [(1, 1678), (2, 278), (3, 272), (4, 271)]
    """

    def __repr__(self) -> str:
        return f"TrainingLog({self[-1] if self else 'no iterations'})"

    def _repr_html_(self) -> str:
        from .tools.pages.rendering import fill

        return fill("training_log.html", log=self)
