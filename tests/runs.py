"""Training runs from flat options."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from spacy_sparsecrf.training.training import Problem, Training

NAMES = frozenset(own.name for own in fields(Problem))


def training_of(*args: Any, make: Callable[..., Any] = Training, **options: Any) -> Any:
    """Return a run; options: of `Training` or another class, and fields of `Problem`."""
    given = {name: options.pop(name) for name in NAMES & options.keys()}
    return make(*args, problem=Problem(**given), **options)
