"""Command line of the benchmarks: `python -m bench NAME`.

Results are written to `metrics/bench/NAME.jsonl` (`metrics/cluster` for `workers` and `driver`).
"""

from pathlib import Path
from typing import Annotated

import typer
from measure.data import Data
from measure.results import Quick

from . import cluster, decode, gradient, intervals, portable, single, teach, whole
from .record import Options

COMMANDS = {
    "gradient": gradient.measure,
    "whole": whole.measure,
    "intervals": intervals.measure,
    "decode": decode.measure,
    "raw": decode.measure_raw,
    "portable": portable.measure,
    "single": single.measure,
    "teach": teach.measure,
    "workers": cluster.measure_workers,
    "driver": cluster.measure_driver,
}


def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(COMMANDS)}")],
    folder: Annotated[Path, typer.Option(help="With corpus, training and metrics")] = Path(),
    data: Data = "",
    repeats: Annotated[int, typer.Option(help="Of each side; 0: the benchmark's own number")] = 0,
    names: Annotated[list[str] | None, typer.Option("--name", help="Data sets; all")] = None,
    tools: Annotated[list[str] | None, typer.Option("--tool", help="Tools; all")] = None,
    before: Annotated[str, typer.Option(help="Python with an earlier version, for `whole`")] = "",
    quick: Quick = False,
) -> None:
    """Run a benchmark."""
    if name not in COMMANDS:
        raise typer.BadParameter(f"{name} is none of {', '.join(COMMANDS)}")
    chosen = tuple(names or ()), tuple(tools or ())
    COMMANDS[name](Options(folder, data, quick, repeats, *chosen, before))


if __name__ == "__main__":
    typer.run(main)
