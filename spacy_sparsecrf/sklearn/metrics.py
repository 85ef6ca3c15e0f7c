"""Metrics of scikit-learn over the tokens of all sequences, with the names of sklearn-crfsuite.

y_true, y_pred: lists of labels for the same sequences. Other arguments: see the metric.
"""

from collections.abc import Callable, Iterable
from typing import Any

from sklearn import metrics

from .utils import flatten


def _flat(metric: Callable[..., Any], name: str, *names: str) -> Callable[..., Any]:
    """Return a metric over tokens. names: of further arguments that may be positional."""

    def score(y_true: Iterable[Any], y_pred: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        named = dict(zip(names, args, strict=False))
        if len(args) > len(names) or not named.keys().isdisjoint(kwargs):
            raise TypeError(f"{name} takes {2 + len(names)} positional arguments, each once")
        return metric(flatten(y_true), flatten(y_pred), **named, **kwargs)

    score.__name__ = score.__qualname__ = name
    score.__doc__ = f"Compute `sklearn.metrics.{metric.__name__}` over the tokens of all sequences."
    return score


flat_accuracy_score = _flat(metrics.accuracy_score, "flat_accuracy_score")
flat_precision_score = _flat(metrics.precision_score, "flat_precision_score")
flat_recall_score = _flat(metrics.recall_score, "flat_recall_score")
flat_f1_score = _flat(metrics.f1_score, "flat_f1_score")
flat_fbeta_score = _flat(metrics.fbeta_score, "flat_fbeta_score", "beta")
flat_classification_report = _flat(
    metrics.classification_report, "flat_classification_report", "labels"
)


def sequence_accuracy_score(y_true: Iterable[Any], y_pred: Iterable[Any]) -> float:
    """Compute the share of sequences with all labels correct; 0 if there are no sequences."""
    right = [[*gold] == [*labels] for gold, labels in zip(y_true, y_pred, strict=True)]
    return sum(right) / len(right) if right else 0.0
