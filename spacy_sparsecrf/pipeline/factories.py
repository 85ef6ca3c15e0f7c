"""Factories of components for token labels, named entities, and spans such as chunks.

spaCy imports all factories whenever it creates a pipeline, even without this component. The parts
of a component are therefore imported only when a component is created.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.language import Language

from .features.defaults import CHUNK_TEMPLATES, ENTITY_TEMPLATES
from .targets.target import Target

if TYPE_CHECKING:
    from .component import SparseCRFPipe

# The block [components.NAME.learning]; see `settings`.
DEFAULT_LEARNING: dict[str, Any] = {
    "min_freq": 1,
    "observed_only": False,
    "label_weights": {},
    "doc_weight": "",
    "negative_rate": 0.1,
    "negative_seed": 0,
    "constrained": False,
    "prior": "",
    "stack": {},
    "warm_start": {},
    "polish": {},
    "clusters": 0,
    "dtype": "float32",
    "precision": "float64",
    "store_feature_names": True,
}

# Settings that all factories share; see `settings`.
COMMON: dict[str, Any] = {
    "solver": {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1"},
    "engine": {"@crf_engines": "spacy_sparsecrf.Threads.v1"},
    "model": "chain",
    # Chosen on development data: see project/measurements/EXPERIMENTS.md.
    "l1": 0.1,
    "l2": 0.3,
    "sequences": "docs",
    "n_threads": 0,
    "overwrite": False,
    "threshold": 0.0,
    "decoding": {
        "method": "viterbi",
        "forbidden": [],
        "allowed": [],
        "scores": False,
        "temperature": 1.0,
        "outside_weight": 0.0,
        "thresholds": {},
    },
    "learning": DEFAULT_LEARNING,
}


class Factory(NamedTuple):
    """The settings in which factories differ: the target, its features, and its scores.

    templates: of the features, None for the default templates; l1, l2: the penalties.
    """

    target: str
    templates: tuple[str, ...] | None
    scorer: str
    assigns: list[str]
    score_weights: dict[str, float | None]
    l1: float = COMMON["l1"]
    l2: float = COMMON["l2"]

    @property
    def default_config(self) -> dict[str, Any]:
        """The config of a component without user settings."""
        features: dict[str, Any] = {"@crf_features": "spacy_sparsecrf.Templates.v1"}
        if self.templates is not None:
            features["templates"] = list(self.templates)
        target, scorer = {"@crf_targets": self.target}, {"@scorers": self.scorer}
        penalty = {"l1": self.l1, "l2": self.l2}
        return {"features": features, "target": target, **COMMON, **penalty, "scorer": scorer}


FACTORIES = {
    "sparse_crf": Factory(
        target="spacy_sparsecrf.TokenAttribute.v1",
        templates=None,
        scorer="spacy_sparsecrf.token_scorer.v1",
        assigns=["token.tag"],
        score_weights={"tag_acc": 1.0},
    ),
    "sparse_crf_ner": Factory(
        target="spacy_sparsecrf.Entities.v1",
        templates=ENTITY_TEMPLATES,
        scorer="spacy.ner_scorer.v1",
        assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
        score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
        l1=0.2,
        l2=1.0,
    ),
    "sparse_crf_spans": Factory(
        target="spacy_sparsecrf.Spans.v1",
        templates=CHUNK_TEMPLATES,
        scorer="spacy.spancat_scorer.v1",
        assigns=["doc.spans"],
        score_weights={"spans_sc_f": 1.0, "spans_sc_p": 0.0, "spans_sc_r": 0.0},
    ),
}


def make_sparse_crf(
    nlp: Language,
    name: str,
    features: Callable[..., Any],
    target: Target,
    solver: Any,
    engine: Any,
    model: str,
    l1: float,
    l2: float,
    sequences: str,
    n_threads: int,
    overwrite: bool,
    threshold: float,
    decoding: dict[str, Any],
    learning: dict[str, Any],
    scorer: Callable[..., dict[str, Any]] | None,
) -> "SparseCRFPipe":
    """Create a sparse CRF, which learns the annotation of its target, by default tags of tokens.

    To learn `pos`, `morph` or an extension attribute `_.name` instead of `tag`, set
    [training.score_weights] tag_acc = null and pos_acc = 1.0, morph_acc = 1.0 or name_acc = 1.0: a
    factory's score weights are fixed. See `ComponentSettings` for the settings, `Setup` for
    features, target and solver, and `Engine` for engine.

    The arguments are the keys of the config block, because spaCy validates a config against them.
    """
    arguments = locals()
    from .component import SparseCRFPipe
    from .settings import ComponentSettings, Setup

    setup = Setup(
        name=name,
        features=features,
        target=target,
        solver=solver,
        settings=ComponentSettings.validated(
            name, {key: arguments[key] for key in ComponentSettings.model_fields}
        ),
        engine=engine,
    )
    return SparseCRFPipe(nlp.vocab, setup, scorer)


for _name, _factory in FACTORIES.items():
    Language.factory(
        _name,
        assigns=_factory.assigns,
        default_config=_factory.default_config,
        default_score_weights=_factory.score_weights,
        func=make_sparse_crf,
    )
