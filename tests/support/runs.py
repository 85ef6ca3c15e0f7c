"""Training runs from flat options."""

from dataclasses import fields
from typing import Any

from spacy_sparsecrf.crf.training.training import Problem, Training

NAMES = frozenset(own.name for own in fields(Problem))


def training_of(*args: Any, **options: Any) -> Training:
    """Return a run; options: of `Training`, and fields of `Problem`."""
    given = {name: options.pop(name) for name in NAMES & options.keys()}
    return Training(*args, problem=Problem(**given), **options)
