"""From measurement to table: child processes, rows of results, courses, documents."""

import subprocess
import sys
from pathlib import Path

import pytest
from measure import document, processes, results
from measure.race import Enough, Watched

from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.base import StepReport

# Processes


def test_a_child_is_measured_with_its_own_memory() -> None:
    held = bytearray(200_000_000)
    script = "import os, time; print(os.environ.get('A'), os.environ.get('HOME')); time.sleep(0.3)"
    cost = processes.run(["python", "-c", script], {"A": "1", "HOME": ""})
    assert cost.output.strip() == "1 None" and len(held)
    assert cost.wall > 0.0
    if sys.platform == "linux":
        assert 1.0 < cost.anonymous_mb < cost.peak_mb < 150.0


def test_a_failing_child_is_told_with_its_last_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        processes.run(["python", "-c", "print('why'); raise SystemExit(3)"])
    assert caught.value.returncode == 3 and "why" in capsys.readouterr().err


# Rows


def test_later_rows_replace_earlier_ones_and_trials_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "metrics" / "rows.jsonl"
    first = results.Results(path, settings={"n": 1})
    first.add("a", value=1.0)
    first.add("b", value=2.0)
    results.Results(path, settings={"n": 2}).add("a", value=3.0)
    assert [(row["name"], row["value"]) for row in results.read_rows(path)] == [
        ("a", 3.0),
        ("b", 2.0),
    ]
    assert [row["session"]["settings"]["n"] for row in results.read_rows(path)] == [2, 1]
    trial = results.Results(path, quick=True)
    assert not trial.rows
    trial.add("c", value=4.0)
    assert [row["name"] for row in results.read_rows(path)] == ["a", "b"]
    assert not results.is_trial(results.read_rows(path))
    assert list(results.Results(path, settings={"n": 2}).rows) == ["a", "b"]
    assert not results.Results(path, settings={"n": 2}, keep="same").rows and not path.exists()


# Courses


class Falling:
    """A solver whose objective falls by one a step."""

    warm_start_epochs = 6

    def __init__(self) -> None:
        self.n = 0

    def step(self, loss, penalty, state) -> StepReport:
        self.n += 1
        return StepReport(10.0 - self.n, 1.0, 5, 2.0, False)


def test_watched_solvers_note_passes_and_end_at_goal_or_limit() -> None:
    watched = Watched(Falling(), goal=7.0, count=lambda: 50.0)
    with pytest.raises(Enough):
        for _ in range(9):
            watched.step(None, ElasticNet(0.0, 1.0), None)
    course = watched.course
    assert course.objective == [9.0, 8.0, 7.0] and course.passes == [2.0, 4.0, 6.0]
    assert course.errors == [(0, 50.0), (1, 50.0), (2, 50.0)] and not course.cut
    assert course.first_at(8.5) == 1 and course.first_at(1.0) is None and course.lowest == 7.0
    watched = Watched(Falling(), most=8.0)
    with pytest.raises(Enough):
        watched.step(None, ElasticNet(0.5, 0.0), None)
    assert watched.course.cut and watched.course.passes == [8.0]


# Documents


REPORT = """# Title

Text.

Measured on: p, then.

## One

Prose.

| a |
| --- |
| 1 |

## Two

| b |
"""


def test_sections_without_figures_and_prose_stay(tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text(REPORT, encoding="utf-8")
    made = document.Document("A.md", "toys", "a/plots", frozenset({"One"}))
    published = document.read_published(tmp_path / "A.md")
    assert made.render(published, published.measured, {}) == REPORT
    machine = {"processor": "q", "date": "now"}
    text = made.render(
        published,
        document.measured_on([machine], published.measured),
        {"One": ["| new |"], "Three": ["More."]},
    )
    assert (
        text
        == REPORT.replace("p, then", "q, now; p, then").replace("| a |\n| --- |\n| 1 |", "| new |")
        + "\n## Three\n\nMore.\n"
    )
    text = made.render(published, "Measured on: q.", {"One": ["| new |"]}, is_trial=True)
    assert "the figures mean nothing" in text and "Prose." in text and "## Two" not in text
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "plot.svg").touch()
    made.publish(text, tmp_path / "metrics", tmp_path, is_trial=True)
    assert (tmp_path / "A.md").read_text(encoding="utf-8") == REPORT
    made.publish(text, tmp_path / "metrics", tmp_path, is_trial=False)
    assert (tmp_path / "A.md").read_text(encoding="utf-8") == text
    assert (tmp_path / "a" / "plots" / "plot.svg").exists()
