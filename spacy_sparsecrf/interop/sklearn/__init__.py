"""The scikit-learn estimator; see `spacy_sparsecrf.sklearn`."""

from ...errors import Errors, MissingExtraError

try:
    import sklearn as _  # noqa: F401
except ImportError as error:
    values = {"what": "spacy_sparsecrf.sklearn", "package": "scikit-learn", "extra": "sklearn"}
    raise MissingExtraError(Errors.SC817.format(**values)) from error
