"""Commands of `tests/attacks`, whose bounded runs are tests: `python -m reliability.attacks`.

`fuzz` mutates files and inputs at random, and `guided` by branch coverage; `load` runs large
inputs, `faults` failing system calls; `kills` and `cluster` kill runs and workers.
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
