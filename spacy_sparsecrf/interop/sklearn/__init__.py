"""Estimators of scikit-learn; see `spacy_sparsecrf.sklearn`."""
