"""Command line of the pictures: `python -m pictures [NAME...]`, in the project's directory."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from .charts import CHARTS
from .diagrams import DIAGRAMS

PICTURES = {**CHARTS, **DIAGRAMS}


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Pictures; all")] = None,
    output: Annotated[Path, typer.Option(help="Directory")] = Path("../docs/images"),
) -> None:
    """Draw pictures of the pages."""
    for name in names or PICTURES:
        if name not in PICTURES:
            raise typer.BadParameter(f"{name} is none of {', '.join(PICTURES)}")
        PICTURES[name](output / f"{name}.svg")
        msg.good(f"{output / name}.svg")


if __name__ == "__main__":
    typer.run(main)
