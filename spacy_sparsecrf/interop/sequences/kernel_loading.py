"""Loading of the kernels in the background."""

import gc
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from ...errors import Warnings, warn

if TYPE_CHECKING:
    from threading import Thread

    from .scoring import CompiledRoad

COST = 0.4
"""Seconds that the kernels take to be loaded, once they are compiled."""
SCORING = f"{__package__}.scoring"
"""The module that imports the kernels."""
_PAUSE = 1e-4  # lets the thread have its turn


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
        from threading import Thread

        if self._thread is None:
            if hasattr(os, "register_at_fork"):  # not on Windows
                os.register_at_fork(after_in_child=partial(_block_kernels, ref(self)))
            self._thread = Thread(target=self._run, name="kernels of spacy-sparsecrf", daemon=True)
            self._thread.start()
        return self._thread

    def _run(self) -> None:
        # A full garbage collection would stop calls for longer than anything else here does.
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            self.road = self._load()
        except Exception as error:
            self._failure = f"{type(error).__name__}: {error}"
        finally:
            if not gc.get_freeze_count():
                gc.freeze()  # and back: new objects are old ones now, without a collection
                gc.unfreeze()
            if is_collecting:
                gc.enable()

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


def _block_kernels(loading: "ref[KernelLoading]") -> None:
    """Refuse to load kernels in a forked process whose parent was loading them: locks are held."""
    parent = loading()
    if parent is not None and parent.road is None:
        sys.modules[SCORING] = None  # type: ignore[assignment]
