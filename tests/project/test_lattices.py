"""The experiment on lattices: its pictures, a trial of all of it, and what the report says."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly

pictures = importlib.import_module("lattices.pictures")
race = importlib.import_module("lattices.race")
report = importlib.import_module("lattices.report")


def test_shapes_are_pictures_and_noise_hides_them(tmp_path: Path) -> None:
    shapes = pictures.shapes()
    assert len(shapes) == 4
    rng = np.random.default_rng(0)
    for shape in shapes:
        assert shape.shape == (64, 64) and 0.1 < shape.mean() < 0.6
        for noise, wrong in (("gaussian", (0.03, 0.07)), ("bimodal", (0.1, 0.4))):
            grey = pictures.noisy(shape, noise, rng)
            cut = 0.5 if noise == "gaussian" else 0.3
            assert wrong[0] < np.mean((grey > cut) != shape) < wrong[1]
    np.savetxt(tmp_path / "one.txt", shapes[0], fmt="%d")
    (found,) = pictures.read_shapes(str(tmp_path))
    np.testing.assert_array_equal(found, shapes[0])


def test_graphs_of_pictures_have_the_weights_of_the_paper() -> None:
    truth = np.array([[0, 1], [1, 1]])
    graphs = pictures.encode([truth], [truth + 0.25])
    assert graphs.ends.tolist() == [[0, 1], [2, 3], [0, 2], [1, 3]]
    assert graphs.nodes.values.tolist() == [1.0, 0.25, 1.0, 1.25, 1.0, 1.25, 1.0, 1.25]
    steps = graphs.pairs.values[graphs.pairs.indptr[graphs.row][:, None] + np.arange(2)]
    assert steps.tolist() == [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]


def course(name: str, eta: float, objective: list[float], **other: Any) -> dict[str, Any]:
    passes = [float(i) for i in range(len(objective))]
    errors: list[float | None] = [1.0] * len(objective)
    given = {"name": name, "eta": eta, "objective": objective, "passes": passes, "errors": errors}
    return given | {"failure": "", "open": [0], "cpu": 1.0, **other}


def test_claims_are_told_from_courses() -> None:
    courses = [
        course("L-BFGS", 0.0, [9.0, 5.0, 4.0]),
        course("SGD", 0.1, [9.0, 6.0, 5.0, 4.0]),
        course("SMD", 0.1, [9.0, 4.0]),
        course("SGD", 0.2, [9.0, 4.0]),
        course("SMD", 0.2, [9.0, 10.0, 4.0]),
        course("ASG", 0.2, [9.0, 8.0]),
    ]
    raced = report.Race({"methods": {"lbp": courses}}, "lbp")
    assert report.passes_to(courses[1], 5.0) == 2.0
    assert report.passes_to(courses[1], 3.0) is None
    assert raced.best("SMD")["eta"] == 0.1 and raced.best("SGD")["eta"] == 0.2
    assert report.smd_first(raced, "SMD") == "with some gains (0.1: 3 → 1, 0.2: 1 → 2)"
    assert report.is_faster(raced) == "yes (L-BFGS 2, SGD 1, SMD 1)"
    assert report.anneals_slowly(raced) == "yes (ASG –, SGD 1)"
    assert report.highest(raced) == "no (0.1 here, 0.0001 there)"
    # Of what was not run nothing is said.
    record = {"noise": "gaussian", "logistic": 2.0, "methods": {"lbp": courses[:1]}}
    text = str(report.findings({"gaussian": record}))
    assert text.count("not run") == text.count("\n| ") - 3
    assert "yes (nodes 2.00, LBP 1.00)" in text


@pytest.mark.filterwarnings("ignore:.*SCW370")
def test_a_trial_of_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = tmp_path / "metrics"
    race.main(metrics, quick=True, noises=["bimodal"])
    record = srsly.read_json(metrics / "bimodal.json")
    assert set(record["methods"]) == set(race.GAINS) == set(race.PAPER)
    courses = record["methods"]["lbp"]
    assert {each["name"] for each in courses} == set(race.OPTIMISERS)
    # All start at the same point; points are recorded between passes.
    assert len({each["objective"][0] for each in courses}) == 1
    assert courses[1]["passes"] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
    assert not (metrics / "gaussian.json").exists()
    report.main(metrics, tmp_path)
    text = (metrics / "LATTICES.md").read_text(encoding="utf-8")
    assert "A trial on small pictures" in text and "## Bimodal noise" in text
    assert not (tmp_path / "LATTICES.md").exists()
    # What was run is kept.
    monkeypatch.setattr(race, "run", lambda *given: pytest.fail("was run again"))
    race.main(metrics, quick=True, noises=["bimodal"])


def test_points_are_where_the_optimiser_was() -> None:
    train = race.images("gaussian", [each[::8, ::8] for each in pictures.shapes()], 4, 0)
    found = [race.run(name, 1e-3, train, train, "lbp", 1) for name in ("SGD", "SMD")]
    for each in found:
        assert each.passes == [0.0, 0.25, 0.5, 0.75, 1.0]
        assert np.diff(each.objective).max() < 0.0
        assert each.errors[1] is None and each.errors[-1] is not None
