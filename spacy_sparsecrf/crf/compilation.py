"""Reports of numba's compilation: a task on the terminal, a notice in the log, and warnings."""

import atexit
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
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


def watch_compilation(n_expected: int = N_OF_PREDICTION, helper: str = "") -> Any:
    """Report the compilation of kernels, and warn if they cannot be cached. Imports numba.

    n_expected: about how many kernels the caller needs. helper: a module, and its arguments, that
    compiles them when it is run, in a second process, if none is cached and there is a second core;
    the first that a process names counts.
    RETURNS: the listener. Its `with_notice` is whether to log `_NOTICE` before the first kernel;
        has_begun: whether there was a kernel, or no helper may start; n_compiled: number so far.
    """
    listener = _listener()
    listener.n_expected, listener.helper = n_expected, listener.helper or helper
    return listener


@cache  # one per process, as numba's events
def _listener() -> Any:
    from numba.core import event

    from .kernels.numba_support import is_kept

    class Listener(event.Listener):
        """Receives numba's compile events; kernels compiled within others count too."""

        def __init__(self) -> None:
            self.with_notice, self.has_begun = True, False
            self.n_expected, self.n_compiled = N_OF_PREDICTION, 0
            self.helper = ""
            self._n_open, self._begun = 0, 0.0

        def on_start(self, event: Any) -> None:
            kernel = event.data["dispatcher"]
            if not hasattr(kernel, "cache"):
                return
            _warn_of_faults(is_kept(kernel))
            directory = Path(kernel.stats.cache_path) if is_kept(kernel) else None
            if directory and not self.has_begun:
                self.has_begun = True
                _begin(directory, self.n_expected if self.with_notice else 0, self.helper)
            if _spacy.isEnabledFor(logging.DEBUG):
                report(f"Compiling {kernel.__name__}")
            if not self._n_open:
                self._begun = time.perf_counter()
                self._task = _show(1 + self.n_compiled, directory, self.n_expected)
            self._n_open += 1

        def on_end(self, event: Any) -> None:
            if hasattr(event.data["dispatcher"], "cache"):
                self._n_open -= 1
                self.n_compiled += 1
                if not self._n_open:
                    self._task.close()
                    Task.leave_out(time.perf_counter() - self._begun)

    listener = Listener()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    return listener


def _begin(directory: Path, n_announced: int, helper: str) -> None:
    """Log the notice, if any, and start the helper, unless the directory has kernels already."""
    if any(directory.glob("*.nbc")):
        return
    if n_announced:
        report(_NOTICE.format(n=n_announced, seconds=round(1.5 * n_announced)))
    _start(helper)


def _show(number: int, directory: Path | None, n_expected: int) -> Task:
    """Show that a kernel is compiled.

    number: of the kernel in this process; directory: gets its code, also of other processes.
    """
    if directory:
        number = 1 + len([*directory.glob("*.nbc")])
    text = f"Compiling {number} of about {max(number, n_expected)} kernels, once"
    return Task(text, in_log=False, delay=0.0)


def _start(helper: str) -> None:
    """Run a module with arguments in a process that ends at the latest with this one."""
    n_cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if not helper or n_cores < 2 or getattr(sys, "frozen", False):
        return
    with suppress(OSError):  # no memory, or no program to run
        process = subprocess.Popen(
            [sys.executable, "-m", *helper.split()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(process.wait)
        atexit.register(process.terminate)


def _warn_of_faults(is_kept: bool) -> None:
    if refused:
        _warn_once(Warnings.SCW210.format(directories=", ".join(sorted(refused))))
    if damaged:
        _warn_once(Warnings.SCW237.format(**damaged))
    if not is_kept:
        _warn_once(Warnings.SCW204)
