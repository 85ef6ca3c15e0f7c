"""Mutants of functions and of import-time code are killed; unchanged code survives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .toy_data import PROJECT

# The source of the penalty, unchanged, and with a mutation in a function and in a class.
SCRIPT = """
import sys
from pathlib import Path
from reliability.forks import PACKAGE, Mutant, attack

path, method = "penalty.py", "ElasticNet.slope"
source = (PACKAGE / path).read_text()
changes = [("self.l2 * theta", "self.l2 + theta"), ("(frozen=True)", "(init=False)")]
codes = [source, *(source.replace(*change) for change in changes)]
made = [(codes[0], method), (codes[1], method), (codes[0], ""), (codes[2], "")]
made = [Mutant(str(i), path, name, "", "", "", 0, 0, code) for i, (code, name) in enumerate(made)]
names = ["tests/solvers/test_penalty.py"]
tests = {names[0] + "::test_pseudo_gradient_at_zero_points_out_of_the_dead_zone": 0.1}
tests[names[0] + "::test_distance_is_zero_exactly_at_fixed_points_of_prox"] = 0.1
attack(made, {mutant.id: tests for mutant in made}, names, Path(sys.argv[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_mutants_are_killed_and_code_survives(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    subprocess.run([sys.executable, "-c", SCRIPT, str(results)], cwd=PROJECT, check=True)
    rows = {row["id"]: row["result"] for row in map(json.loads, results.read_text().splitlines())}
    assert rows == {"0": "survived", "1": "killed", "2": "survived", "3": "killed"}
