"""What a component's config has where the user says nothing."""

from typing import Any

# The block [components.NAME.learning]; see `learning_settings`.
DEFAULT_LEARNING: dict[str, Any] = {
    "min_freq": 1,
    "observed_only": False,
    "merge_tests": False,
    "label_weights": {},
    "doc_weight": "",
    "constrained": False,
    "schedule": [],
}

DEFAULT_CONFIG: dict[str, Any] = {
    "features": {"@crf_features": "spacy_sparsecrf.Templates.v1"},
    "target": {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1"},
    "solver": {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1"},
    "model": "chain",
    "clusters": 0,
    "l1": 0.5,
    "l2": 1e-5,
    "sequences": "sents",
    "dtype": "float32",
    "precision": "float64",
    "n_threads": 0,
    "overwrite": False,
    "threshold": 0.0,
    "decoding": {"method": "viterbi", "forbidden": [], "allowed": [], "scores": False},
    "learning": DEFAULT_LEARNING,
    "names": True,
    "scorer": {"@scorers": "spacy.tagger_scorer.v1"},
}
