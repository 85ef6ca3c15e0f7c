"""Components saved in the current format, and the configs they were trained with."""

from pathlib import Path
from typing import Any

MODELS = Path(__file__).parents[1] / "models"
READ = ["b:", "u:lower[0]", "u:suffix(3)[0]"]
PATTERNS = {"@crf_features": "spacy_sparsecrf.WapitiPatterns.v1", "text": "*:%x[0,0]"}
CONFIGS: dict[str, dict[str, Any]] = {
    "tags": {"learning": {"dtype": "float64"}},
    "entities": {"factory": "sparse_crf_ner", "learning": {"store_feature_names": False}},
    "memm": {"templates": READ, "model": "memm"},
    "clusters": {"templates": READ, "model": "maxent", "learning": {"clusters": 2}},
    "stack": {"templates": [*READ, "u:first[-1]"], "learning": {"stack": {"folds": 2}}},
    "word_labels": {"templates": ["@word_labels", *READ]},
    "patterns": {"features": PATTERNS},
}
