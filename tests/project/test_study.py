"""The study of solvers: what it notes, and what it says of it."""

import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import srsly

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.penalty import ElasticNet

from ..reference import random_problem
from ..solvers.in_use import SOLVERS_IN_USE

PROJECT = Path(__file__).resolve().parents[2] / "project"

contestants = importlib.import_module("study.contestants")
document = importlib.import_module("reports.document")
gaps = importlib.import_module("study.gaps")
race = importlib.import_module("study.race")
report = importlib.import_module("study.report")
sets = importlib.import_module("study.sets")

PENALTY = ElasticNet(0.0, 1.0)


@pytest.fixture
def data():
    problem, observations = random_problem(5, 3, [6, 4, 7], n_values=3)
    gold = problem.corpus.labels.astype(np.int64)
    return sets.DataSet("made-up", problem.corpus, ("a", "b", "c"), observations, gold, False)


def record_of(data, courses: dict, reference: float) -> dict:
    return {
        "race": "made-up-l2",
        "quick": True,
        "limits": {"cap": 1.0, "most": 10.0},
        "l1": 0.0,
        "l2": 1.0,
        "sequences": data.corpus.n_sequences,
        "tokens": data.corpus.n_tokens,
        "labels": len(data.labels),
        "weights": 1,
        "observed_only": False,
        "reference": reference,
        "longer": dict.fromkeys(courses, 1.0),
        "sources": dict.fromkeys(courses, "a paper"),
        "no_objective": [],
        "courses": {name: vars(course) for name, course in courses.items()},
        "machine": {"processor": "p", "date": "d", "commit": "c"},
    }


def test_every_solver_takes_part():
    racing = {c.solver for one in contestants.RACES for c in one.contestants}
    known = {name.removeprefix("spacy_sparsecrf.")[: -len(".v1")] for name in SOLVERS_IN_USE}
    assert racing == known
    assert {one.data for one in contestants.RACES} <= set(sets.READERS)


def test_courses_note_passes_objective_and_errors(data):
    one = contestants.Contestant("L-BFGS", "OWLQN", {"classic": True})
    course = race.run(data, PENALTY, one, most=12.0)
    assert len(course.passes) == len(course.cpu) == len(course.objective) == len(course.n_active)
    assert course.passes == sorted(course.passes)
    assert course.passes[-1] >= 12.0
    assert course.cpu == sorted(course.cpu)
    assert course.objective == sorted(course.objective, reverse=True)
    steps = [i for i, _ in course.errors]
    assert steps[0] == 0 and steps[-1] == len(course.passes) - 1
    assert all(0.0 <= error <= 100.0 for _, error in course.errors)


def test_a_contestant_stops_at_the_goal(data):
    one = contestants.Contestant("L-BFGS", "OWLQN", {})
    best = race.run(data, PENALTY, one, most=60.0, count=False).objective[-1]
    course = race.run(data, PENALTY, one, goal=1.01 * best)
    assert course.objective[-1] <= 1.01 * best < course.objective[-2]


def test_a_solver_that_gives_up_is_noted(data, monkeypatch):
    def give_up(*args):
        raise SparseCRFError("[SC338] too long steps")

    one = contestants.Contestant("L-BFGS", "OWLQN", {})
    monkeypatch.setattr("spacy_sparsecrf.solvers.owlqn.OWLQN.step", give_up)
    course = race.run(data, PENALTY, one)
    assert "SC338" in course.failure and "SC338" in race.summary(course)
    other = race.Course([1.0], [0.1], [2.0], [3], [(0, 50.0)])
    text = report.render({"x": record_of(data, {"bad": course, "good": other}, 1.0)})
    assert "bad gave up: [SC338]" in text


def test_the_step_with_the_lowest_objective_runs(data):
    values = (1e-4, 0.1, 1e6)
    one = contestants.Contestant(
        "SGD", "SGD", {"schedule": "constant"}, tuned="eta0", values=values
    )
    chosen = race.tune(data, PENALTY, one, cap=10.0, most=50.0)
    assert chosen.settings == {"schedule": "constant", "eta0": 0.1}
    assert not chosen.tuned and chosen.name == "SGD"
    plain = contestants.Contestant("annealed", "SGD", {})
    assert race.tune(data, PENALTY, plain, cap=10.0, most=50.0) is plain
    limits = {"cap": 10.0, "most": 4.0}
    two = contestants.Race("made-up", PENALTY, (one, plain))
    courses, tuned = race.run_all(data, two, limits, 0.0)
    assert list(courses) == ["SGD", "annealed"] and list(tuned) == ["SGD"]


def test_pegasos_and_smd_are_tuned():
    tuned = {one.name: one.tuned for one in contestants.SMOOTH_RACE if one.tuned}
    assert tuned == {"Pegasos": "eta0", "SMD": "eta0"}
    for one in contestants.SMOOTH_RACE:
        steps = [variant.make().eta0 for variant in one.variants()]
        assert steps == list(one.values)
        ratios = np.diff(np.log10(one.values))
        np.testing.assert_allclose(ratios, 1.0)


def test_races_are_extended_by_single_contestants(data, monkeypatch, tmp_path):
    small = contestants.Race(
        "made-up", PENALTY, tuple(contestants.Contestant(name, name) for name in ("OWLQN", "RPROP"))
    )
    monkeypatch.setattr(race, "RACES", (small,))
    monkeypatch.setattr(race, "read", lambda *args: data)
    monkeypatch.setattr(race, "describe", lambda: {"commit": "first"})
    race.main(tmp_path, [], quick=True)
    first = srsly.read_json(tmp_path / "made-up-l2.json")
    assert list(first["courses"]) == ["OWLQN", "RPROP"] and first["earlier"] == []
    del first["courses"]["RPROP"]
    srsly.write_json(tmp_path / "made-up-l2.json", first)
    monkeypatch.setattr(race, "describe", lambda: {"commit": "second"})
    race.main(tmp_path, [], only=["RPROP"], quick=True)
    second = srsly.read_json(tmp_path / "made-up-l2.json")
    assert list(second["courses"]) == ["OWLQN", "RPROP"]
    assert second["courses"]["OWLQN"] == first["courses"]["OWLQN"]
    assert second["reference"] == first["reference"]
    assert second["earlier"] == [{"commit": "first"}] and second["machine"]["commit"] == "second"


def test_the_report_tells_tuned_settings_and_all_machines(data):
    record = record_of(data, {"SMD": race.Course([1.0], [0.1], [2.0], [3], [(0, 50.0)])}, 1.0)
    record["tuned"] = {"SMD": "eta0 = 0.01"}
    record["earlier"] = [{"processor": "q", "date": "d", "commit": "b"}]
    text = report.render({"x": record})
    assert "SMD: eta0 = 0.01, the best power of ten" in text
    assert "Measured on: q, d, commit b; p, d, commit c." in text


def test_races_that_were_not_run_stay_as_they_are_published(data, monkeypatch, tmp_path):
    monkeypatch.setattr(report, "draw", lambda *arguments: None)
    metrics, name = tmp_path / "metrics", report.DOCUMENT.name
    shutil.copy(PROJECT / name, tmp_path)
    report.main(metrics, tmp_path)
    published = (PROJECT / name).read_text(encoding="utf-8")
    assert (tmp_path / name).read_text(encoding="utf-8") == published
    course = race.Course([1.0], [0.1], [2.0], [3], [(0, 50.0)])
    record = {**record_of(data, {"OEG": course}, 1.0), "race": "ocr-l2"}
    srsly.write_json(metrics / "ocr-l2.json", record)
    report.main(metrics, tmp_path)
    assert (tmp_path / name).read_text(encoding="utf-8") == published
    srsly.write_json(metrics / "ocr-l2.json", {**record, "quick": False})
    report.main(metrics, tmp_path)
    before, after = (document.read_published(at / name) for at in (PROJECT, tmp_path))
    assert list(after.sections) == list(before.sections)
    changed = [title for title in after.sections if after.sections[title] != before.sections[title]]
    assert changed == ["ocr-l2"] and "Measured on: p, d, commit c; AMD" in after.head


def test_gaps_count_from_the_lowest_of_all(data):
    slow = race.Course([1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [20.0, 11.0, 10.05], [1] * 3, [(0, 9.0)])
    fast = race.Course([1.5, 3.0], [0.5, 1.0], [10.5, 10.0], [1] * 2, [(0, 8.0), (1, 7.0)])
    record = record_of(data, {"slow": slow, "fast": fast}, 10.01)
    assert gaps.minimum(record) == 10.0
    assert gaps.reached(record, "slow", 1e-2, "passes") == 3.0
    assert gaps.reached(record, "fast", 1e-2, "cpu") == 1.0
    assert gaps.reached(record, "slow", 1e-4, "passes") is None
    assert gaps.error_after(record, "fast", 2.0) == 8.0
    assert gaps.error_after(record, "fast", 1.0) is None
    assert gaps.final_error(record, "slow") == 9.0
    rows = {row[0]: row for row in report.gap_rows(record)}
    assert rows["fast"][2:5] == ["3", "3", "3"]
    assert rows["slow"][2:5] == ["3", "-", "-"]


def test_letters_are_cut_into_words():
    arrays = {
        "pixels": np.array([[1, 0], [0, 1], [1, 1]], np.uint8),
        "label": np.array([3, 1, 0], np.uint8),
        "word_id": np.array([4, 4, 9], np.int32),
        "fold": np.zeros(3, np.uint8),
    }
    observations, labels = sets._cut(arrays, np.ones(3, bool), 0)
    assert observations.offsets.tolist() == [0, 2, 3]
    assert observations.hashes.tolist() == [[1, 0, 3], [0, 2, 3], [1, 2, 3]]
    assert labels.tolist() == [3, 1, 0]
    observations, labels = sets._cut(arrays, np.ones(3, bool), 1)
    assert observations.offsets.tolist() == [0, 2]
    assert labels.tolist() == [3, 1]
