"""Reports of numba's compilation: a task on the terminal, a notice in the log, and warnings."""

import logging
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import Warnings, warn
from ..progress import Task, report
from .kernels.cache_dir import damaged, refused

_spacy = logging.getLogger("spacy")
_NOTICE = "Compiling about {n} kernels, once: up to {seconds} s"  # `warmup` does it ahead
# About how many kernels a default component needs to predict, and to train as well.
N_OF_PREDICTION, N_OF_TRAINING = 7, 40
_warn_once = cache(warn)  # of each message


def watch_compilation(n_expected: int = N_OF_PREDICTION) -> Any:
    """Report the compilation of kernels, and warn if they cannot be cached. Imports numba.

    n_expected: about how many kernels the caller needs.
    RETURNS: the listener. Its `with_notice` is whether to log `_NOTICE` before the first kernel;
        n_compiled: number so far.
    """
    listener = _listener()
    listener.n_expected = n_expected
    return listener


@cache  # one per process, as numba's events
def _listener() -> Any:
    from numba.core import event

    from .kernels.numba_support import is_kept

    class Listener(event.Listener):
        """Receives numba's compile events; kernels compiled within others count too."""

        def __init__(self) -> None:
            self.with_notice = True
            self.n_expected, self.n_compiled = N_OF_PREDICTION, 0
            self._n_open = 0

        def on_start(self, event: Any) -> None:
            kernel = event.data["dispatcher"]
            if not hasattr(kernel, "cache"):
                return
            _warn_of_faults(is_kept(kernel))
            if is_kept(kernel) and self.with_notice:
                self.with_notice = False
                # A directory with kernels: the notice was logged before.
                if not any(Path(kernel.stats.cache_path).glob("*.nbc")):
                    n = self.n_expected
                    report(_NOTICE.format(n=n, seconds=round(1.5 * n)))
            if _spacy.isEnabledFor(logging.DEBUG):
                report(f"Compiling {kernel.__name__}")
            if not self._n_open:
                self._task = Task("Compiling", "kernels", initial=self.n_compiled, in_log=False)
            self._n_open += 1

        def on_end(self, event: Any) -> None:
            if hasattr(event.data["dispatcher"], "cache"):
                self._n_open -= 1
                self._task.update()
                self.n_compiled += 1
                if not self._n_open:
                    self._task.close()

    listener = Listener()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    return listener


def _warn_of_faults(is_kept: bool) -> None:
    if refused:
        _warn_once(Warnings.SCW210.format(directories=", ".join(sorted(refused))))
    if damaged:
        _warn_once(Warnings.SCW237.format(**damaged))
    if not is_kept:
        _warn_once(Warnings.SCW204)
