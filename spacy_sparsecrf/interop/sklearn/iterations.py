"""The log of training: iterations, and scores of held-out sequences."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tqdm
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support

from ...parallel import dot

if TYPE_CHECKING:
    from ...solvers.base import StepReport


def euclidean(vector: NDArray[np.float64]) -> float:
    """Return the Euclidean norm of a vector [K]; `np.linalg.norm` may wait for BLAS threads."""
    return math.sqrt(dot(vector, vector))


class LabelScore(NamedTuple):
    """Scores of a label. ref: number of its gold tokens."""

    precision: float
    recall: float
    f1: float
    ref: int


class HoldoutScores(NamedTuple):
    """Scores of held-out sequences, by the names that python-crfsuite logs.

    scores: by label; avg_precision, avg_recall, avg_f1: means over labels; item_accuracy_float,
    instance_accuracy_float: shares of tokens and of sequences that are labelled correctly.
    """

    scores: dict[str, LabelScore]
    avg_precision: float
    avg_recall: float
    avg_f1: float
    item_accuracy_float: float
    instance_accuracy_float: float

    @classmethod
    def of(cls, gold: Sequence[Any], found: Sequence[Any]) -> "HoldoutScores":
        """Compare gold and predicted labels of the same sequences; None is no gold label."""
        every = zip(chain.from_iterable(gold), chain.from_iterable(found), strict=True)
        known = [(str(a), b) for a, b in every if a is not None]
        if not known:
            return cls({}, 0.0, 0.0, 0.0, 0.0, 0.0)
        flat_gold, flat = map(list, zip(*known, strict=True))
        labels = sorted({*flat_gold, *flat})
        of_labels = precision_recall_fscore_support(
            flat_gold, flat, labels=labels, zero_division=0.0
        )
        rows = [[float(value) for value in row] for row in zip(*of_labels, strict=True)]
        right = np.mean([a == b for a, b in zip(flat_gold, flat, strict=True)])
        whole = np.mean([[*a] == [*b] for a, b in zip(gold, found, strict=True)])
        scores = {
            y: LabelScore(p, r, f, int(n)) for y, (p, r, f, n) in zip(labels, rows, strict=True)
        }
        precision, recall, f1 = (float(np.mean(column)) for column in of_labels[:3])
        return cls(scores, precision, recall, f1, float(right), float(whole))


@dataclass
class TrainingLog:
    """Iterations of training, in the form of sklearn-crfsuite's `training_log_`.

    verbose: whether to print a line for each to the standard output; featgen_num_features: number
    of potential weights; due: iteration after which the model is scored next; iterations: dicts
    with num (from 1), time (seconds), loss (the objective, for a perceptron the number of wrong
    labels), active_features, feature_norm, error_norm (of the gradient), linesearch_trials; every
    `period` iterations also with the fields of `HoldoutScores`.
    """

    verbose: bool = False
    featgen_num_features: int = 0
    due: int = 0
    iterations: list[dict[str, Any]] = field(default_factory=list)
    n_iterations: int = 0
    is_converged: bool = False
    optimality: float = np.inf
    _since: float = field(default_factory=time.perf_counter)

    @property
    def last_iteration(self) -> dict[str, Any]:
        """The last iteration."""
        return self.iterations[-1]

    def add(self, report: "StepReport", theta: Any, error_norm: float = np.nan, n: int = 1) -> None:
        """Record an iteration, or n iterations as one entry.

        theta: [K], the weights after it; error_norm: Euclidean norm of the (pseudo-)gradient.
        """
        now = time.perf_counter()
        self.n_iterations += n
        self.is_converged, self.optimality = report.converged, report.optimality
        entry = {
            "num": self.n_iterations,
            "time": now - self._since,
            "loss": report.objective,
            "active_features": report.n_active,
            "feature_norm": euclidean(theta),
            "error_norm": error_norm,
            "linesearch_trials": int(report.passes),
        }
        self.iterations.append(entry)
        self._since = now
        if self.verbose:
            line = (
                "Iter {num:<3} time={time:<5.2f} loss={loss:<8.2f} active={active_features:<5} "
                "feature_norm={feature_norm:.2f}"
            )
            tqdm.tqdm.write(line.format(**entry))

    def score(self, scores: HoldoutScores) -> None:
        """Add scores of held-out sequences to the last iteration."""
        if self.iterations:
            self.last_iteration.update(scores._asdict())
        if self.verbose:
            tqdm.tqdm.write(
                f"         precision={scores.avg_precision:.3f} recall={scores.avg_recall:.3f} "
                f"F1={scores.avg_f1:.3f} Acc(item/seq)={scores.item_accuracy_float:.3f} "
                f"{scores.instance_accuracy_float:.3f}"
            )
