"""The factory `sparse_crf_ner`: named entities."""

from typing import Any

from spacy.language import Language

from ..features.defaults import ENTITY_TEMPLATES
from .defaults import DEFAULT_CONFIG
from .tagger import make_sparse_crf

NER_CONFIG: dict[str, Any] = {
    **DEFAULT_CONFIG,
    "features": {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": list(ENTITY_TEMPLATES),
    },
    "target": {"@crf_targets": "spacy_sparsecrf.Entities.v1"},
    "scorer": {"@scorers": "spacy.ner_scorer.v1"},
}

Language.factory(
    "sparse_crf_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config=NER_CONFIG,
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
    func=make_sparse_crf,
)
