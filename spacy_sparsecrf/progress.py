"""Progress of long tasks: a bar of tqdm on a terminal, elsewhere a line of the log each 15 seconds.

Nothing is shown if spaCy's logger suppresses warnings, or [training.logger] has console_output =
false.
"""

import logging
import shutil
import sys
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

_DELAY = 1.0  # seconds before a bar is shown
_PAUSE = 15.0  # seconds between lines of the log
_NOTICE = (
    "spacy-sparsecrf compiles its kernels for this machine, once after installation. "
    "`python -m spacy_sparsecrf warmup` does it ahead."
)
# Whether progress reporting is off, and when the last line was logged.
_state = {"is_quiet": False, "last": time.monotonic()}


def be_quiet(is_quiet: bool) -> None:
    """Turn progress reporting off, or on again."""
    _state["is_quiet"] = is_quiet


def _is_shown() -> bool:
    return not _state["is_quiet"] and _spacy.isEnabledFor(logging.WARNING)


class Task:
    """A long task.

    text: its name; unit: name of the counted units, plural; total: number of units, None if
    unknown; detail: shown after the counts, from the next count on.
    """

    def __init__(self, text: str, unit: str = "", total: int | None = None) -> None:
        self.text, self.unit, self.total, self.detail = text, unit, total, ""
        self._done, self._since = 0, time.monotonic()
        self._bar: tqdm.tqdm[Any] | None = None

    @property
    def done(self) -> int:
        """Number of completed units."""
        return self._done

    @done.setter
    def done(self, value: int) -> None:
        self._done = value
        if self._bar is not None:
            self._bar.set_postfix_str(self.detail, refresh=False)
            self._bar.update(value - self._bar.n)
        else:
            self._log()

    def over(self, items: Iterable[ItemT]) -> Iterator[ItemT]:
        """Yield the items and count them."""
        for item in items:
            yield item
            self.done += 1

    def __str__(self) -> str:
        """The line of the log."""
        total = f" of {self.total:,}" if self.total is not None else ""
        counted = f": {self.done:,}{total} {self.unit}" if self.unit else ""
        detail = f", {self.detail}" if self.detail else ""
        return f"{self.text}{counted}{detail} ({time.monotonic() - self._since:.0f} s)"

    @contextmanager
    def shown(self) -> Iterator["Task"]:
        """Show the task while the body runs."""
        if not (_is_shown() and sys.stderr.isatty()):
            self._log()
            yield self
            return
        # tqdm draws nothing if the terminal's size is unknown.
        width, height = shutil.get_terminal_size()
        place = {"ncols": width, "nrows": height, "delay": _DELAY, "leave": False}
        own = {"desc": self.text, "total": self.total, "unit": f" {self.unit}"}
        # Lines of spaCy's log must not break the bar.
        with (
            logging_redirect_tqdm([_spacy]),
            tqdm.tqdm(**own, **place, initial=self.done) as self._bar,
        ):
            try:
                yield self
            finally:
                self._bar = None

    def _log(self) -> None:
        """Log a line, if the last one is long ago and there is no terminal."""
        if time.monotonic() - _state["last"] < _PAUSE:
            return
        if _is_shown() and not sys.stderr.isatty():
            _state["last"] = time.monotonic()
            logger.info("%s", self)


@contextmanager
def progress(text: str, unit: str = "", total: int | None = None) -> Iterator[Task]:
    """Report a task while the body runs; see `Task`."""
    with Task(text, unit, total).shown() as own:
        yield own


def report(text: str) -> None:
    """Log a line, unless progress reporting is off."""
    if _is_shown():
        logger.info("%s", text)


def track(
    items: Iterable[ItemT], text: str, unit: str, total: int | None = None
) -> Iterator[ItemT]:
    """Yield the items and report progress; see `Task`."""
    with progress(text, unit, total) as own:
        yield from own.over(items)


# Compilation


@cache  # one listener per process
def watch_compilation() -> Any:
    """Report the compilation of kernels, and warn if they cannot be cached. Imports numba.

    RETURNS: the listener. Its `with_notice` is whether to log `_NOTICE` before the first kernel.
    """
    from numba.core import event

    from .kernels.numba_support import is_kept, refused

    class Listener(event.Listener):
        """Receives numba's compile events; kernels compiled within others count too."""

        def __init__(self) -> None:
            self.with_notice = True
            self._task = Task("Compiling", "kernels")
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
            self._task.detail = kernel.__name__
            if len(self._names) == 1:
                self._shown.enter_context(self._task.shown())

        def on_end(self, event: Any) -> None:
            if hasattr(event.data["dispatcher"], "cache"):
                self._names.pop()
                self._task.done += 1
                if not self._names:
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
