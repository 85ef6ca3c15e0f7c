"""The benchmarks' view of peers' processes: what they say, how long they take."""

import importlib
import sys
from collections.abc import Callable

import pytest

agreement = importlib.import_module("bench.agreement")
crfpp = importlib.import_module("bench.crfpp")
crfsuite = importlib.import_module("bench.crfsuite")
follow = importlib.import_module("bench.follow")
objective = importlib.import_module("bench.objective")
timing = importlib.import_module("bench.timing")
wapiti = importlib.import_module("bench.wapiti")


# What peers say


def test_wapiti_lines() -> None:
    line = "  [  12] obj=11570.25   act=40311    err= 1.03%/14.81% time=1.93s/23.16s\n"
    assert wapiti.read(line) == follow.Progress(objective=11570.25, n_active=40311)
    line = "  [   1] obj=NA act=7        err=50.00%/100.00% time=0.00s/0.00s\n"
    assert wapiti.read(line) == follow.Progress(objective=None, n_active=7)
    assert wapiti.read("* Train the model with l-bfgs\n") == follow.Progress(begins=True)
    assert wapiti.read("* Save the model\n") is None
    assert wapiti.read_weights("    nb features: 7448606\n") == 7448606
    assert wapiti.read_weights("    nb labels:   22\n") is None


def test_lines_of_the_others() -> None:
    line = "iter=3 terr=0.1 serr=0.9 act=553537 obj=10.50000 diff=0.2\n"
    assert crfpp.read(line) == follow.Progress(objective=10.5, n_active=553537)
    assert crfpp.read("shrinking size:      20\n") == follow.Progress(begins=True)
    assert crfpp.read_weights("Number of features:  553537\n") == 553537
    assert crfsuite.read("BEGIN\n") == follow.Progress(begins=True)
    line = "ITERATION 2 objective 7.25 active 9\n"
    assert crfsuite.read(line) == follow.Progress(objective=7.25, n_active=9)
    assert crfsuite.read_weights("WEIGHTS 41523\n") == 41523


FAKE = """
import sys, time
print("WEIGHTS 5", flush=True)
print("BEGIN", flush=True)
for i in range({n}):
    print(f"ITERATION {{i}} objective {{10 - i}} active 3", flush=True)
    time.sleep({pause})
sys.exit({code})
"""


def fake(n: int, pause: float = 0.0, code: int = 0, **limits: float):
    script = FAKE.format(n=n, pause=pause, code=code)
    command = [sys.executable, "-c", script]
    return follow.follow(command, crfsuite.read, crfsuite.read_weights, **limits)


def test_peer_is_followed_to_its_end() -> None:
    run = fake(4)
    assert run.n_weights == 5 and not run.cut and run.peak_mb > 1
    assert [point.objective for point in run.points] == [10, 9, 8, 7]
    walls = [point.wall for point in run.points]
    assert walls == sorted(walls) and len(run.iteration_walls) == 3
    assert run.reached(8.5) is run.points[2]
    assert run.reached(1.0) is None
    assert objective.lowest(run) == 7


def test_peer_is_stopped_at_its_goal_or_at_the_cap() -> None:
    run = fake(100, 0.02, stop_at=8.0)
    assert run.cut and len(run.points) == 3
    run = fake(2, 60.0, cap=0.2)
    assert run.cut and len(run.points) == 1


def test_failure_of_a_peer_is_told() -> None:
    with pytest.raises(timing.subprocess.CalledProcessError):
        fake(1, code=3)


# Timing


def test_sides_alternate() -> None:
    calls = []

    def side(name: str) -> Callable[[], str]:
        def run() -> str:
            calls.append(name)
            return name

        return run

    results = timing.alternate(2, {"a": side("a"), "b": side("b")})
    assert calls == ["a", "b", "a", "b"]
    assert results == {"a": ["a", "a"], "b": ["b", "b"]}


def test_process_is_measured() -> None:
    cost = timing.run_process(
        [sys.executable, "-c", "import os; print(os.environ.get('A'), os.environ.get('PATH'))"],
        {"A": "1", "PATH": ""},
    )
    assert cost.output.strip() == "1 None"
    assert cost.wall > 0 and cost.peak_mb > 1


def test_another_problem_is_refused() -> None:
    same = {"potential_weights": 3, "its_weights": 3, "objective": 10.0, "its_objective": 10.0001}
    assert agreement.check(same, "peer") is same
    for wrong in ({"its_weights": 4}, {"its_objective": 10.1}):
        with pytest.raises(ValueError, match="peer solves another problem"):
            agreement.check({**same, **wrong}, "peer")
