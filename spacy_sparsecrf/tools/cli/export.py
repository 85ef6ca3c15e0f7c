"""`export`: convert the model of a pipeline to one of another program, or to a portable one."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ...atomic_write import write_files
from ...errors import refused_option
from ...interop.exporters import EXPORTERS
from ...interop.exporting import export, sequences
from ...interop.external_models import CRFPP, CRFSUITE, WAPITI
from ...interop.portable_folder import portable_folder, texts_of
from .common import Component, Model, annotated_gold, load, reported
from .printing import msg


class Program(str, Enum):
    """Names of exporters, for `--format`."""

    crfsuite = CRFSUITE
    wapiti = WAPITI
    crfpp = CRFPP
    portable = "portable"


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
) -> None:
    """Convert the model of a pipeline for another program, which assigns the same labels.

    portable writes a folder, with a program in Python that labels texts without any packages.

    OUTPUT.data has the columns that the program reads: a token a line, an empty line after each
    sequence, and the gold label in the last column (for CRFsuite the first; _ for none).
    """
    with reported():
        nlp, pipe = load(model, component)
        if program is Program.portable:
            files = portable_folder(nlp, pipe, None if check is None else texts_of(check))
            write_files(output, files, "OUTPUT")
            n_texts = files["check.jsonl"].count(b"\n")
            msg.good(f"{output} labels {n_texts} texts as {pipe.name} does: {', '.join(files)}")
            return
        exporter = EXPORTERS[program.value]
        exported = export(pipe, program.value)
        contents: dict[str, bytes] = {output.name: exporter.write(exported)}
        if data is not None:
            columns = sequences(pipe, exported, annotated_gold(nlp, pipe.name, data))
            contents[f"{output.name}.data"] = "".join(columns).encode()
        longest = max(len(line) for text in contents.values() for line in text.split(b"\n"))
        if longest > (most := exporter.longest_line or longest):
            reason = f"it reads lines of up to {most} bytes, and one would have {longest}"
            raise refused_option("format", program.value.lower(), reason)
        write_files(output.parent, contents, "OUTPUT")
        n, names = len(exported.weights.values), ", ".join(contents)
        msg.good(f"{n} weights of {pipe.name} are in {output.parent}: {names}")
