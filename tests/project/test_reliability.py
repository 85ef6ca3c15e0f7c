"""The commands that try faults and mutated files."""

import importlib
import shutil
import sys

import pytest

faults = importlib.import_module("reliability.faults")

needs_gcc = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="needs gcc, on Linux"
)


@needs_gcc
@pytest.mark.parametrize(
    "scenario",
    [
        "saving over another",
        pytest.param("training", marks=pytest.mark.slow),
        pytest.param("training that goes on", marks=pytest.mark.slow),
    ],
)
def test_a_fault_at_any_call_does_no_harm(scenario: str) -> None:
    found = faults.preloaded("--scenario", scenario)[scenario]
    assert {"write", "fsync", "rename", "link", "mkdir"} <= set(found)
    assert not [result for result in found if result.startswith("harm")]
