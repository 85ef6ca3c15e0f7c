"""The factory `sparse_crf`: one label for each token; and what all factories share.

spaCy imports all factories whenever it makes a pipeline, this one or another: what a component is
made of is imported when one is made.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from ..targets.base import Target
from .defaults import DEFAULT_CONFIG

if TYPE_CHECKING:
    from .base import SparseCRF


@Language.factory(
    "sparse_crf",
    assigns=["token.tag"],
    default_config=DEFAULT_CONFIG,
    default_score_weights={"tag_acc": 1.0},
)
def make_sparse_crf(
    nlp: Language,
    name: str,
    features: Callable[..., Any],
    target: Target,
    solver: Any,
    model: str,
    clusters: int,
    l1: float,
    l2: float,
    sequences: str,
    dtype: str,
    precision: str,
    n_threads: int,
    overwrite: bool,
    threshold: float,
    decoding: dict[str, Any],
    learning: dict[str, Any],
    names: bool,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "SparseCRF":
    """Create a sparse CRF; its target tells what it learns, by default tags of tokens.

    Learning `pos` or `morph` instead of `tag` needs [components.NAME.scorer] @scorers =
    "spacy.morphologizer_scorer.v1" and [training.score_weights] pos_acc = 1.0 or morph_acc = 1.0
    as well: a factory's scores are fixed. For an extension attribute `_.name` they are
    "spacy_sparsecrf.token_scorer.v1" with attr = "_.name", and name_acc. See `SparseCRF` for the
    settings, and for what features and solver are.
    """
    from .base import SparseCRF

    return SparseCRF(
        nlp.vocab,
        name,
        features=features,
        target=target,
        solver=solver,
        model=model,
        clusters=clusters,
        l1=l1,
        l2=l2,
        sequences=sequences,
        dtype=dtype,
        precision=precision,
        n_threads=n_threads,
        overwrite=overwrite,
        threshold=threshold,
        decoding=decoding,
        learning=learning,
        names=names,
        scorer=scorer,
    )
