"""The report on the tables after Lavergne et al. (2010): what is told, and what is kept."""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest
import srsly

from .lavergne_cases import MACHINE, PROJECT, experiments, figures, figures_of, record_of

goals = importlib.import_module("lavergne.goals")
plots = importlib.import_module("lavergne.plots")
report = importlib.import_module("lavergne.report")
sections = importlib.import_module("lavergne.sections")


# Tables, goals and the figure


def test_tables_tell_what_was_measured() -> None:
    name = "phonemes-5grm+-owlqn"
    record = record_of(name, cpu=1234.0)
    record["course"]["ended"] = "cap"
    one = figures.Figures.of(record)
    row = "5-grm+, OWL-QN | 8.00 | 8.10 | 7.89 | 7.70 (2) | 6.50 (10) | 3 | 36.5 | 30,000 | 43,429"
    assert f"| {row} | 2 M | 1,234* | 700 | 97 |" in sections.methods({name: one}, {})
    row = "5-grm+ | 8.00 | 7.80 | 7.80 | 7.9 | 20.6 | 10 | 0.68 | 3 | no"
    assert f"| {row} |" in goals.goals({name: one}, {})
    one = replace(one, cpu=599.0)
    assert "| yes |" in goals.goals({name: one}, {})
    assert "| no |" in goals.goals({name: replace(one, best_test_part=7.91)}, {})


def test_cells_of_what_is_not_known_are_empty() -> None:
    known = {
        one.name: figures.Figures(name=one.name, processor="p", date="d", test=8.25)
        for one in experiments.EXPERIMENTS
    }
    row = f"| 5-grm+, OWL-QN |  | 8.25 | 7.89 |{'  |' * 5} 43,429 |  |  |  | 97 |"
    assert row in sections.methods(known, {})
    assert "| 5-grm+ |  |  |  | 7.9 |  | 10 |  | 3 |  |" in goals.goals(known, {})
    assert "| 7-grm, OWL-QN |  | 8.25 |  |  | 14.12 / 7.86 |" in sections.joint(known, {})
    assert "| 5-grm, by tests | 8.25 |  |  |  |  |  |  |  |" in sections.stages(known, {})
    text = sections.folds(known, {})
    assert f"| 7-grm, at the stop | 8.25 | 0.00 | 10 | 8.12 |{' 8.25 |' * 10}  |" in text
    assert "best dev" not in text
    assert "None" not in report.render(known, {}, trial=False)
    assert {series for _, series, _, _ in plots.points(known)} == {
        f"{series}, paper" for series in ("OWL-QN", "SGD-L1", "BCD")
    }


def test_stages_tell_what_they_admit() -> None:
    name = "phonemes-5grm-owlqn-by-labels"
    stages = [{"ended": False, "admitted": [10, 1000]}, {"ended": True, "admitted": [20, 80_000]}]
    record = record_of(name)
    record["course"]["stages"] = stages
    made = {name: figures.Figures.of(record)}
    text = sections.stages(made, {})
    assert "| 5-grm, by labels | 8.10 | 7.70 | 8.00 | 80,000 | 4.0 % | 30,000 |" in text
    assert "all at once |" not in text
    whole = "phonemes-5grm-owlqn"
    made |= {one: figures_of(one) for one in (whole, f"{whole}-observed")}
    text = sections.stages(made, {})
    assert "| 5-grm, observed | 8.10 | 7.70 | 8.00 | 50,000 | 2.5 % |" in text
    assert text.count("| 5-grm, all at once | 8.10 | 7.70 | 8.00 | 2 M | 100.0 % |") == 1


def test_means_are_of_the_folds_that_were_run() -> None:
    made = {}
    for fold, error in ((0, 8.0), (1, 8.2), (9, 8.4)):
        name = f"phonemes-7grm-owlqn-fold{fold}"
        made[name] = figures_of(name, test=error, best_test=error - 1.0)
    text = sections.folds(made, {})
    row = "| 8.20 | 0.20 | 3 | 8.12 | 8.00 | 8.20 |  |  |  |  |  |  |  | 8.40 | 120 |"
    assert f"| 7-grm, at the stop {row}" in text
    assert "| 7-grm, best dev | 7.20 |" in text


def test_the_dense_penalty_is_chosen_on_the_development_part() -> None:
    names = {l2: f"phonemes-1grm-owlqn-l2={l2:g}" for l2 in experiments.L2_TRIED}
    made = {name: figures_of(name) for name in names.values()}
    made[names[0.3]] = figures_of(names[0.3], dev=7.0, test=17.5)
    made |= {name: figures_of(name) for name in ("phonemes-1grm-owlqn", "phonemes-1grm-owlqn-l1")}
    row = "| 1-grm | 17.50 (l2 = 0.3) | 17.81 | 8.10 | 17.86 | 8.10 | 17.79 |"
    assert row in sections.penalties(made, {})
    # One that was kept without its development error had been chosen before.
    made[names[0.03]] = figures_of(names[0.03], dev=None, cut=True)
    assert "| 8.10* (l2 = 0.03) |" in sections.penalties(made, {})


def test_the_figure_is_drawn_alike_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib (extra `plot`) is not installed")
    names = "phonemes-5grm+-owlqn", "phonemes-1grm-bcd", "phonemes-5grm+-owlqn-by-labels"
    made = {name: figures_of(name) for name in names}
    for name in ("a", "b"):
        plots.draw(made, tmp_path / name)
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    series = {series for _, series, _, _ in plots.points(made)}
    assert {"OWL-QN", "OWL-QN, paper", "BCD", "in stages, by labels"} <= series


# What is kept

TIMING = {"active_s": 0.1, "all_s": 0.4, "active": 5, "potential": 9, "zeros": 50.0}
EVALUATIONS = {"rows": {"3-grm": {**TIMING, "paper": "1, 2"}}, "machine": MACHINE}


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Where figures of runs are, and what they are published to."""
    metrics, project = tmp_path / "metrics", tmp_path / "project"
    metrics.mkdir()
    project.mkdir()
    return metrics, project


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without a plot: one that is drawn takes longer than all the rest."""
    monkeypatch.setattr(report, "draw", lambda *arguments: None)


def test_only_full_runs_reach_the_repository(places: tuple[Path, Path]) -> None:
    metrics, project = places
    name = "phonemes-1grm-sgd"
    srsly.write_json(metrics / f"{name}.json", record_of(name, quick=True))
    srsly.write_json(metrics / "gradients.json", {"quick": True, **EVALUATIONS})
    report.main(metrics, project)
    text = (metrics / "LAVERGNE.md").read_text(encoding="utf-8")
    assert "| 3-grm | 100 | 400 | 4.0x | 5 | 9 | 50.0 % | 1, 2 |" in text
    assert not list(project.iterdir())
    # Beside real figures those of a trial are left out.
    srsly.write_json(metrics / "phonemes-1grm-owlqn.json", record_of("phonemes-1grm-owlqn"))
    report.main(metrics, project)
    text = (project / "LAVERGNE.md").read_text(encoding="utf-8")
    assert "OWL-QN |" in text and "SGD-L1 |" not in text and "4.0x" not in text
    assert list(figures.read_kept(project)) == ["phonemes-1grm-owlqn"]
    assert not (project / figures.KEPT_EVALUATIONS).exists()


@pytest.mark.usefixtures("undrawn")
def test_a_trial_shows_nothing_that_is_kept(places: tuple[Path, Path]) -> None:
    metrics, project = places
    name = "phonemes-1grm-sgd"
    kept = {"phonemes-1grm-owlqn": figures_of("phonemes-1grm-owlqn")}
    figures.keep(kept, {"quick": False, **EVALUATIONS}, project)
    srsly.write_json(metrics / f"{name}.json", record_of(name, quick=True))
    report.main(metrics, project)
    text = (metrics / "LAVERGNE.md").read_text(encoding="utf-8")
    assert "SGD-L1 |" in text and "OWL-QN |" not in text and "4.0x" not in text
    assert figures.read_kept(project) == kept and not (project / "LAVERGNE.md").exists()


def test_kept_figures_are_read_as_they_were(places: tuple[Path, Path]) -> None:
    made = {
        "phonemes-1grm-owlqn": figures_of("phonemes-1grm-owlqn", dev=17.0625, cut=True),
        "phonemes-1grm-owlqn-l1": figures.Figures("phonemes-1grm-owlqn-l1", "p", "d", 17.5),
    }
    figures.keep(made, {}, places[1])
    assert figures.read_kept(places[1]) == made
    # What is not known is left out.
    assert "null" not in (places[1] / figures.KEPT).read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_rows_that_were_not_run_here_are_those_that_are_kept(places: tuple[Path, Path]) -> None:
    metrics, project = places
    names = "phonemes-1grm-owlqn", "phonemes-1grm-sgd", "ewt-owlqn"
    kept = {
        names[2]: figures_of(names[2], date="then"),
        "gone": replace(figures_of(names[0], date="long ago"), name="gone"),
        names[1]: figures_of(names[1], test=1.25, date="then"),
    }
    figures.keep(kept, {"quick": False, **EVALUATIONS}, project)
    for name in names[:2]:
        srsly.write_json(metrics / f"{name}.json", record_of(name))
    report.main(metrics, project)
    text = (project / "LAVERGNE.md").read_text(encoding="utf-8")
    assert "| 1-grm, SGD-L1 | 8.00 | 8.10 |" in text and "| ewt-owlqn | 8.00 |" in text
    assert "4.0x" in text and "Measured on: p, d; p, then.\n" in text
    found = figures.read_kept(project)
    assert list(found) == list(names)
    assert found[names[2]] == kept[names[2]] and found[names[1]] == figures_of(names[1])
    # New evaluations are kept, too; and without any run the report is the same.
    again = {"3-grm": {**TIMING, "all_s": 0.75, "paper": ""}}
    new = {"quick": False, "rows": again, "machine": MACHINE}
    srsly.write_json(metrics / "gradients.json", new)
    report.main(metrics, project)
    text = (project / "LAVERGNE.md").read_text(encoding="utf-8")
    assert "7.5x" in text and srsly.read_json(project / figures.KEPT_EVALUATIONS) == new
    report.main(project.parent / "nothing", project)
    assert (project / "LAVERGNE.md").read_text(encoding="utf-8") == text


def test_the_published_report_is_of_the_kept_figures() -> None:
    known = figures.in_order(figures.read_kept(PROJECT))
    assert list(known) == list(figures.read_kept(PROJECT))
    evaluations = figures.read_evaluations(PROJECT / figures.KEPT_EVALUATIONS, trial=False)
    text = report.render(known, evaluations, trial=False)
    assert text == (PROJECT / "LAVERGNE.md").read_text(encoding="utf-8")
