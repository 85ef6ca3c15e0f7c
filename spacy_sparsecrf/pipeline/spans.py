"""The factory `sparse_crf_spans`: spans that do not overlap, such as chunks."""

from typing import Any

from spacy.language import Language

from ..features.defaults import CHUNK_TEMPLATES
from .defaults import DEFAULT_CONFIG
from .tagger import make_sparse_crf

SPANS_CONFIG: dict[str, Any] = {
    **DEFAULT_CONFIG,
    "features": {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": list(CHUNK_TEMPLATES),
    },
    "target": {"@crf_targets": "spacy_sparsecrf.Spans.v1"},
    "scorer": {"@scorers": "spacy.spancat_scorer.v1"},
}

Language.factory(
    "sparse_crf_spans",
    assigns=["doc.spans"],
    default_config=SPANS_CONFIG,
    default_score_weights={"spans_sc_f": 1.0, "spans_sc_p": 0.0, "spans_sc_r": 0.0},
    func=make_sparse_crf,
)
