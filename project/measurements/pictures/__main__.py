"""Command line of the pictures: `python -m pictures [NAME...]`, in the project's directory."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from . import screens
from .charts import CHARTS
from .diagrams import DIAGRAMS

PICTURES = {**CHARTS, **DIAGRAMS}


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Default: all but `screens`")] = None,
    output: Annotated[Path, typer.Option(help="Directory")] = Path("../../docs/images"),
    chromium: Annotated[str, typer.Option(help="Program for `screens`")] = "chromium",
) -> None:
    """Draw pictures of the pages."""
    known = {**PICTURES, "screens": lambda path: screens.take(path.parent, chromium)}
    for name in names or PICTURES:
        if name not in known:
            raise typer.BadParameter(f"{name} is none of {', '.join(known)}")
        known[name](output / f"{name}.svg")
        msg.good(f"Drawn: {name}")


if __name__ == "__main__":
    typer.run(main)
