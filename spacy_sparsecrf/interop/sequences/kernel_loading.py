"""Loading of the kernels in the background."""

import sys
import time
from collections.abc import Callable
from threading import Lock, Thread
from threading import enumerate as threads
from typing import TYPE_CHECKING

from ...errors import Warnings, warn

if TYPE_CHECKING:
    from .scoring import CompiledRoad

COST = 0.4
"""Seconds that the kernels take to be loaded, once they are compiled."""
_PAUSE = 1e-4  # lets the thread have its turn
_THREAD = "kernels of spacy-sparsecrf"
_loads = Lock()  # one thread at a time


class KernelLoading:
    """Loads the road of a model by kernels in a thread, once plain work has taken as long.

    load: does it. Attributes: road: once it is loaded. A process that is forked meanwhile has no
    such thread, and modules in it are half imported: it stays without kernels, as after a failure.
    """

    def __init__(self, load: "Callable[[], CompiledRoad]") -> None:
        self._load = load
        self._left = COST
        self._thread: Thread | None = None
        self._failure = "the process was forked while they were loaded"
        self.road: CompiledRoad | None = None

    def count(self, seconds: float) -> None:
        """Count plain work."""
        self._left -= seconds
        if self._left < 0:
            self.start()

    def start(self) -> "Thread":
        """Start the thread, unless it was started."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=_THREAD, daemon=True)
            self._thread.start()
        return self._thread

    def _run(self) -> None:
        if _is_left_locked():
            return
        with _loads:
            try:
                self.road = self._load()
            except Exception as error:
                self._failure = f"{type(error).__name__}: {error}"

    @property
    def is_started(self) -> bool:
        """Whether the thread was started."""
        return self._thread is not None

    def has_failed(self) -> bool:
        """Give the thread its turn. RETURNS: whether it ended without a road; then warn."""
        if self._thread is None:
            return False
        time.sleep(_PAUSE)
        if self._thread.is_alive() or self.road is not None:
            return False
        warn(Warnings.SCW806.format(reason=self._failure))
        return True


def are_loaded() -> bool:
    """Return whether the kernels are imported, and no thread loads more of them."""
    # The class: another thread may be importing the module.
    module = sys.modules.get(f"{__package__}.scoring")
    return hasattr(module, "CompiledRoad") and not _loads.locked()


def _is_left_locked() -> bool:
    """Return whether a thread that loads has no other thread to wait for: it is in the parent."""
    return _loads.locked() and sum(thread.name == _THREAD for thread in threads()) == 1
