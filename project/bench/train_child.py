"""Training in a process of its own, for its peak memory and for what compilation costs."""

from pathlib import Path
from typing import Annotated

import typer

from .data import load


def main(
    corpus: Annotated[Path, typer.Argument(help="Encoded corpus")],
    steps: Annotated[int, typer.Argument(help="Outer iterations; 0: only load")],
    threads: Annotated[int, typer.Argument(help="Threads")] = 1,
) -> None:
    """Load a corpus and train on it for some outer iterations."""
    problem = load(corpus)
    if steps:
        from .ours import train

        train(problem, steps=steps, threads=threads)


if __name__ == "__main__":
    typer.run(main)
