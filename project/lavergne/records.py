"""The stored figures of experiments, as the tables want them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import srsly
from bench.tables import number

from .experiments import EXPERIMENTS

Record = Mapping[str, Any]


def read_records(directory: Path) -> dict[str, Record]:
    """The experiments that were run, by name, in the order of `EXPERIMENTS`: trials only where
    there is nothing else.
    """
    paths = {one.name: directory / f"{one.name}.json" for one in EXPERIMENTS}
    found = {name: srsly.read_json(path) for name, path in paths.items() if path.exists()}
    return {name: record for name, record in found.items() if not record["quick"]} or found


def percent(value: float | None) -> str:
    """An error rate."""
    return "" if value is None else f"{value:.2f}"


def polished(record: Record, key: str = "test") -> tuple[float, int] | None:
    """Error after L-BFGS on the active weights, and its iterations: those that are best on the
    development part. None where that was not tried.
    """
    tried = record["polished"]
    if not tried:
        return None
    best = min(tried, key=lambda n: (tried[n]["dev"], int(n)))
    return tried[best][key], int(best)


def polished_cell(record: Record) -> str:
    """`polished` as a cell."""
    found = polished(record)
    return "" if found is None else f"{found[0]:.2f} ({found[1]})"


def count(value: float) -> str:
    """How many weights: millions and more rounded, as potential weights are only compared."""
    for unit, name in ((1e9, "G"), (1e6, "M")):
        if value >= unit:
            return f"{number(value / unit)} {name}"
    return f"{value:,.0f}"


def iterations(record: Record) -> int:
    """Outer iterations until the stop."""
    return len(record["course"]["dev"])


def lowest_iteration(record: Record) -> int:
    """The outer iteration, from 1, with the lowest error of the development part."""
    errors: list[float] = record["course"]["dev"]
    return errors.index(min(errors)) + 1


def passes(record: Record) -> float:
    """Evaluations of all sequences until the stop."""
    return float(sum(record["course"]["passes"]))


def admitted(record: Record) -> int:
    """Weights that training could have: of the last stage, of pairs that occur, or all."""
    stages = record["course"]["stages"]
    if stages:
        return int(stages[-1]["admitted"][1])
    return int(record["allowed" if record["experiment"]["observed_only"] else "potential"])


def ending(record: Record) -> str:
    """A mark where a run was cut."""
    return "*" if record["course"]["ended"] in ("cap", "iterations") else ""
