"""The part of `meta.json` that describes a component: sources, training data and penalties."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..features.featurizer import Featurizer
from .batchers import is_endless
from .settings import Setup


def fill_in(nlp: Language | None, setup: Setup, n_tokens: int) -> None:
    """Enter the sources and the training of a component into the meta of its pipeline.

    Other sources and notes are kept. nlp: None, or a pipeline without the component, to do nothing;
    n_tokens: number of the training corpus.
    """
    if nlp is None or setup.name not in nlp.component_names:
        return
    begin = f"- `{setup.name}`: "
    notes = str(nlp.meta.get("notes") or "").splitlines()
    kept = [line for line in notes if not line.startswith(begin)]
    nlp.meta["notes"] = "\n".join([*kept, begin + _training(nlp, setup, n_tokens)])
    sources: list[Any] = list(nlp.meta.get("sources") or ())
    # spaCy accepts names or tables of a name, an author and a URL, but not both.
    of_names = any(isinstance(source, str) for source in sources)
    for name in _knowledge(setup.features):
        source = name if of_names else {"name": name}
        if not any(source == other or _name(other) == name for other in sources):
            sources.append(source)
    if sources:
        nlp.meta["sources"] = sources


def _name(source: object) -> object:
    return source.get("name") if isinstance(source, dict) else source


def _training(nlp: Language, setup: Setup, n_tokens: int) -> str:
    """Describe the training: data, solver and penalties. Of paths it has the last part only."""
    path = nlp.config.get("paths", {}).get("train")
    data = f" of {Path(path).name}" if path else ""
    settings, solver = setup.settings, type(setup.solver).__name__
    penalties = f"l1 = {settings.l1:g}, l2 = {settings.l2:g}"
    # Of a streamed corpus only the first Docs have been read.
    count = "tokens" if is_endless(nlp) else f"{n_tokens:,} tokens"
    return f"trained on {count}{data} by {solver}, {penalties}"


def _knowledge(features: object) -> Iterator[str]:
    """Name what features know that is not from the training data: word classes and phrases."""
    if not isinstance(features, Featurizer):
        return
    learnt = features.learnt
    for name in features.clusters.keys() & (learnt.get("clusters") or {}).keys():
        source = features.clusters[name]
        kind = next(key for key in ("path", "lookups", "pipeline") if key in source)
        yield f"word classes {name} ({Path(str(source[kind])).name})"
    for name in learnt.get("phrases") or ():
        source = features.phrases[name]
        listed = isinstance(source, str | Path)
        yield f"phrases {name} ({Path(source).name if listed else f'{len(source)} listed'})"
