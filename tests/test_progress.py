"""Progress reporting of slow tasks, on a terminal and elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

from spacy_sparsecrf import progress

# Slow tasks, during which the reporting thread wakes up often.
WORK = """
import logging, time
from spacy_sparsecrf import progress
spacy = logging.getLogger("spacy")
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
spacy.addHandler(handler)
progress._TICK, progress._FIRST, progress._PAUSE = 0.01, 0.02, 0.1
{first}
with progress.progress("Digging", "holes", 3) as shown:
    for hole in shown.over(range(3)):
        shown.detail = f"hole {{hole}}"
        time.sleep(0.5)
    with progress.progress("Resting"):
        time.sleep(0.5)
"""


def run_on_pipes(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


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


def test_lines_of_the_log_tell_what_is_done_and_how_far() -> None:
    lines = run_on_pipes(WORK.format(first="")).splitlines()
    assert lines[0].startswith("INFO Digging: 0 of 3 holes, hole 0 (")
    assert any(line.startswith("INFO Digging: 2 of 3 holes, hole 2 (") for line in lines)
    assert lines[-1].startswith("INFO Resting (")


def test_a_terminal_has_a_bar_that_goes_away() -> None:
    shown = run_on_a_terminal(WORK.format(first=""))
    assert "Digging:" in shown and "2/3" in shown and "hole 2" in shown and "Resting" in shown
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
def test_where_it_is_quiet_nothing_is_shown(run, first: str) -> None:
    assert run(WORK.format(first=first)) == ""


def test_short_tasks_that_follow_each_other_are_shown_too() -> None:
    many = "for i in range(60):\n    with progress.progress(f'Step {i}'): time.sleep(0.01)\n"
    code = WORK[: WORK.index("with progress")].format(first="") + many
    assert 1 < run_on_pipes(code).count("INFO Step ") < 60
    on_a_terminal = run_on_a_terminal(code)
    assert "Step " in on_a_terminal and "INFO" not in on_a_terminal


def test_items_are_counted_while_they_pass() -> None:
    task = progress.Task("Reading", "docs", 2)
    assert [task.done for _ in task.over("ab")] == [0, 1]
    assert task.done == 2
    assert list(progress.track(iter("ab"), "Reading", "docs")) == ["a", "b"]
    rough = progress.Task("Compiling", "kernels", 5, is_rough=True)
    assert str(rough) == "Compiling: 0 of about 5 kernels (0 s)"
    rough.done = 7  # more than were expected
    assert str(rough) == "Compiling: 7 kernels (0 s)"
