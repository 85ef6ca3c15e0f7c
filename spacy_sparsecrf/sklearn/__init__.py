"""The scikit-learn estimator: a sparse CRF for sequences of features, without Docs."""

from ..interop.sklearn import estimator
from ..interop.sklearn.estimator import CRF

__all__ = ["CRF", "estimator"]
