"""Annotations of earlier pipes, which `initialize` would otherwise not see."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.util import minibatch

from ..errors import SparseCRFWarning, Warnings

BATCH_SIZE = 128  # Docs given to an upstream pipe at once


def annotated(examples: Iterable[Example], nlp: Language | None, pipe: object) -> Iterator[Example]:
    """Annotate predicted Docs as spaCy's loop will do, by [training] annotating_components.

    examples: left as they are; where there is something to annotate, copies are yielded.
    nlp: the pipeline, or None.
    pipe: the component before which the annotating pipes stand. They are run also where they
        are disabled, as spaCy disables frozen and sourced pipes during `initialize`.
    """
    upstream = [] if nlp is None else _annotating(nlp, pipe)
    if not upstream:
        yield from examples
        return
    for batch in minibatch(examples, BATCH_SIZE):  # type: ignore[no-untyped-call]
        docs = [example.predicted.copy() for example in batch]
        for proc in upstream:
            docs = list(proc.pipe(docs)) if hasattr(proc, "pipe") else list(map(proc, docs))
        for doc, example in zip(docs, batch, strict=True):
            yield Example(doc, example.reference)


def _annotating(nlp: Language, pipe: object) -> list[Any]:
    """Find the annotating pipes that stand before `pipe`, warning of untrained ones."""
    names = nlp.config.interpolate()["training"]["annotating_components"]
    before = []
    for name, proc in nlp.components:
        if proc is pipe:
            break
        if name in names:
            before.append(proc)
            if name in nlp.pipe_names and getattr(proc, "is_trainable", False):
                _warn_untrained(nlp, pipe, name)
    return before


def _warn_untrained(nlp: Language, pipe: object, upstream: str) -> None:
    """Warn of an upstream pipe that this very run has only just initialized."""
    name = getattr(pipe, "name", "")
    message = Warnings.SCW203.format(name=name, upstream=upstream)
    warnings.warn(message, SparseCRFWarning, stacklevel=2)
