"""Bounded runs of the harnesses: fuzzers, load, faults and kills."""

import shutil
import sys
from pathlib import Path

import pytest

from . import faults, fuzz, inputs, kills, load

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
    found = faults.preloaded(scenario)
    assert {"write", "fsync", "rename", "link", "mkdir"} <= set(found)
    assert not [result for result in found if result.startswith("harm")]


@needs_gcc
@pytest.mark.slow
def test_refused_memory_does_no_harm() -> None:
    # Libraries that do not check allocations end the process; a second attempt succeeds.
    found = faults.preloaded("training", 16_384)
    assert found["allocation"] > 10
    assert not [result for result in found if result.startswith("harm")]


@pytest.mark.slow
def test_files_are_tried_with_bounds_checked() -> None:
    child = fuzz.Child()
    try:
        for kind in ("model", "names"):
            found = child.fuzz(kind, 7, 500)
            assert sum(found.values()) == 500
            assert not [result for result in found if result.startswith(("uncoded", "crashed"))]
    finally:
        child.close()


@pytest.mark.filterwarnings("ignore:.*SCW")
def test_docs_of_any_characters_are_accepted() -> None:
    assert fuzz.fuzz("docs", 7, 100) == {"accepted": 100}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", inputs.TARGETS)
def test_inputs_that_reach_other_branches_are_accepted_or_refused_with_a_code(kind: str) -> None:
    given = inputs.Inputs(kind)
    found = [fuzz.attempt(given.kind, *given.of(data)) for data in inputs.kept(kind)]
    assert found and not [result for result in found if result.startswith("uncoded")]


@pytest.mark.filterwarnings("ignore:.*SCW")
def test_load_changes_no_label_and_takes_little_memory() -> None:
    load.threads(load.pipeline(), 4_000)
    if sys.platform == "linux":
        assert load.stream(load.pipeline(), 20_000) < 100.0
        assert load.replay(load.pipeline(), 4_000) < load.MOST_REPLAY_MB


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_files(tmp_path: Path) -> None:
    kills.main(kills=3, seed=5, minutes=10.0, only="OWLQN", output=tmp_path / "kills.jsonl")
    assert '"different": 0' in (tmp_path / "kills.jsonl").read_text().replace(":0", ": 0")
