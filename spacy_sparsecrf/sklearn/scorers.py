"""Scorers for `cross_val_score` and the searches of scikit-learn."""

from sklearn.metrics import make_scorer

from .metrics import flat_accuracy_score, sequence_accuracy_score

flat_accuracy = make_scorer(flat_accuracy_score)
sequence_accuracy = make_scorer(sequence_accuracy_score)
