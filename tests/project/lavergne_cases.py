"""Made-up runs of the experiments after Lavergne et al. (2010)."""

import importlib
from dataclasses import asdict, replace
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "project"

experiments = importlib.import_module("lavergne.experiments")
figures = importlib.import_module("lavergne.figures")

MACHINE = {"processor": "p", "date": "d", "commit": "c"}


def record_of(name: str, **changes) -> dict:
    """A record of made-up figures."""
    errors = {"dev": 8.0, "dev_part": 8.0, "test": 8.1, "test_part": 7.8}
    return {
        "quick": False,
        "experiment": asdict(experiments.by_name(name)),
        "labels": 51,
        "potential": 2_000_000,
        "allowed": 50_000,
        "active": 30_000,
        "errors": errors,
        "best": {**errors, "test": 7.7},
        "cpu": 120.0,
        "peak_mb": 700.0,
        "polished": {"5": {**errors, "dev": 9.0}, "10": {**errors, "test": 6.5}},
        "course": {
            "dev": [9.0, 7.5, 8.0],
            "objective": [300.0, 250.0, 245.0],
            "passes": [16.0, 10.5, 10.0],
            "n_active": [28_000, 26_000, 25_000],
            "stages": [],
            "ended": "",
        },
        "machine": MACHINE,
        **changes,
    }


def figures_of(name: str, **changes):
    """What the report shows of a record of made-up figures."""
    return replace(figures.Figures.of(record_of(name)), **changes)
