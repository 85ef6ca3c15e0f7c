"""The one door to spaCy's training loop: its batches, and the garbage collections in its steps.

Each full collection of Python's garbage collector visits every Doc that has been read, and a corpus
is read, and a development set predicted, in so many small objects that a third of a training run
would be spent on them. `full_collections_suspended` is the only place of the package that changes
the collector, which belongs to the whole process. It does so for one call at a time: while
`initialize` reads examples, while a reader makes one Example, while the component makes a step or
annotates a batch of an evaluation, and while it is scored. When such a call ends, the threshold is
as before, also if the call fails, if several threads train, and if one loop runs within another.
Nothing is suspended while a generator waits, so it may be held, dropped, or continued by another
thread.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from spacy.training import Example
from spacy.util import registry

from ..errors import Errors, SparseCRFError

ItemT = TypeVar("ItemT")
Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]

ONE_STEP = "spacy_sparsecrf.one_step_per_epoch.v1"
_NEVER = 2**31 - 1
_lock = Lock()  # no thread may change the threshold between another's look at it and its change


@contextmanager
def full_collections_suspended() -> Iterator[None]:
    """Suspend full garbage collections of the process; younger objects are collected as usual.

    Of several contexts at once, the first to begin restores the threshold, although others may go
    on: collections then cost time, and nothing else.
    """
    with _lock:
        young, middle, full = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
    try:
        yield
    finally:
        if full != _NEVER:
            with _lock:
                gc.set_threshold(young, middle, full)


def made_without_collections(stream: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yield from a stream; full collections are suspended only while it makes its next item."""
    iterator, end = iter(stream), object()
    while True:
        with full_collections_suspended():
            item = next(iterator, end)
        if item is end:
            return
        yield item  # type: ignore[misc]


@registry.batchers(ONE_STEP)  # type: ignore[untyped-decorator]
def configure_one_step_per_epoch() -> Batcher:
    """Create a batcher with one update per epoch, which is one iteration of a batch solver.

    The batch is the first example of an epoch, which stands for all: the component has read them,
    and spaCy copies the examples of each batch. Other pipes need one of spaCy's batchers.
    """
    return one_step_per_epoch


def one_step_per_epoch(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Yield one batch with the first example.

    RAISES: SparseCRFError without examples, because spaCy's loop would then never end.
    """
    for example in examples:
        yield [example]
        return
    raise SparseCRFError(Errors.SC218)
