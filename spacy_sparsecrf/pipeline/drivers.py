"""Drivers of training: loops around `Training` that `schedule` and `stack` select."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from spacy.util import logger

from ..corpus.schedule import Stage
from ..features.naming import NameRecord
from ..features.template_hierarchy import TemplateHierarchy, TemplateTreeRecord
from ..training.stages import InTurn
from .settings import Setup, StackSettings, StageSettings
from .stack import stacked

if TYPE_CHECKING:
    from ..model.model import CRFModel
    from ..training.stages import Trainer

_FORM = "%s: stage %d of %d begins: %d potential weights, %d active"


class Stages:
    """Trains in stages, see `training.stages`.

    tree: records parents of features; first: no first-stage model.
    """

    first = None

    def __init__(self, setup: Setup, schedule: list[StageSettings]) -> None:
        features: Any = setup.features
        self._stages = [Stage(**dict(stage)) for stage in schedule]
        hierarchy = TemplateHierarchy.of(features.parsed, features.templates, self._stages)
        self.tree, self._name = TemplateTreeRecord(features, hierarchy), setup.name

    def runs(self, train: "partial[Any]", record: NameRecord | None) -> "Callable[..., Trainer]":
        """Return a function that begins a run, with the arguments of `train` unless overridden.

        train: begins a `Training` on a corpus; record: of its readings.
        """
        report, (corpus,) = partial(logger.info, _FORM, self._name), train.args
        tree, options = self.tree.tree(corpus), train.keywords
        return partial(InTurn, corpus, tree=tree, stages=self._stages, report=report, **options)


class Stack:
    """Trains a first-stage model, and a second one that reads its predictions; see `stack`.

    tree: no record; first: the first-stage model.
    """

    tree = None
    first: "CRFModel | None" = None

    def __init__(self, setup: Setup, settings: StackSettings) -> None:
        self._setup, self._settings = setup, settings

    def runs(self, train: "partial[Any]", record: NameRecord | None) -> "Callable[..., Trainer]":
        """See `Stages`."""
        assert record is not None  # Templates read predictions.
        (corpus,), begin = train.args, partial(train.func, **train.keywords)
        first = partial(begin, **self._settings.model_dump(include={"l1", "l2"}, exclude_none=True))
        corpus, self.first = stacked(self._setup, self._settings, record, corpus, first)
        return partial(begin, corpus)
