"""Command line of the benchmarks: `python -m bench NAME`.

Results are written to `metrics/bench/NAME.jsonl` (`metrics/cluster` for `workers` and `driver`).
`data` encodes the corpora for the other benchmarks, and `report` writes BENCHMARKS.md.
"""

from pathlib import Path
from typing import Annotated

import typer
from measure.data import QUICK_SENTENCES, SAMPLE_SENTENCES, Data, Problem, sample, sources
from measure.results import Quick
from wasabi import msg

from . import cluster, entities
from .record import Options
from .report import BENCHMARKS, write_report
from .speed import BOTH

# Data sets with target figures; objectives are compared on samples of `BOTH`.
ENCODED = (*BOTH, "nettalk-5grm", "ud-en-ewt")


def encode(options: Options) -> None:
    """Encode data sets, and samples of the data sets whose objectives are compared."""
    size = QUICK_SENTENCES if options.quick else options.sentences
    for name in options.names or ENCODED:
        source = sources()[name]
        rows, folder = source.rows("train", options.data), options.corpus(name).parent
        Problem.of(name, source, sample(rows, size)).save(folder)
        if name in BOTH:
            Problem.of(f"{name}-sample", source, sample(rows, SAMPLE_SENTENCES)).save(folder)
        msg.good(f"{name}: {options.corpus(name)}")


OTHERS = {
    "data": encode,
    "entities": entities.measure,
    "workers": cluster.measure_workers,
    "driver": cluster.measure_driver,
    "report": write_report,
}
COMMANDS = {name: one.measure for name, one in BENCHMARKS.items()} | OTHERS


def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(COMMANDS)}")],
    folder: Annotated[Path, typer.Option(help="With corpus, training and metrics")] = Path(),
    data: Data = "",
    repeats: Annotated[int, typer.Option(help="Of each side; 0: the benchmark's own number")] = 0,
    cap: Annotated[float, typer.Option(help="Seconds after which a training run is cut off")] = 900,
    threads: Annotated[str, typer.Option(help="Numbers of threads, separated by commas")] = "",
    names: Annotated[list[str] | None, typer.Option("--name", help="Data sets; all")] = None,
    tools: Annotated[list[str] | None, typer.Option("--tool", help="Tools; all")] = None,
    sentences: Annotated[int, typer.Option(help="Sentences to train on, 0 for all")] = 0,
    quick: Quick = False,
) -> None:
    """Run a benchmark."""
    if name not in COMMANDS:
        raise typer.BadParameter(f"{name} is none of {', '.join(COMMANDS)}")
    counts = tuple(map(int, threads.split(","))) if threads else ()
    chosen = tuple(names or ()), tuple(tools or ())
    COMMANDS[name](Options(folder, data, quick, repeats, cap, counts, *chosen, sentences))


if __name__ == "__main__":
    typer.run(main)
