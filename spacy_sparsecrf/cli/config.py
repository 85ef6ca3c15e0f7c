"""`config`: the configs that come with the package."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..errors import Errors, SparseCRFError
from .common import reported

CONFIGS = files("spacy_sparsecrf") / "configs"


def config(
    name: Annotated[str, typer.Argument(help="Name of a config; without one all are listed")] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write")] = None,
) -> None:
    """Write a config for `spacy train`: of a tagger, of entities, of spans, or of a solver."""
    with reported():
        known = config_names()
        if not name:
            for each in known:
                typer.echo(f"{each:<18}{read_config(each).splitlines()[0].lstrip('# ')}")
            return
        if name not in known:
            raise SparseCRFError(Errors.SC607.format(name=name, known=", ".join(known)))
        text = read_config(name)
        if output is None:
            typer.echo(text, nl=False)
            return
        output.write_text(text, encoding="utf8")
        msg.good(f"The config {name} is in {output}")


def config_names() -> list[str]:
    """The names of the configs that come with the package."""
    found = [Path(each.name) for each in CONFIGS.iterdir()]
    return sorted(path.stem for path in found if path.suffix == ".cfg")


def read_config(name: str) -> str:
    """The text of a config that comes with the package."""
    return (CONFIGS / f"{name}.cfg").read_text(encoding="utf8")
