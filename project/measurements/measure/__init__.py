"""Tools from measurement to report: child processes, rows, races, tables, plots, documents."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
# The repository, and configs shipped with the package.
ROOT = PROJECT.parents[1]
CONFIGS = ROOT / "configs"
