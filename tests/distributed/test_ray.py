"""Ray workers learn the same as workers in this process, also if workers are lost."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_sparsecrf.distributed.ray_engine import Ray
from spacy_sparsecrf.errors import SparseCRFError

from ..support.sharing_cases import SHIPPED, Here, begun, learnt, steps, write_parts

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'spacy-sparsecrf[ray]'")

# Ray relies on the garbage collector to close sockets and processes.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_parts(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Start one cluster for all tests; components in this process use it."""
    settings = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 200_000_000}
    ray.init(address="local", log_to_driver=False, logging_level="ERROR", **settings)
    try:
        yield
    finally:
        ray.shutdown()


@pytest.fixture(scope="module")
def expected(folder) -> bytes:
    _, pipe = begun(folder, Here(num_workers=2), **SHIPPED)
    steps(pipe)
    return learnt(pipe)


def test_two_workers_learn_the_same_though_both_are_lost(folder, expected, caplog):
    caplog.set_level("DEBUG", "spacy")
    _, pipe = begun(folder, Ray(num_workers=2), **SHIPPED)
    team = pipe._state.record.pool
    for i in (0, 1):
        pipe.update([], sgd=object())
        ray.kill(team._actors[i])
    steps(pipe, 1)
    assert learnt(pipe) == expected
    assert "worker 1 was lost and is replaced" in caplog.text
    team.close()


def test_workers_that_are_lost_too_often_end_the_run(folder):
    _, pipe = begun(folder, Ray(num_workers=1, max_restarts=0))
    team = pipe._state.record.pool
    ray.kill(team._actors[0])
    with pytest.raises(SparseCRFError, match="SC907"):
        pipe.update([])
    team.close()


def test_errors_of_workers_are_told_as_our_own(folder):
    with pytest.raises(SparseCRFError, match="SC206"):
        begun(folder, Ray(num_workers=2), {"labels": ["NN"]})


def test_more_cores_than_there_are_are_refused(folder, monkeypatch):
    monkeypatch.setattr("spacy_sparsecrf.distributed.ray_pool._PATIENCE", 0.1)
    with pytest.raises(SparseCRFError, match=r"SC910.*num_workers = 3"):
        begun(folder, Ray(num_workers=3))


def test_a_cluster_that_is_not_there_is_told(folder, monkeypatch):
    monkeypatch.setattr("ray.is_initialized", lambda: False)

    def fail(**settings: object) -> None:
        raise ConnectionError("no one answers")

    monkeypatch.setattr("ray.init", fail)
    with pytest.raises(SparseCRFError, match=r"SC909.*no one answers"):
        begun(folder, Ray(address="ray://nowhere:10001"))


SCRIPT = """
import sys
import spacy

nlp = spacy.blank("xx")
nlp.config["corpora"]["train"]["path"] = sys.argv[1]
engine = {"@crf_engines": "spacy_sparsecrf.Ray.v1", "num_workers": 3}
nlp.add_pipe("sparse_crf", config={"engine": engine, "solver": {"inner_iterations": 4}})
nlp.initialize()
pipe = nlp.get_pipe("sparse_crf")
print([pipe.update([], sgd=object())["sparse_crf"] for _ in range(2)])
"""


def test_workers_are_few_or_many_for_one_shard_and_the_process_ends_in_order(folder):
    shard = str(folder / "part-0.spacy")
    _, pipe = begun(folder, Ray(num_workers=1), {"shards": [shard]})
    of_few = steps(pipe, 2)
    pipe._state.record.pool.close()
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, shard]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and "Traceback" not in ended.stderr, ended.stderr
    for losses in of_few, json.loads(ended.stdout):
        assert losses == sorted(losses, reverse=True) and len(losses) == 2
