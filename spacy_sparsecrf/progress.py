"""Progress of long tasks: a bar of tqdm on a terminal, elsewhere a line of the log each 15 seconds.

Nothing is shown if spaCy's logger suppresses warnings, or [training.logger] has console_output =
false.
"""

import logging
import os
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from threading import RLock
from typing import Any

from tqdm import tqdm

_spacy = logging.getLogger("spacy")
# `spacy train` shows warnings only. Progress is logged as INFO, so its logger has its own level.
logger = _spacy.getChild("sparsecrf")
logger.setLevel(logging.INFO)

_DELAY = 1.0  # seconds before a bar is shown
_PAUSE = 15.0  # seconds between lines of the log


def be_quiet(is_quiet: bool) -> None:
    """Turn progress reporting off, or on again."""
    logger.setLevel(logging.WARNING if is_quiet else logging.INFO)


def _is_shown() -> bool:
    return logger.isEnabledFor(logging.INFO) and _spacy.isEnabledFor(logging.WARNING)


class _Lines:
    """A file that logs what tqdm writes as a line, if the last line is long ago."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def write(self, text: str) -> None:
        """Log a text that is not blank."""
        now, text = time.monotonic(), text.removeprefix("\x1b[A").strip()  # of a bar in another
        if now - self._last >= _PAUSE and text:
            self._last = now
            logger.info("%s", text)


_lines = _Lines()


class Task(tqdm):  # type: ignore[misc]
    """A long task: a context, and an iterable that counts items. Call `update` to count others.

    text: its name; unit: name of the counted units, plural; total: number of units, None if
    unknown; items: to count; initial: number of units before; in_log: whether to log lines where
    there is no terminal; delay: seconds before a bar is shown, default 1. A text that is set by
    `set_postfix_str` is shown after the counts, from the next count on.
    """

    # Without tqdm's thread, and without a lock of other processes.
    monitor_interval, _lock = 0, RLock()

    def __init__(
        self,
        text: str,
        unit: str = "",
        total: int | None = None,
        items: Iterable[Any] | None = None,
        initial: int = 0,
        in_log: bool = True,
        delay: float | None = None,
    ) -> None:
        has_bar = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self._redirected, is_shown = ExitStack(), _is_shown() and (has_bar or in_log)
        self._is_of_total = has_bar or total is not None  # tqdm takes the length of a list
        counted = f": {{n:,}}{'' if total is None else f' of {total:,}'} {unit}" if unit else ""
        line = f"{{desc}}{counted}{{postfix}} ({{elapsed_s:.0f}} s)"
        layout: dict[str, Any] = {"file": _lines, "bar_format": line}
        if is_shown and has_bar:
            # tqdm draws nothing if the terminal's size is unknown.
            width, height = shutil.get_terminal_size()
            layout = {
                "ncols": width,
                "nrows": height,
                "delay": _DELAY if delay is None else delay,
                "unit": f" {unit}",
            }
            from tqdm.contrib.logging import logging_redirect_tqdm  # imports asyncio

            # Lines of spaCy's log must not break the bar.
            self._redirected.enter_context(logging_redirect_tqdm([_spacy]))
        super().__init__(
            items,
            desc=text,
            total=total,
            initial=initial,
            disable=not is_shown,
            leave=False,
            miniters=1,
            **layout,
        )

    def display(self, *args: Any, **kwargs: Any) -> Any:
        """Show the counts; in the log, not before two of an unknown number of items."""
        if self._is_of_total or self.n > 1:
            return super().display(*args, **kwargs)

    @classmethod
    def leave_out(cls, seconds: float) -> None:
        """Leave out seconds of the time of all open tasks, which passed with something else."""
        for task in cls._instances:
            task.start_t += seconds

    def close(self) -> None:
        """End the task."""
        self._redirected.close()
        super().close()


def report(text: str) -> None:
    """Log a line, unless progress reporting is off."""
    if _is_shown():
        logger.info("%s", text)
