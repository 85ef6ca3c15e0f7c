"""`export`: convert the model of a pipeline to one of another program, or to a portable one."""

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ...atomic_write import write_files
from ...errors import refused_option
from ...interop.export_formats import FORMATS, PORTABLE
from ...interop.external_models import CRFPP, CRFSUITE, WAPITI
from ...interop.portable_folder import texts_of
from .common import Component, Force, Model, annotated_gold, check_free, load, reported
from .printing import msg


class Program(str, Enum):
    """Names of exporters, for `--format`."""

    crfsuite = CRFSUITE
    wapiti = WAPITI
    crfpp = CRFPP
    portable = PORTABLE


def export_model(
    model: Model,
    output: Annotated[
        Path, typer.Argument(help="File to write; of CRF++ the text; of portable a folder")
    ],
    program: Annotated[
        Program, typer.Option("--format", "-f", case_sensitive=False, help="Program that reads it")
    ],
    data: Annotated[
        Path | None, typer.Option(help="Docs to write as columns: OUTPUT.data", exists=True)
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(help="Texts to check a portable model by: a text a line", exists=True),
    ] = None,
    component: Component = "",
    force: Force = False,
) -> None:
    """Convert the model of a pipeline for another program, which assigns the same labels.

    portable writes a folder, with a program in Python that labels texts without any packages.

    OUTPUT.data has the columns that the program reads: a token a line, an empty line after each
    sequence, and the gold label in the last column (for CRFsuite the first; _ for none).
    """
    with reported():
        columns_path = None if data is None else output.with_name(f"{output.name}.data")
        check_free(force, output, columns_path)
        nlp, pipe = load(model, component)
        exporter = FORMATS[program.value]
        readers: dict[str, Callable[[Path], Iterable[Any]]]
        readers = {"data": partial(annotated_gold, nlp, pipe.name), "check": texts_of}
        samples: Iterable[Any] | None = None
        for option, path in {"data": data, "check": check}.items():
            if path is not None and option != exporter.option:
                reason = f"--format {program.value.lower()} does not use it"
                raise refused_option(option, str(path), reason)
            if path is not None:
                samples = readers[option](path)
        exported = exporter.files(nlp, pipe, output=output, samples=samples)
        write_files(exported.folder, exported.files, "OUTPUT")
        msg.good(exported.message)
