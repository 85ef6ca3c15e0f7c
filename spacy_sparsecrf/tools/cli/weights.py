"""`dump` and `patch`: write weights as text, and change weights by such text."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...atomic_write import write_files
from ...interop.text_files import read_lines
from ...progress import Task
from .common import Component, Force, Model, check_free, load, reported, with_folder
from .printing import msg


def dump(
    model: Model,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write")] = None,
    component: Component = "",
    force: Force = False,
) -> None:
    """Write the weights of a component as text, a weight a line.

    Columns, separated by tabs: kind (u: of a label, b: of a pair of labels), feature (name, or
    hash if it has none), label before (# for none, * for the beginning of a sequence), label,
    weight. `patch` reads it.
    """
    with reported():
        check_free(force, output)
        _, pipe = load(model, component)
        shown = Task("Writing weights", "weights", pipe.model.n_active, pipe.dump())
        lines = (f"{line}\n" for line in shown)
        if output is None:
            sys.stdout.writelines(lines)
            return
        path = output.resolve()
        write_files(path.parent, {path.name: "".join(lines).encode()}, "--output")
        msg.good(f"{pipe.model.n_active} weights of {pipe.name} are in {output}")


def patch(
    model: Model,
    weights: Annotated[Path, typer.Argument(help="File of lines as `dump` writes them")],
    output: Annotated[Path, typer.Argument(help="Directory for the changed pipeline")],
    component: Component = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove all weights that have no line")
    ] = False,
    force: Force = False,
) -> None:
    """Change weights of a component by lines of text, and save the pipeline.

    A weight of 0 removes the weight. If a weight has several lines, the last one counts. Nothing
    is written if a line is refused. Empty lines and lines that start with # are ignored.
    """
    with reported():
        check_free(force, output)
        nlp, pipe = load(model, component)
        n = pipe.patch(read_lines(weights), str(weights), replace=replace)
        nlp.to_disk(with_folder(output))
        changes = f"{n} change{'s' * (n != 1)}"
        msg.good(f"{changes}: {pipe.name} has {pipe.model.n_active} weights now, in {output}")
