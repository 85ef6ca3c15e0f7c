"""The facts of a component, which `compatible.check` looks up in its table."""

from collections.abc import Sequence
from typing import Any

from ..compatible import facts_of_run
from .features.attributes.stage import DOC_ENTITY
from .targets.spans import SpanTarget


def facts_of(
    setup: Any,
    *,
    shards: Sequence[object] = (),
    engine: Any = None,
    has_corpus: bool = True,
    real_values: str = "",
) -> dict[str, str]:
    """Return the facts of the settings of a component, and of a training run by them.

    setup: a `settings.Setup`; shards, engine: of a run that begins; without an engine, the
    requirements of the solver and the place of the corpus are no facts, because the component may
    only predict; has_corpus: whether it does not learn from the examples of each update;
    real_values: features of the corpus that have values, if it has any. `Training` adds the other
    facts of its corpus.
    """
    settings = setup.settings
    learning = settings.learning
    facts = facts_of_run(
        kind=settings.model,
        l1=settings.l1,
        l2=settings.l2,
        clusters=learning.clusters,
        constrained=learning.constrained,
        prior=bool(learning.prior),
        solver=None if engine is None else setup.solver,
    )
    if engine is not None and shards:
        facts["shards"] = f"[initialize.components.{setup.name}] shards"
    elif engine is not None and engine.divides:
        facts["shards"] = f"[components.{setup.name}.engine]"
    if not has_corpus:
        facts["no corpus"] = "updates"
    if real_values:
        facts["real values"] = real_values
    facts["stack" if learning.stack.folds else "no stack"] = "stack"
    readers = {read.name for read in getattr(setup.features, "stacked", ())}
    if readers:
        facts["reader"] = ", ".join(sorted(readers))
    else:
        facts["no reader"] = "templates"
    return facts | _facts_of_decoding(setup, readers)


def _facts_of_decoding(setup: Any, readers: set[str]) -> dict[str, str]:
    """Return the facts of the target and of how labels are chosen.

    readers: names of the attributes of a first-stage model that templates read.
    """
    settings, decoding, facts = setup.settings, setup.settings.decoding, {}
    of_others = {
        "threshold": settings.threshold,
        "decoding.thresholds": decoding.thresholds,
        "decoding.outside_weight": decoding.outside_weight,
    }
    if described := ", ".join(f"{key} = {value}" for key, value in of_others.items() if value):
        facts["others"] = described
    if not setup.target.outside_label:
        facts["no outside label"] = "target"
    if DOC_ENTITY in readers:
        facts["spans"] = DOC_ENTITY
    if not isinstance(setup.target, SpanTarget):
        facts["token target"] = "target"
    if decoding.outside_weight:
        facts["outside weight"] = str(decoding.outside_weight)
    if decoding.method == "posterior":
        facts["posterior"] = 'method = "posterior"'
    return facts
