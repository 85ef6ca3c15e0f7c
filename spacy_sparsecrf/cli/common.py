"""What commands share: how errors are reported, and how components are found."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import spacy
import typer
from spacy.language import Language

from ..errors import Errors, SparseCRFError
from ..pipeline.component import SparseCRF

Model: TypeAlias = Annotated[
    str, typer.Argument(help="Saved pipeline, or name of an installed one")
]
Component: TypeAlias = Annotated[
    str, typer.Option("--component", "-c", help="Name of the component, if there are several")
]


@contextmanager
def reported() -> Iterator[None]:
    """Report errors of input, files and languages, without a traceback, and exit with 1."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError, ImportError) as error:
        # Not wrapped, as wasabi would: paths stay in one piece.
        typer.secho(f"Error: {error}", fg="red", err=True)
        raise typer.Exit(1) from error


def load(model: str, name: str = "") -> tuple[Language, SparseCRF]:
    """Load a pipeline, and find its component with sparse CRF weights.

    name: of the component; may be left out where there is only one.
    RAISES: SparseCRFError if there is no such component, or more than one.
    """
    nlp = spacy.load(model)
    found = {key: pipe for key, pipe in nlp.components if isinstance(pipe, SparseCRF)}
    known = ", ".join(found) or "none"
    if name not in found and (name or not found):
        raise SparseCRFError(Errors.SC601.format(model=model, name=name or "...", known=known))
    if not name and len(found) > 1:
        raise SparseCRFError(Errors.SC602.format(model=model, n=len(found), known=known))
    return nlp, found[name or next(iter(found))]
