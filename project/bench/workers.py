"""Benchmark: what two workers of a cluster take beside two threads, and what they send.

An outer iteration of the same run by threads in one process, by threads over a corpus in shards,
and by workers of a Ray cluster on this machine, in turn; then the bytes of one by workers.
"""

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from reliability.shared_runs import THREADS, Engine, config_of, ray_engine, write_docs
from spacy.training.initialize import init_nlp

from .measurements import Record
from .options import Output, Quick, Repeats
from .timing import Cost, alternate, measured

_DATA = "nettalk-3grm"
_N = 2
_STEPS = 8
WHOLE, SHARDS, WORKERS = "2 threads", "2 threads, shards", "2 workers"


def component(corpus: Path, engine: Engine, whole: Path | None = None) -> Any:
    """A component that has read a corpus, and has made its first step; whole: it in one folder."""
    config = config_of(corpus, _DATA, _STEPS)
    pipe = config["components"]["sparse_crf"]
    pipe["n_threads"] = _N
    if engine:
        pipe["engine"] = engine
    if whole is not None:
        config["paths"]["train"] = str(whole)
        config["initialize"]["components"]["sparse_crf"].pop("shards")
    made = init_nlp(config).get_pipe("sparse_crf")
    made.update([], sgd=object())
    return made


def step(pipe: Any) -> Cost:
    """What an outer iteration takes."""
    with measured() as cost:
        pipe.update([], sgd=object())
    return cost


class Counted:
    """A team whose messages are counted. sizes: bytes of what is sent to all, and told; by method.

    evaluations: of the tree, each with the numbers that it would send without any overhead.
    """

    def __init__(self, team: Any) -> None:
        self._ask, self._share = team.ask, team.share
        self.sizes, self.least = Counter[str](), 0
        team.ask, team.share = self.ask, self.share

    def share(self, value: Any) -> Any:
        """See `Team.share`."""
        self.sizes["sent once"] += len(pickle.dumps(value))
        return self._share(value)

    def ask(self, method: str, each: Sequence[Any], *, keep: bool = False) -> list[Any]:
        """See `Team.ask`."""
        told: list[Any] = self._ask(method, each, keep=keep)
        self.sizes[f"told: {method}"] += sum(len(pickle.dumps(found)) for found in told)
        if method in ("evaluate", "curvature", "gradient"):
            self.least += sum(8 * len(own) for found in told for _, own in found)
        return told


def main(
    output: Output,
    directories: Annotated[list[str], typer.Argument(help="Directories to look in, in order")],
    repeats: Repeats = 6,
    quick: Quick = False,
) -> None:
    """Measure outer iterations in turn, and count bytes."""
    record = Record("workers", quick, {"workers": _N, "steps": repeats})
    with TemporaryDirectory() as name:
        corpus, whole = Path(name) / "corpus", Path(name) / "whole"
        write_docs(corpus, _DATA, directories, 300 if quick else 0)
        whole.mkdir()
        for path in corpus.glob("part-*.spacy"):
            (whole / path.name).symlink_to(path)
        pipes = {
            WHOLE: component(corpus, THREADS, whole),
            SHARDS: component(corpus, THREADS),
            WORKERS: component(corpus, ray_engine(None, _N)),
        }
        sides: dict[str, Callable[[], Cost]] = {k: partial(step, v) for k, v in pipes.items()}
        record.add(_DATA, "outer iteration", alternate(repeats, sides), threads=_N)
        run = pipes[WORKERS].training_run()
        counted = Counted(run.partition.pool)
        step(pipes[WORKERS])
        record.details = {"bytes": dict(counted.sizes), "least": counted.least}
    walls = {m.tool: m.median for m in record.measurements}
    for tool in (SHARDS, WORKERS):
        ratios = [
            own / other
            for m in record.measurements
            if m.tool == tool
            for own, other in zip(m.wall, record.measurements[0].wall, strict=True)
        ]
        record.remarks.append(f"{tool}: {min(ratios):.2f} to {max(ratios):.2f} times {WHOLE}.")
    record.details["seconds"] = walls
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
