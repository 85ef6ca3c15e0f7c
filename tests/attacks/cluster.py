"""Runs of `spacy train` that a cluster shares: the bytes of threads, whatever is killed.

    python -m reliability.cluster $SPARSECRF_DATA --kills 20 --drivers 5

On a Ray cluster of three nodes on this machine. What is compared, byte for byte, are `model-best`
and `model-last`: of runs on made-up sentences whose workers are killed (`kill -9`) at random times,
and of runs whose own process is, and which are started again, with those of threads; of runs on
corpora by threads, and by some numbers of workers; and the files that `annotate` writes where a
worker is killed.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.cluster_utils import Cluster
from wasabi import msg

from .figures import write_figures
from .shared_runs import (
    CORPORA,
    THREADS,
    config_of,
    ended,
    ray_engine,
    start,
    write_docs,
    write_toy,
)

_NODES, _CPUS = 3, 2
_TOY_STEPS, _TOY_WORKERS, _KILLS_A_RUN = 12, 3, 4
_WAIT = 60.0
_N_ANNOTATED = 12


def make_cluster() -> Cluster:
    """A cluster of some nodes on this machine, with room for as many workers as are tried."""
    node = {"num_cpus": _CPUS, "object_store_memory": 200_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    for _ in range(_NODES - 1):
        cluster.add_node(**node)
    cluster.wait_for_nodes()
    return cluster


def workers_of(cluster: Cluster) -> list[int]:
    """The processes of this cluster that hold a member of a team: children of its own nodes."""
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


def kill_one(cluster: Cluster, rng: random.Random) -> bool:
    """Kill a random worker. RETURNS: whether there was one."""
    found = workers_of(cluster)
    if found:
        os.kill(rng.choice(found), signal.SIGKILL)
    return bool(found)


def same_bytes(
    base: Path, cluster: Cluster, directories: list[str], steps: int, sentences: int
) -> dict[str, Any]:
    """Train on each corpus by threads and by workers, and compare. RETURNS: figures by corpus."""
    found: dict[str, Any] = {}
    for name in CORPORA:
        corpus = base / "corpora" / name
        write_docs(corpus, name, directories, sentences)
        config, expected = config_of(corpus, name, steps), None
        found[name] = {"different": [], "seconds": {}}
        for n in (0, 1, 2, 3, 5):
            folder, since = base / f"{name}-{n}", time.monotonic()
            engine = ray_engine(cluster.address, n) if n else THREADS
            files = ended(start(config, folder, engine), folder)
            found[name]["seconds"][n] = round(time.monotonic() - since, 1)
            expected = expected or files
            if files != expected:
                found[name]["different"].append(n)
        found[name]["bytes"] = sum(map(len, expected.values())) if expected else 0
        msg.text(f"{name}: {found[name]}")
    return found


def kill_workers(base: Path, cluster: Cluster, kills: int, rng: random.Random) -> dict[str, int]:
    """Kill workers of runs on made-up sentences. RETURNS: runs, kills, and runs that differ."""
    config = config_of(base / "corpora" / "toy", "", _TOY_STEPS)
    expected = ended(start(config, base / "toy", THREADS), base / "toy")
    found = {"runs": 0, "kills": 0, "different": 0}
    while found["kills"] < kills:
        folder = base / f"toy-workers-{found['runs']}"
        process = start(config, folder, ray_engine(cluster.address, _TOY_WORKERS))
        n = 0
        while process.poll() is None:
            time.sleep(rng.uniform(0.5, 4.0))
            if n < _KILLS_A_RUN and found["kills"] + n < kills:
                n += kill_one(cluster, rng)
        found["kills"] += n
        found["runs"] += 1
        found["different"] += ended(process, folder) != expected
    return found


def kill_drivers(base: Path, cluster: Cluster, kills: int, rng: random.Random) -> dict[str, int]:
    """Kill runs after a checkpoint, and start them again. RETURNS: as `kill_workers`."""
    found = {"runs": 0, "kills": 0, "different": 0}
    expected: dict[str, bytes] = {}
    while found["kills"] < kills:
        folder = base / f"toy-driver-{found['runs']}"
        run = folder / "run"
        config = config_of(base / "corpora" / "toy", "", _TOY_STEPS, checkpoint=str(run))
        if not expected:
            expected = ended(start(config, base / "toy-whole", THREADS), base / "toy-whole")
            shutil.rmtree(folder)
        process = start(config, folder, ray_engine(cluster.address, _TOY_WORKERS))
        while not run.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 1.0))
        found["kills"] += process.poll() is None
        process.kill()
        process.wait()
        again = ray_engine(cluster.address, 1 + found["runs"] % _TOY_WORKERS)
        found["different"] += ended(start(config, folder, again), folder) != expected
        found["runs"] += 1
    return found


def kill_annotation(base: Path, cluster: Cluster, rng: random.Random) -> dict[str, int]:
    """Annotate files by workers, of which one is killed, and by processes. RETURNS: figures."""
    texts = base / "texts"
    texts.mkdir()
    for i in range(_N_ANNOTATED):
        shutil.copy(base / "corpora" / "toy" / "part-1.spacy", texts / f"text-{i}.spacy")
    given = ["annotate", str(base / "toy" / "output" / "model-last"), str(texts), "-o"]
    command = [sys.executable, "-m", "spacy_sparsecrf", *given]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*command, str(base / "here")], check=True, **quiet)
    ray = ["--engine", "ray", "--workers", "2", "--address", cluster.address]
    process = subprocess.Popen([*command, str(base / "there"), *ray], **quiet)
    kills, end = 0, time.monotonic() + _WAIT
    while not kills and process.poll() is None and time.monotonic() < end:
        if any((base / "there").glob("*.spacy")):
            kills += kill_one(cluster, rng)
        time.sleep(0.01)
    code = process.wait()
    files = [
        {path.name: path.read_bytes() for path in sorted((base / way).glob("*"))}
        for way in ("here", "there")
    ]
    return {
        "files": len(files[0]),
        "kills": kills,
        "code": code,
        "different": int(files[0] != files[1]),
    }


def main(
    directories: Annotated[list[str], typer.Argument(help="Directories of the data, in order")],
    steps: Annotated[int, typer.Option(help="Outer iterations of the runs on corpora")] = 4,
    sentences: Annotated[int, typer.Option(help="Of each corpus; 0: all")] = 0,
    kills: Annotated[int, typer.Option(help="Of workers")] = 20,
    drivers: Annotated[int, typer.Option(help="Kills of the run's own process")] = 5,
    seed: Annotated[int, typer.Option(help="Of the times")] = 0,
    output: Annotated[Path | None, typer.Option(help="JSON of the figures")] = None,
) -> None:
    """Share runs by a cluster, kill processes, and compare what is left."""
    rng, cluster = random.Random(seed), make_cluster()
    try:
        with tempfile.TemporaryDirectory(prefix="sparsecrf-cluster-") as name:
            base = Path(name)
            write_toy(base / "corpora" / "toy")
            found: dict[str, Any] = {"workers": kill_workers(base, cluster, kills, rng)}
            msg.text(f"workers killed: {found['workers']}")
            found["drivers"] = kill_drivers(base, cluster, drivers, rng)
            msg.text(f"runs killed: {found['drivers']}")
            found["annotate"] = kill_annotation(base, cluster, rng)
            msg.text(f"annotate: {found['annotate']}")
            found |= same_bytes(base, cluster, directories, steps, sentences)
    finally:
        cluster.shutdown()
    write_figures(output, found)
    if any(own["different"] for own in found.values()):
        msg.fail("Runs end otherwise", exits=1)


if __name__ == "__main__":
    typer.run(main)
