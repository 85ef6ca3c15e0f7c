"""From measurement to table: child processes, rows of results, races, tables, plots, documents."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
# Configs that come with the package.
CONFIGS = PROJECT.parent / "configs"
