"""What the commands of the benchmarks have in common."""

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Argument(help="JSON file for the figures")]
Corpora = Annotated[Path, typer.Argument(help="Directory of the encoded corpora")]
Repeats = Annotated[int, typer.Option(help="How often each side of a comparison runs", min=1)]
Quick = Annotated[
    bool, typer.Option("--quick/--full", help="Samples and few iterations: only to see it work")
]
Cap = Annotated[float, typer.Option(help="Seconds after which a training run is cut off")]
Threads = Annotated[str, typer.Option(help="Numbers of threads, separated by commas")]


def numbers(text: str) -> list[int]:
    """Read numbers separated by commas."""
    return [int(part) for part in text.split(",")]
