"""Tools from measurement to report: child processes, rows, races, tables, plots, documents."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
# Configs shipped with the package.
CONFIGS = PROJECT.parent / "configs"
