"""The state of a component: settings, model, names of features, and its decoder."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from ..crf.model.model import CRFModel
from ..crf.model.names import Names
from ..errors import Errors, SparseCRFError
from .annotating import Expected
from .prediction import DocPredictor
from .serialization import NEW_CFG
from .settings import Setup


@dataclass(frozen=True, eq=False)
class Trained:
    """A component that can predict. Methods of the component replace it by plain assignment.

    setup: parts and settings; model: labels and active weights; cfg: what else was learnt, see
    `serialization.learnt_cfg`; names: of features, to which names of active features are added;
    expected: what Docs had in training, with the warnings that were given; copies give them again.
    """

    setup: Setup
    model: CRFModel
    cfg: dict[str, Any]
    names: Names
    expected: Expected

    @classmethod
    def of(cls, setup: Setup, model: CRFModel, cfg: dict[str, Any], names: Names) -> "Trained":
        """Create the value of a component that has given no warnings."""
        expected = Expected(setup.name, dict(cfg["shares"]), cfg["sentences"])
        return cls(setup=setup, model=model, cfg=cfg, names=names, expected=expected)

    @classmethod
    def nothing(cls, setup: Setup) -> "Trained":
        """Create the value of a new component."""
        return cls.of(setup, no_model(setup), dict(NEW_CFG), Names())

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of tokens by id."""
        return tuple(self.cfg["labels"])

    @cached_property
    def predictor(self) -> DocPredictor:
        """Reads Docs, and has the decoder. RAISES: SparseCRFError without labels."""
        if not self.labels:
            raise SparseCRFError(Errors.SC201.format(name=self.setup.name))
        return DocPredictor.of(self.setup, self.model, self.labels, expected=self.expected)

    def __reduce__(self) -> tuple[Callable[..., "Trained"], tuple[Any, ...]]:
        """Copy and pickle without the decoder, and without the warnings that were given."""
        return Trained.of, (self.setup, self.model, self.cfg, self.names)


@contextmanager
def within_memory(name: str) -> Iterator[None]:
    """Raise a coded error if component `name` runs out of memory."""
    try:
        yield
    except MemoryError as error:
        raise SparseCRFError(Errors.SC224.format(name=name)) from error


def no_model(setup: Setup) -> CRFModel:
    """Return a model without labels."""
    return CRFModel((), setup.settings.learning.dtype, kind=setup.settings.model)


def part_of_setup(name: str, what: str) -> Any:
    """Return a property of a component: a part of its setup, which replaces it if assigned."""

    def write(pipe: Any, part: Any) -> None:
        pipe.setup = pipe.setup._replace(**{name: part})

    return property(attrgetter(f"trained.setup.{name}"), write, doc=what)


def part_of_trained(name: str, what: str) -> Any:
    """Return a property of a component: a field of its `Trained`, as `part_of_setup`."""

    def write(pipe: Any, part: Any) -> None:
        pipe.trained = replace(pipe.trained, **{name: part})

    return property(attrgetter(f"trained.{name}"), write, doc=what)
