"""Where figures are stored: those of runs that were made here, and those that the project keeps."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import srsly

from .experiments import EXPERIMENTS
from .figures import Figures, Record

KEPT = "lavergne/figures.jsonl"
KEPT_EVALUATIONS = "lavergne/evaluations.json"


def read_records(directory: Path) -> dict[str, Record]:
    """The experiments that were run here, by name: trials only where there is nothing else."""
    paths = {one.name: directory / f"{one.name}.json" for one in EXPERIMENTS}
    found = {name: srsly.read_json(path) for name, path in paths.items() if path.exists()}
    return {name: record for name, record in found.items() if not record["quick"]} or found


def read_evaluations(path: Path, is_trial: bool) -> Record:
    """What was timed for table 2; empty where it was not, or is of a trial beside real figures."""
    found: Record = srsly.read_json(path) if path.exists() else {}
    return found if found and found["quick"] == is_trial else {}


def read_kept(project: Path) -> dict[str, Figures]:
    """The figures that the project keeps, by name."""
    path = project / KEPT
    lines = srsly.read_jsonl(path) if path.exists() else ()
    return {line["name"]: Figures(**line) for line in lines}


def in_order(figures: Mapping[str, Figures]) -> dict[str, Figures]:
    """Figures in the order of `EXPERIMENTS`, without those of experiments that are gone."""
    return {one.name: figures[one.name] for one in EXPERIMENTS if one.name in figures}


def keep(figures: Mapping[str, Figures], evaluations: Record, project: Path) -> None:
    """Write the figures that the project keeps, a line an experiment, and those of table 2."""
    path = project / KEPT
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [asdict(one).items() for one in figures.values()]
    srsly.write_jsonl(path, [{key: v for key, v in line if v is not None} for line in lines])
    if evaluations:
        srsly.write_json(project / KEPT_EVALUATIONS, evaluations)
