"""The report of the benchmarks: from what is stored, and from what was published before."""

import importlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2] / "project"

comparison = importlib.import_module("bench.comparison")
objective = importlib.import_module("bench.objective")
measurements = importlib.import_module("bench.measurements")
report = importlib.import_module("bench.report")
tables = importlib.import_module("reports.tables")
targets = importlib.import_module("bench.targets")
timing = importlib.import_module("bench.timing")

MACHINE = {
    "wapiti": "Wapiti v1",
    "crf_learn": "not on PATH",
    "packages": {"python-crfsuite": "1.0"},
    "wapiti_build": "-O3",
}
GRADIENT = "One gradient"


def cost_list(*seconds: float) -> list:
    return [timing.Cost(value, value) for value in seconds]


def stored(directory: Path, *, quick: bool) -> dict:
    """Some records, written and read back."""
    gradient = measurements.Record("gradient", quick, {"repeats": 3}, machine=MACHINE)
    sides = {"sparsecrf": cost_list(0.3, 0.2, 0.25), "Wapiti": cost_list(2.0, 2.5, 3.0)}
    gradient.add("conll2000", "all weights", sides)
    gradient.write(directory / "gradient.json")
    race = measurements.Record("objective", quick, machine=MACHINE)
    what = objective.WHAT
    race.measurements += [
        measurements.Measurement("conll2000", what, "sparsecrf", wall=[9.0], cpu=[9.0]),
        measurements.Measurement(
            "conll2000", what, "Wapiti", wall=[900.0], at_least=True, note="x"
        ),
    ]
    race.write(directory / "objective.json")
    (directory / "objective-conll2000-1.svg").write_text("<svg/>")
    return report.read(directory)


def test_report_is_rendered_from_what_is_stored(tmp_path: Path) -> None:
    text = report.render(stored(tmp_path, quick=False), ["objective-conll2000-1.svg"])
    header = "|  | sparsecrf | Wapiti | CRF++ | Wapiti / ours |"
    row = "| conll2000: all weights | 0.25 s (0.25) | 2.5 s (2.5) | not on PATH | 10.0x |"
    assert f"{header}\n| --- | ---: | ---: | ---: | ---: |\n{row}" in text
    assert "| conll2000: full gradient, Wapiti | 10.0x | 12x | 20x | missed |" in text
    assert "| conll2000: time to 1e-3, Wapiti | > 100x | 15x | 30x | aim reached |" in text
    assert "> 900 s" in text and "Wapiti, 1 thread(s): x." in text
    assert "| nettalk-3grm: full gradient, Wapiti |  | 16x | 25x | not measured |" in text
    assert "](bench/plots/objective-conll2000-1.svg)" in text
    assert "trial" not in text and "Settings: repeats 3." in text


def test_only_full_runs_reach_the_repository(tmp_path: Path) -> None:
    metrics, project = tmp_path / "metrics", tmp_path / "project"
    project.mkdir()
    metrics.mkdir()
    text = report.render(stored(metrics, quick=True), [])
    assert "the figures mean nothing" in text
    report.DOCUMENT.publish(text, metrics, project, is_trial=True)
    assert (metrics / "BENCHMARKS.md").exists() and not list(project.iterdir())
    report.DOCUMENT.publish(text, metrics, project, is_trial=False)
    assert (project / "BENCHMARKS.md").read_text() == text
    assert (project / report.DOCUMENT.plots / "objective-conll2000-1.svg").exists()


def test_ratios_and_verdicts() -> None:
    fast = measurements.Measurement("d", "w", "sparsecrf", wall=[1.0])
    slow = measurements.Measurement("d", "w", "Wapiti", wall=[4.0], at_least=True)
    assert comparison.ratio(fast, slow) == (4.0, True)
    assert comparison.ratio(slow, fast) is None
    assert comparison.ratio(fast, None) is None
    assert targets.verdict(4.0, 5.0, 9.0, bound=True) == "not known"
    assert targets.verdict(4.0, 5.0, 9.0) == "missed"
    assert targets.verdict(6.0, 5.0, 9.0) == "reached"
    assert tables.number(0.0000213) == "0.000021"
    assert tables.number(12345.6) == "12,346"


# What was published before


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """An empty directory of figures, and a project with the report as it is published."""
    metrics, project = tmp_path / "metrics", tmp_path / "project"
    metrics.mkdir()
    project.mkdir()
    shutil.copy(PROJECT / report.DOCUMENT.name, project)
    return metrics, project


def measured_gradient(directory: Path, commit: str = "abcdef0", *, quick: bool = False) -> None:
    """A record of one benchmark, made on another machine."""
    machine = MACHINE | {"date": "2031-01-01", "commit": commit}
    record = measurements.Record("gradient", quick, machine=machine)
    sides = {"sparsecrf": cost_list(0.25), "Wapiti": cost_list(2.0)}
    record.add("conll2000", "all weights", sides)
    record.write(directory / "gradient.json")


def blocks(project: Path) -> dict[str, str]:
    """The sections of the published report, by title; of the introduction, the table."""
    text = (project / report.DOCUMENT.name).read_text(encoding="utf-8")
    parts = text[text.index("| measured on") :].split("\n## ")
    return {part.split("\n", 1)[0]: part.strip() for part in parts}


def test_what_is_published_stays_without_figures(places: tuple[Path, Path]) -> None:
    before = blocks(places[1])
    assert len(before) == len(report.SECTIONS) + 2
    report.main(*places)
    assert blocks(places[1]) == before


def test_a_record_replaces_its_section_and_its_targets(places: tuple[Path, Path]) -> None:
    metrics, project = places
    before = blocks(project)
    measured_gradient(metrics)
    for _ in range(2):
        report.main(metrics, project)
        after = blocks(project)
        assert list(after) == list(before)
        changed = {title for title in after if after[title] != before[title]}
        assert changed == {"| measured on |  |", "Targets", GRADIENT}
        assert "0.25 s (0.25) | 2 s (2)" in after[GRADIENT]
    lines = zip(before["Targets"].splitlines(), after["Targets"].splitlines(), strict=True)
    new = [line for old, line in lines if line != old]
    assert new and all("full gradient" in line or "observed pairs" in line for line in new)
    assert "| conll2000: full gradient, Wapiti | 8.0x | 12x | 20x | missed |" in new


def test_machines_of_kept_sections_stay_in_the_list(places: tuple[Path, Path]) -> None:
    def values(name: str) -> list[str]:
        lines = blocks(project)["| measured on |  |"].splitlines()
        found = [line.split(" | ")[1] for line in lines if line.startswith(f"| {name} |")]
        return found[0].removesuffix(" |").split("; ")

    metrics, project = places
    before = {name: values(name) for name in ("date", "commit", "cores", "Wapiti")}
    measured_gradient(metrics)
    report.main(metrics, project)
    assert values("date") == ["2031-01-01", *before["date"]]
    assert values("commit") == ["abcdef0", *before["commit"]]
    assert values("cores") == before["cores"]
    assert values("Wapiti") == ["Wapiti v1", *before["Wapiti"]]


def test_nothing_stays_of_machines_without_a_section(places: tuple[Path, Path]) -> None:
    metrics, project = places
    (project / report.DOCUMENT.name).unlink()
    for commit in ("abcdef0", "abcdef1"):
        measured_gradient(metrics, commit)
        report.main(metrics, project)
        assert f"| commit | {commit} |" in blocks(project)["| measured on |  |"]


def test_plots_of_kept_sections_stay(places: tuple[Path, Path]) -> None:
    metrics, project = places
    plot = project / report.DOCUMENT.plots / "objective-conll2000-1.svg"
    plot.parent.mkdir(parents=True)
    plot.write_text("published")
    measured_gradient(metrics)
    report.main(metrics, project)
    assert plot.read_text() == "published"
    assert f"]({report.DOCUMENT.plots}/{plot.name})" in (project / report.DOCUMENT.name).read_text()


def test_a_trial_neither_reads_nor_changes_what_is_published(places: tuple[Path, Path]) -> None:
    metrics, project = places
    before = (project / report.DOCUMENT.name).read_bytes()
    measured_gradient(metrics, quick=True)
    report.main(metrics, project)
    assert (project / report.DOCUMENT.name).read_bytes() == before
    trial = (metrics / report.DOCUMENT.name).read_text()
    assert trial.count("\n## ") == 2 and "| commit | abcdef0 |" in trial
    assert "Doc to labels in batches |  | 1 M/s | 1.5 M/s | not measured |" in trial


def test_rows_of_whole_runs_that_are_not_measured_again_stay(tmp_path: Path) -> None:
    whole = importlib.import_module("bench.whole")
    runs = {
        whole.OURS: [whole.Training(30.0, 20.0, 9.0, 500.0, 2.0, {"dev": 94.5, "test": 94.25})],
        whole.SAME: [whole.Training(90.0, 80.0, 3.0, 900.0, 4.0, {"dev": 94.0, "test": 94.0})],
    }
    record = measurements.Record("whole", False, machine=MACHINE)
    whole.add(record, "EWT", runs)
    (section,) = (one for one in report.SECTIONS if one.name == "whole")
    published = str(report.section_of(section, record, []))
    assert "| EWT | sparsecrf | 94.25 | 94.50 | 20 | 30 | 9 | 500 | 2 |  |" in published
    assert (
        "| EWT | CRFsuite, our penalties | 94.00 | 94.00 | 80 | 90 | 3 | 900 | 4 | 4.0x |"
        in published
    )
    again = measurements.Record("whole", False, machine=MACHINE)
    whole.add(again, "EWT", {whole.OURS: [replace(runs[whole.OURS][0], cpu=10.0)]})
    text = str(report.section_of(section, again, [], published))
    assert "| EWT | sparsecrf | 94.25 | 94.50 | 10 | 30 | 9 | 500 | 2 |  |" in text
    assert "| EWT | CRFsuite, our penalties | 94.00 | 94.00 | 80 |" in text
    assert text.count("| EWT |") == 2
