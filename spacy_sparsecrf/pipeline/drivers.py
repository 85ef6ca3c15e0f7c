"""Drivers of training: loops around `Training`, selected by the settings `schedule` and `stack`."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from spacy.util import logger

from ..corpus.encoded import EncodedCorpus
from ..corpus.schedule import Stage
from ..features.naming import NameRecord
from .reader import reads_word_labels
from .settings import Setup, StackSettings, StageSettings

if TYPE_CHECKING:
    from ..features.template_hierarchy import TemplateTreeRecord
    from ..model.model import CRFModel
    from ..training.stages import Trainer


class Driver:
    """Trains a component by one run on its corpus.

    setup: of the component; keeps: whether to record the readings of Docs in any case.
    record: of the readings, or None if nothing needs them; tree: records parents of features, or
    None; first: a first-stage model, or None.
    """

    record: NameRecord | None = None
    tree: "TemplateTreeRecord | None" = None
    first: "CRFModel | None" = None

    def __init__(self, setup: Setup, keeps: bool = False) -> None:
        self.setup = setup
        if keeps or setup.settings.learning.store_feature_names or reads_word_labels(setup):
            self.record = NameRecord.of(setup.features)

    def runs(self, corpus: EncodedCorpus, train: "partial[Any]") -> "Callable[..., Trainer]":
        """Return a function that begins a run, with the arguments of `train` unless overridden.

        train: begins a `Training` on a corpus.
        """
        return partial(train, corpus)


class Stages(Driver):
    """Trains in stages, see `training.stages`. schedule: the stages."""

    tree: "TemplateTreeRecord"

    def __init__(self, setup: Setup, schedule: list[StageSettings]) -> None:
        from ..features.template_hierarchy import TemplateHierarchy, TemplateTreeRecord

        super().__init__(setup)
        self._stages = [Stage(**dict(stage)) for stage in schedule]
        features: Any = setup.features
        hierarchy = TemplateHierarchy.of(features.parsed, features.templates, self._stages)
        self.tree = TemplateTreeRecord(features, hierarchy)

    def runs(self, corpus: EncodedCorpus, train: "partial[Any]") -> "Callable[..., Trainer]":
        """See `Driver`."""
        from ..training.stages import InTurn

        report = partial(logger.info, "%s: %s", self.setup.name)
        tree, options = self.tree.tree(corpus), train.keywords
        return partial(InTurn, corpus, tree=tree, stages=self._stages, report=report, **options)


class Stack(Driver):
    """Trains a first-stage model, and a second one that reads its predictions; see `stack`."""

    def __init__(self, setup: Setup, settings: StackSettings) -> None:
        super().__init__(setup, keeps=True)
        self._settings = settings

    def runs(self, corpus: EncodedCorpus, train: "partial[Any]") -> "Callable[..., Trainer]":
        """See `Driver`."""
        from .stack import stacked

        assert self.record is not None  # Templates read predictions.
        first = partial(train, **self._settings.penalty)
        corpus, self.first = stacked(self.setup, self._settings, self.record, corpus, first)
        return partial(train, corpus)


def driver_of(setup: Setup) -> Driver:
    """Return the driver that the settings of a component select."""
    learning = setup.settings.learning
    if learning.schedule:
        return Stages(setup, learning.schedule)
    return Stack(setup, learning.stack) if learning.stack.folds else Driver(setup)
