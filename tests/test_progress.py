"""Progress reporting of slow tasks, on a terminal and elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

from spacy_sparsecrf import progress

from .support.processes import run_python

# Slow tasks, with few seconds between lines.
WORK = """
import logging, time
from spacy_sparsecrf import progress
spacy = logging.getLogger("spacy")
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
spacy.addHandler(handler)
progress._DELAY, progress._PAUSE = 0.02, 0.1
{first}
time.sleep(0.2)
with progress.Task("Digging", "holes", 3, range(3)) as shown:
    for hole in shown:
        shown.set_postfix_str(f"hole {{hole}}", refresh=False)
        time.sleep(0.5)
"""


def run_on_pipes(code: str) -> str:
    return run_python("-c", code).stderr


def run_on_a_terminal(code: str) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdout=theirs)
    os.close(theirs)
    found = b""
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:  # on Linux, the other side is closed
            break
        if not read:
            break
        found += read
    os.close(ours)
    assert process.wait() == 0, found
    return found.decode()


def test_lines_of_the_log_tell_what_is_done_and_how_far():
    lines = run_on_pipes(WORK.format(first="")).splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        "INFO Digging: 0 of 3 holes",
        "INFO Digging: 1 of 3 holes, hole 0",
        "INFO Digging: 2 of 3 holes, hole 1",
        "INFO Digging: 3 of 3 holes, hole 2",
    ]


def test_the_log_has_no_line_about_one_item_of_an_unknown_number():
    items = WORK.replace(", 3, range(3)", ", items=range({n})")
    assert run_on_pipes(items.format(first="", n=1)) == ""
    lines = run_on_pipes(items.format(first="", n=3)).splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        "INFO Digging: 2 holes, hole 1",
        "INFO Digging: 3 holes, hole 2",
    ]


def test_a_terminal_has_a_bar_that_goes_away():
    shown = run_on_a_terminal(WORK.format(first=""))
    assert "Digging:" in shown and "2/3" in shown and "hole 1" in shown
    assert "INFO" not in shown
    # The rest of the last line is blank.
    assert not shown.rsplit("\r", 2)[1].strip() and not shown.rsplit("\r", 2)[2].strip()


@pytest.mark.parametrize(
    ("run", "first"),
    [
        (run_on_pipes, "spacy.setLevel(logging.ERROR)"),
        (run_on_a_terminal, "progress.be_quiet(True)"),
    ],
)
def test_where_it_is_quiet_nothing_is_shown(run, first):
    assert run(WORK.format(first=first)) == ""


def test_items_are_counted_while_they_pass():
    task = progress.Task("Reading", "docs", 2, "ab", initial=1)
    assert [*task] == ["a", "b"] and task.n == 3
    assert str(progress.Task("Reading", "docs", 2)) == "Reading: 0 of 2 docs (0 s)"
    assert str(progress.Task("Scoring")) == "Scoring (0 s)"


COMPILE = """
import os
os.environ["NUMBA_CACHE_DIR"] = {cache!r}
from spacy_sparsecrf.crf.compilation import watch_compilation
from spacy_sparsecrf.crf.kernels.numba_support import kernel
from spacy_sparsecrf.progress import Task
watch_compilation()
with Task("Digging") as task:
    begun = task.start_t
    kernel(lambda x: x + 1.0)(1.0)
    assert task.start_t > begun
"""


def test_a_terminal_tells_what_is_compiled_and_how_much(tmp_path):
    shown = run_on_a_terminal(COMPILE.format(cache=str(tmp_path)))
    assert "Compiling 1 of about 7 kernels, once" in shown and "(0 s)" not in shown
    assert not shown.rpartition("\r")[2].strip(" \x1b[A")


def test_time_that_passes_with_something_else_is_left_out():
    task = progress.Task("Reading", "docs", 2)
    begun = task.start_t
    progress.Task.leave_out(5.0)
    assert task.start_t == begun + 5.0
