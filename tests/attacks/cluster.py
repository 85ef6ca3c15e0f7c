"""Runs of `spacy train` on a cluster give the same bytes as threads, despite killed processes.

    cd project
    python -m reliability.attacks cluster --data $SPARSECRF_DATA --kills 20 --drivers 5

Uses a Ray cluster of three nodes on this machine. `model-best` and `model-last` are compared byte
by byte with those of threads: for runs on made-up sentences whose workers are killed (`kill -9`)
at random times; for runs whose driver is killed, and which are restarted; and for runs on data
sets with different numbers of workers.
"""

import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from measure.data import Data
from measure.results import Results
from measure.runs import ENDS, SETS, THREADS, TOY, Run, models_of, ray_engine, write_set
from wasabi import msg

from .kills import write_toy_docs

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

_NODES, _CPUS = 3, 2
_TOY_STEPS, _TOY_WORKERS, _KILLS_A_RUN = 12, 3, 4
_WAIT = 60.0
_N_TOY, _N_DEV = 1_200, 200


def write_toy(folder: Path) -> None:
    """Write made-up tagged sentences in several parts."""
    folder.mkdir(parents=True)
    n_parts = len(ENDS) - 1
    for i in range(n_parts):
        write_toy_docs(folder / f"part-{i}.spacy", _N_TOY // n_parts * (1 + i % 2), i)
    write_toy_docs(folder / "dev.spacy", _N_DEV, n_parts)


def make_cluster() -> "Cluster":
    """Start a local cluster of several nodes, with enough cores for all workers."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": _CPUS, "object_store_memory": 200_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    for _ in range(_NODES - 1):
        cluster.add_node(**node)
    cluster.wait_for_nodes()
    return cluster


def workers_of(cluster: "Cluster") -> list[int]:
    """Return the process ids of this cluster's workers: children of its own nodes."""
    nodes = [
        info.process.pid
        for node in cluster.list_all_nodes()
        for info in node.all_processes["raylet"]
    ]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            title = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if parent in nodes and title.startswith(b"ray::") and b"Actor" in title:
            found.append(int(folder.name))
    return sorted(found)


def kill_one(cluster: "Cluster", rng: random.Random) -> bool:
    """Kill a random worker. RETURNS: whether there was a worker."""
    found = workers_of(cluster)
    if found:
        os.kill(rng.choice(found), signal.SIGKILL)
    return bool(found)


def same_bytes(base: Path, cluster: "Cluster", run: Run) -> dict[str, Any]:
    """Train with threads and with workers, and compare. RETURNS: figures."""
    expected = dict[str, bytes]()
    different, seconds = 0, {}
    for n in (0, 1, 2, 3, 5):
        folder, since = base / f"{run.name}-{n}", time.monotonic()
        files = run.finish(folder, ray_engine(cluster.address, n) if n else THREADS)
        seconds[str(n)] = round(time.monotonic() - since, 1)
        expected = expected or files
        different += files != expected
    return {"different": different, "bytes": sum(map(len, expected.values())), "seconds": seconds}


def kill_workers(
    base: Path, cluster: "Cluster", toy: Path, kills: int, rng: random.Random
) -> dict[str, int]:
    """Kill workers of runs on made-up sentences. RETURNS: runs, kills, and runs that differ."""
    run = Run(toy, TOY, _TOY_STEPS)
    expected = run.finish(base / TOY, THREADS)
    found = {"runs": 0, "kills": 0, "different": 0}
    while found["kills"] < kills:
        folder, n = base / f"toy-workers-{found['runs']}", 0
        child = run.start(folder, ray_engine(cluster.address, _TOY_WORKERS))
        while child.running():
            time.sleep(rng.uniform(0.5, 4.0))
            if n < _KILLS_A_RUN and found["kills"] + n < kills:
                n += kill_one(cluster, rng)
        child.wait()
        found["kills"] += n
        found["runs"] += 1
        found["different"] += models_of(folder) != expected
    return found


def kill_drivers(
    base: Path, cluster: "Cluster", toy: Path, kills: int, rng: random.Random
) -> dict[str, int]:
    """Kill runs after a checkpoint, and restart them. RETURNS: as `kill_workers`."""
    found = {"runs": 0, "kills": 0, "different": 0}
    checkpoint = {"checkpoint": str(base / "whole-checkpoint")}
    expected = Run(toy, TOY, _TOY_STEPS, {}, checkpoint).finish(base / "toy-whole", THREADS)
    while found["kills"] < kills:
        folder = base / f"toy-driver-{found['runs']}"
        place = folder / "run"
        run = Run(toy, TOY, _TOY_STEPS, {}, {"checkpoint": str(place)})
        child = run.start(folder, ray_engine(cluster.address, _TOY_WORKERS))
        while not place.exists() and child.running():
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 1.0))
        found["kills"] += child.running()
        child.kill()
        engine = ray_engine(cluster.address, 1 + found["runs"] % _TOY_WORKERS)
        found["different"] += run.finish(folder, engine) != expected
        found["runs"] += 1
    return found


def main(
    data: Data = "",
    steps: Annotated[int, typer.Option(help="Outer iterations of the runs on data sets")] = 4,
    sentences: Annotated[int, typer.Option(help="Of each data set; 0: all")] = 0,
    kills: Annotated[int, typer.Option(help="Of workers")] = 20,
    drivers: Annotated[int, typer.Option(help="Kills of the run's own process")] = 5,
    seed: Annotated[int, typer.Option(help="Of the times")] = 0,
    output: Annotated[Path, typer.Option(help="Figures")] = Path(
        "metrics/reliability/cluster.jsonl"
    ),
) -> None:
    """Share runs by a cluster, kill processes, and compare models."""
    rng, cluster = random.Random(seed), make_cluster()
    results = Results(output, settings={"seed": seed, "steps": steps}, keep="none")
    try:
        with tempfile.TemporaryDirectory(prefix="sparsecrf-cluster-") as name:
            base, toy = Path(name), Path(name) / "corpora" / TOY
            write_toy(toy)
            results.add("workers", **kill_workers(base, cluster, toy, kills, rng))
            results.add("drivers", **kill_drivers(base, cluster, toy, drivers, rng))
            for each in SETS:
                corpus = base / "corpora" / each
                write_set(corpus, each, data, sentences)
                results.add(each, **same_bytes(base, cluster, Run(corpus, each, steps)))
    finally:
        cluster.shutdown()
    if any(row["different"] for row in results.rows.values()):
        msg.fail("Runs end differently", exits=1)
