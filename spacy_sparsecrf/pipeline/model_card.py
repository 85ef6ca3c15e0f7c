"""The part of `meta.json` that describes a component: sources, training data and penalties."""

from pathlib import Path
from typing import Any

from spacy.language import Language

from ..features.featurizer import Featurizer
from ..features.provenance import sources_of
from .batchers import is_endless
from .settings import Setup


def fill_in(nlp: Language | None, setup: Setup, n_tokens: int) -> None:
    """Add the sources and the training of a component to the meta of its pipeline.

    Other sources and notes are kept. nlp: None, or a pipeline without the component, to do nothing;
    n_tokens: number of tokens of the training corpus.
    """
    if nlp is None or setup.name not in nlp.component_names:
        return
    sources: list[Any] = list(nlp.meta.get("sources") or ())
    # spaCy accepts names or tables of a name, an author and a URL, but not both.
    of_names = any(isinstance(source, str) for source in sources)
    features: object = setup.features
    known = list(sources_of(features, nlp.lang or "")) if isinstance(features, Featurizer) else []
    # The table of sources in the README of `spacy package` has no licences.
    licensed = [
        f"{source['name']}, {source['license']}" for source in known if source.get("license")
    ]
    begin = f"- `{setup.name}`: "
    notes = str(nlp.meta.get("notes") or "").splitlines()
    kept = [line for line in notes if not line.startswith(begin)]
    kept.append("; ".join([begin + _training(nlp, setup, n_tokens), *licensed]))
    nlp.meta["notes"] = "\n".join(kept)
    for described in known:
        name, license_ = described["name"], described.get("license", "")
        source = ", ".join(filter(None, (name, license_))) if of_names else described
        if not any(source == other or _name(other) == name for other in sources):
            sources.append(source)
    if sources:
        nlp.meta["sources"] = sources


def _name(source: object) -> object:
    return source.get("name") if isinstance(source, dict) else source


def _training(nlp: Language, setup: Setup, n_tokens: int) -> str:
    """Describe the training: data, by the last part of its path, solver and penalties."""
    path = nlp.config.get("paths", {}).get("train")
    data = f" of {Path(path).name}" if path else ""
    settings, solver = setup.settings, type(setup.solver).__name__
    penalties = f"l1 = {settings.l1:g}, l2 = {settings.l2:g}"
    # Only the first Docs of a streamed corpus have been read.
    count = "tokens" if is_endless(nlp) else f"{n_tokens:,} tokens"
    return f"trained on {count}{data} by {solver}, {penalties}"
