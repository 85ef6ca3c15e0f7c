"""The commands of `tests/attacks`, whose bounded runs are tests: `python -m reliability.attacks`.

`fuzz` tries mutated files and inputs, `guided` those that reach new branches, `load` much of
everything, `faults` faults of the system, `kills` and `cluster` kill runs and workers.
"""

import importlib
import sys
from pathlib import Path

import typer

sys.path.append(str(Path(__file__).resolve().parents[2]))
app = typer.Typer()
for name in ("fuzz", "guided", "load", "faults", "kills", "cluster"):
    app.command(name)(importlib.import_module(f"tests.attacks.{name}").main)

if __name__ == "__main__":
    app()
