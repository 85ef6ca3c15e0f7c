"""What the tables, the goals and the plot show of an experiment; and what the project keeps."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import srsly
from reports.records import Stored, read_lines, read_records, without_trials, write_lines

from .experiments import EXPERIMENTS

KEPT = "lavergne/figures.jsonl"
KEPT_EVALUATIONS = "lavergne/evaluations.json"


@dataclass(frozen=True)
class Figures:
    """The figures of an experiment; None where one is not known.

    name: of the experiment; processor, date: of the run; dev, test: percentages of wrong labels of
    these parts, and *_part of wrong parts of labels, at the stop; best_*: the same of the weights
    after best_iteration, the outer iteration, from 1, with the lowest error of the development
    part; polished: error of the test part after polish_iterations of L-BFGS; iterations, passes:
    until the stop; objective, learnt: the last value, and the active weights that training had;
    active, admitted, potential: weights of the model, those it could have, those of all tests;
    cpu: seconds; cut: whether a limit ended the run.
    """

    name: str
    processor: str
    date: str
    test: float
    dev: float | None = None
    test_part: float | None = None
    dev_part: float | None = None
    best_test: float | None = None
    best_dev: float | None = None
    best_test_part: float | None = None
    best_iteration: int | None = None
    polished: float | None = None
    polish_iterations: int | None = None
    iterations: int | None = None
    passes: float | None = None
    objective: float | None = None
    learnt: int | None = None
    active: int | None = None
    admitted: int | None = None
    potential: int | None = None
    labels: int | None = None
    cpu: float | None = None
    peak_mb: float | None = None
    cut: bool | None = None

    @classmethod
    def of(cls, record: Stored) -> "Figures":
        """Sum up the record of a run."""
        course, errors, best = record["course"], record["errors"], record["best"]
        polished, polish_iterations = _polished(record)
        return cls(
            name=record["experiment"]["name"],
            processor=record["machine"]["processor"],
            date=record["machine"]["date"],
            **{part: errors[part] for part in ("test", "dev", "test_part", "dev_part")},
            **{f"best_{part}": best[part] for part in ("test", "dev", "test_part")},
            best_iteration=course["dev"].index(min(course["dev"])) + 1,
            polished=polished,
            polish_iterations=polish_iterations,
            iterations=len(course["dev"]),
            passes=float(sum(course["passes"])),
            objective=course["objective"][-1],
            learnt=course["n_active"][-1],
            admitted=_admitted(record),
            **{one: record[one] for one in ("active", "potential", "labels", "cpu", "peak_mb")},
            cut=course["ended"] in ("cap", "iterations"),
        )


def _polished(record: Stored) -> tuple[float | None, int | None]:
    """Error after L-BFGS on the active weights, and its iterations: those that are best on the
    development part.
    """
    tried = record["polished"]
    if not tried:
        return None, None
    best = min(tried, key=lambda n: (tried[n]["dev"], int(n)))
    return tried[best]["test"], int(best)


def _admitted(record: Stored) -> int:
    """Weights that training could have: of the last stage, of pairs that occur, or all."""
    stages = record["course"]["stages"]
    if stages:
        return int(stages[-1]["admitted"][1])
    return int(record["allowed" if record["experiment"]["observed_only"] else "potential"])


def read_runs(directory: Path) -> dict[str, Stored]:
    """The experiments that were run here, by name: trials only where there is nothing else."""
    return without_trials(read_records(directory, [one.name for one in EXPERIMENTS]))


def read_evaluations(path: Path, trial: bool) -> Stored:
    """What was timed for table 2; empty where it was not, or is of a trial beside real figures."""
    found = read_records(path.parent, [path.stem]).get(path.stem, {})
    return found if found and found["quick"] == trial else {}


def read_kept(project: Path) -> dict[str, Figures]:
    """The figures that the project keeps, by name."""
    return {line["name"]: Figures(**line) for line in read_lines(project / KEPT)}


def in_order(figures: Mapping[str, Figures]) -> dict[str, Figures]:
    """Figures in the order of `EXPERIMENTS`, without those of experiments that are gone."""
    return {one.name: figures[one.name] for one in EXPERIMENTS if one.name in figures}


def keep(figures: Mapping[str, Figures], evaluations: Stored, project: Path) -> None:
    """Write the figures that the project keeps, a line an experiment, and those of table 2."""
    write_lines(project / KEPT, figures.values())
    if evaluations:
        srsly.write_json(project / KEPT_EVALUATIONS, dict(evaluations))
