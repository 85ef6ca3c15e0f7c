"""Drivers of training: loops around `Training` that settings select."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..features.naming import NameRecord
from ..settings import Setup, StackSettings
from .first_stage import stacked

if TYPE_CHECKING:
    from ...crf.model.model import CRFModel
    from ...crf.training.training import Training


class Stack:
    """Trains a first-stage model, and a second one that reads its predictions; see `stack`.

    first: the first-stage model.
    """

    first: "CRFModel | None" = None

    def __init__(self, setup: Setup, settings: StackSettings) -> None:
        self._setup, self._settings = setup, settings

    def runs(self, train: "partial[Any]", record: NameRecord | None) -> "Callable[..., Training]":
        """Return a function that begins a run, with the arguments of `train` unless overridden.

        train: begins a `Training` on a corpus; record: of its readings.
        """
        assert record is not None  # Templates read predictions.
        (corpus,), begin = train.args, partial(train.func, **train.keywords)
        first = partial(begin, **self._settings.model_dump(include={"l1", "l2"}, exclude_none=True))
        corpus, self.first = stacked(self._setup, self._settings, record, corpus, first)
        return partial(begin, corpus)
