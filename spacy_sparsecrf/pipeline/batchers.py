"""Which batches of spaCy's loop a component learns from: its own, or the loop's."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from ..errors import Errors, SparseCRFError
from .settings import Setup

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]

ONE_STEP = "spacy_sparsecrf.one_step_per_epoch.v1"
_ENDLESS = -1  # the value of [training] max_epochs


@registry.batchers(ONE_STEP)  # type: ignore[untyped-decorator]
def configure_one_step_per_epoch() -> Batcher:
    """Create a batcher that makes an epoch one update, hence one iteration of a batch solver.

    Only the first example of an epoch is passed on, as such a solver ignores it: nothing is
    copied. Other pipes that train on batches need one of spaCy's batchers.
    """
    return one_step_per_epoch


def one_step_per_epoch(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Yield one batch of the first example.

    RAISES: SparseCRFError if there is none, as spaCy's loop would then spin for ever.
    """
    for example in examples:
        yield [example]
        return
    raise SparseCRFError(Errors.SC218)


def is_on_batches(setup: Setup, nlp: Language | None) -> bool:
    """Whether to train on the batches of spaCy's loop instead of on a corpus that is read before.

    nlp: the pipeline, or None.
    RAISES: SparseCRFError where the corpus is streamed and the solver needs all of it, and where
        the config's batcher would hand over a single example of each epoch.
    """
    endless = is_endless(nlp)
    if endless and not setup.solver.streaming:
        raise SparseCRFError(Errors.SC204.format(name=setup.name))
    wanted: bool = endless or getattr(setup.solver, "on_batches", False)
    if wanted and batcher_of(nlp) == ONE_STEP:
        raise SparseCRFError(Errors.SC381.format(name=setup.name))
    return wanted


def is_endless(nlp: Language | None) -> bool:
    """Whether the training corpus is streamed, so that `initialize` sees its first examples only.

    nlp: the pipeline, or None outside of one.
    """
    return _training_block(nlp).get("max_epochs") == _ENDLESS


def batcher_of(nlp: Language | None) -> str | None:
    """The name of the batcher that the config of a pipeline has, if it has one."""
    batcher = _training_block(nlp).get("batcher")
    return batcher.get("@batchers") if isinstance(batcher, dict) else None


def is_quiet(nlp: Language | None) -> bool:
    """Whether the config of a pipeline wants no rows of training on the console."""
    logs = _training_block(nlp).get("logger")
    return isinstance(logs, dict) and logs.get("console_output") is False


def _training_block(nlp: Language | None) -> dict[str, Any]:
    return {} if nlp is None else nlp.config.interpolate()["training"]
