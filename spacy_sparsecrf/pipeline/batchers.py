"""A batcher with one update per epoch."""

from collections.abc import Callable, Iterable, Iterator

from spacy.training import Example
from spacy.util import registry

from ..errors import Errors, SparseCRFError
from .corpora import reading

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]

ONE_STEP = "spacy_sparsecrf.one_step_per_epoch.v1"


@registry.batchers(ONE_STEP)  # type: ignore[untyped-decorator]
def configure_one_step_per_epoch() -> Batcher:
    """Create a batcher with one update per epoch, which is one iteration of a batch solver.

    The batch is the first example of an epoch, which stands for all: the component has read them,
    and spaCy copies the examples of each batch. Other pipes need one of spaCy's batchers.
    """
    return one_step_per_epoch


def one_step_per_epoch(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Yield one batch with the first example; until the next step, full collections wait.

    RAISES: SparseCRFError without examples, because spaCy's loop would then never end.
    """
    for example in examples:
        with reading(n_offered=0):
            yield [example]
        return
    raise SparseCRFError(Errors.SC218)
