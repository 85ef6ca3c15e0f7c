"""Progress reporting for long tasks.

`progress` and `track` show a progress bar on a terminal. Elsewhere they write lines to the log, the
first within two seconds, the next less than five seconds apart. Nothing is shown if spaCy's logger
suppresses warnings, or [training.logger] has console_output = false.
"""

import logging
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from .errors import Warnings, warn

ItemT = TypeVar("ItemT")

_spacy = logging.getLogger("spacy")
# `spacy train` shows warnings only. Progress is logged as INFO, so its logger has its own level.
logger = _spacy.getChild("sparsecrf")
logger.setLevel(logging.INFO)

_TICK = 0.2  # seconds between updates
_FIRST = 1.0  # seconds before a task is shown
_PAUSE = 3.5  # seconds between lines of the log
# Number of kernels that training needs with default settings, and that prediction adds.
TRAINING_KERNELS, PREDICTION_KERNELS = 34, 6
_NOTICE = (
    "spacy-sparsecrf compiles its kernels for this machine, once after installation. "
    "`python -m spacy_sparsecrf warmup` does it ahead."
)


class Task:
    """A long task.

    text: its name; unit: name of the counted units, plural; total: number of units, None if
    unknown; is_rough: whether the total is an estimate; done: number of completed units; detail:
    shown after the counts.
    """

    def __init__(
        self, text: str, unit: str = "", total: int | None = None, is_rough: bool = False
    ) -> None:
        self.text, self.unit, self.total, self.is_rough = text, unit, total, is_rough
        self.done, self.detail = 0, ""
        self.since = time.monotonic()

    def over(self, items: Iterable[ItemT]) -> Iterator[ItemT]:
        """Yield the items and count them."""
        for item in items:
            yield item
            self.done += 1

    def __str__(self) -> str:
        """The line of the log."""
        of = " of about " if self.is_rough else " of "
        total = f"{of}{self.total:,}" if self.total is not None and self.total > self.done else ""
        counted = f": {self.done:,}{total} {self.unit}" if self.unit else ""
        detail = f", {self.detail}" if self.detail else ""
        return f"{self.text}{counted}{detail} ({time.monotonic() - self.since:.0f} s)"


class _ProgressDisplay:
    """Shows the innermost of the current tasks, in a thread that ends with the outermost task.

    On a terminal, a bar appears after `_FIRST` seconds of a task, or `_PAUSE` seconds without
    output. It is removed when the tasks end, to keep the rows of spaCy's log together.
    """

    def __init__(self) -> None:
        self.is_quiet = False
        self._tasks: list[Task] = []
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._lines = ExitStack()
        self._last = time.monotonic()  # when something was shown
        self._logged: set[str] = set()  # texts of tasks that have been logged
        self._bar: tqdm.tqdm[Any] | None = None
        self._drawn: Task | None = None  # the bar's

    def begin(self, task: Task) -> None:
        """Show a task until it ends or a nested task begins."""
        with self._lock:
            self._tasks.append(task)
            if len(self._tasks) == 1:
                self._ended = threading.Event()
                if sys.stderr.isatty():
                    # Keeps lines of spaCy's log from breaking the bar.
                    self._lines.enter_context(logging_redirect_tqdm([_spacy]))
                threading.Thread(target=self._run, args=(self._ended,), daemon=True).start()
            if time.monotonic() - self._last >= _PAUSE:
                self._show(task)

    def end(self, task: Task) -> None:
        """End a task."""
        with self._lock:
            self._tasks.remove(task)
            if not self._tasks:
                self._ended.set()
                self._close()
                self._lines.close()

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(_TICK):
            with self._lock:
                if not ended.is_set():
                    self._show(self._tasks[-1])

    def _show(self, task: Task) -> None:
        now = time.monotonic()
        has_taken_long, silence = now - task.since >= _FIRST, now - self._last
        if sys.stderr.isatty():
            if not (has_taken_long or silence >= _PAUSE):
                return
            self._draw(task)
        elif silence >= _PAUSE or (has_taken_long and task.text not in self._logged):
            logger.info("%s", task)
            self._logged.add(task.text)
        else:
            return
        self._last = now

    def _draw(self, task: Task) -> None:
        if self._bar is None or task is not self._drawn:
            self._close()
            form = None if task.unit else "{desc} {elapsed}{postfix}"
            own = {"desc": task.text, "total": task.total, "unit": f" {task.unit}"}
            # tqdm draws nothing if the terminal's size is unknown.
            width, height = shutil.get_terminal_size()
            place = {"leave": False, "bar_format": form, "ncols": width, "nrows": height}
            # The delay keeps tqdm from drawing before the counts are set.
            self._bar, self._drawn = tqdm.tqdm(**own, **place, delay=1e-3), task
            self._bar.start_t -= time.monotonic() - task.since
        self._bar.n = task.done
        self._bar.set_postfix_str(task.detail, refresh=False)
        self._bar.refresh()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


_display = _ProgressDisplay()


def be_quiet(is_quiet: bool) -> None:
    """Turn progress reporting off, or on again."""
    _display.is_quiet = is_quiet


@contextmanager
def progress(text: str, unit: str = "", total: int | None = None) -> Iterator[Task]:
    """Report a task while the body runs; see `Task`."""
    own = Task(text, unit, total)
    with showing(own):
        yield own


@contextmanager
def showing(own: Task) -> Iterator[None]:
    """Show a task, which may have been shown before."""
    if _display.is_quiet or not _spacy.isEnabledFor(logging.WARNING):
        yield
        return
    _display.begin(own)
    try:
        yield
    finally:
        _display.end(own)


def report(text: str) -> None:
    """Log a line, unless progress reporting is off."""
    if not _display.is_quiet and _spacy.isEnabledFor(logging.WARNING):
        logger.info("%s", text)


def track(
    items: Iterable[ItemT], text: str, unit: str, total: int | None = None
) -> Iterator[ItemT]:
    """Yield the items and report progress; see `Task`."""
    with progress(text, unit, total) as own:
        yield from own.over(items)


# Compilation

_compiling = Task("Compiling", "kernels", is_rough=True)


def watch_compilation(n_kernels: int, *, with_notice: bool = True) -> None:
    """Report the compilation of kernels, and warn if they cannot be cached. Imports numba.

    n_kernels: estimated number of kernels to compile; with_notice: whether to log `_NOTICE`.
    """
    _compiling.total = max(_compiling.total or 0, _compiling.done + n_kernels)
    listener = _listener()
    listener.with_notice = listener.with_notice and with_notice


@cache  # one per process
def _listener() -> Any:
    from numba.core import event

    from .kernels.numba_support import is_kept, refused

    class Listener(event.Listener):
        """Receives numba's compile events; kernels compiled within others count too."""

        def __init__(self) -> None:
            self.with_notice = True
            self._names: list[str] = []
            self._shown = ExitStack()

        def on_start(self, event: Any) -> None:
            kernel = event.data["dispatcher"]
            if not hasattr(kernel, "cache"):
                return
            _warn_of_others(*sorted(refused))
            if not is_kept(kernel):
                _warn_of_loss()
            elif self.with_notice:
                self.with_notice = False
                _give_notice(kernel.stats.cache_path)
            self._names.append(kernel.__name__)
            _compiling.detail = kernel.__name__
            if len(self._names) == 1:
                self._shown.enter_context(showing(_compiling))

        def on_end(self, event: Any) -> None:
            if hasattr(event.data["dispatcher"], "cache"):
                _compiling.done += 1
                self._names.pop()
                if self._names:
                    _compiling.detail = self._names[-1]
                else:
                    self._shown.close()

    listener = Listener()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    return listener


def _give_notice(directory: str) -> None:
    """Log `_NOTICE`, unless the directory already has kernels: it was then logged before."""
    if not any(Path(directory).glob("*.nbi")):
        _spacy.warning(_NOTICE)


@cache  # once per process
def _warn_of_loss() -> None:
    warn(Warnings.SCW204)


@cache
def _warn_of_others(*directories: str) -> None:
    if directories:
        warn(Warnings.SCW210.format(directories=", ".join(directories)))
