"""Batchers for solvers that hold the whole corpus themselves."""

from collections.abc import Callable, Iterable, Iterator

from spacy.training import Example
from spacy.util import registry

from ..errors import Errors, SparseCRFError

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]


@registry.batchers("spacy_sparsecrf.one_step_per_epoch.v1")  # type: ignore[untyped-decorator]
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
