"""What features learn before training, such as phrases from files: kept in a component's `cfg`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from spacy.language import Language


@runtime_checkable
class Learning(Protocol):
    """Features that learn something before training; see `Featurizer`."""

    @property
    def learnt(self) -> dict[str, Any]:
        """What was learnt, for JSON."""

    def initialize(self, nlp: Language | None = None) -> None:
        """Learn anew."""

    def restore(self, learnt: dict[str, Any]) -> None:
        """Take over what `learnt` was."""


@contextmanager
def renewed(features: object, nlp: Language | None) -> Iterator[None]:
    """Let features learn anew; if what follows fails, they are as they were."""
    if not isinstance(features, Learning):
        yield
        return
    before = features.learnt
    features.initialize(nlp)
    try:
        yield
    except BaseException:
        features.restore(before)
        raise


def keep(features: object, cfg: dict[str, Any]) -> None:
    """Note in `cfg` what features have learnt, if anything."""
    cfg.pop("features", None)
    if isinstance(features, Learning) and features.learnt:
        cfg["features"] = features.learnt


def recall(features: object, cfg: dict[str, Any]) -> None:
    """Give back to features what `keep` noted."""
    if isinstance(features, Learning) and "features" in cfg:
        features.restore(cfg["features"])
