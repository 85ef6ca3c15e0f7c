"""The formats of `export`: which files each writes, and which option it has."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from spacy.language import Language

from ..errors import refused_option
from ..pipeline.component import SparseCRFPipe
from .exporters import EXPORTERS
from .exporting import export, sequences
from .portable_folder import portable_folder

PORTABLE = "portable"


class Exported(NamedTuple):
    """Files by name, the folder that they are written to, and a message about them."""

    folder: Path
    files: dict[str, bytes]
    message: str


class ExportFormat(ABC):
    """A format. option: name of the only option with a file that it has."""

    option: ClassVar[str]

    @abstractmethod
    def files(
        self, nlp: Language, pipe: SparseCRFPipe, output: Path, samples: Iterable[Any] | None
    ) -> Exported:
        """Return the files of a component.

        samples: Examples or texts in the file of the option; None without the option.
        RAISES: SparseCRFError for what the format lacks.
        """


class ProgramFormat(ExportFormat):
    """The model of another program, and data in its columns. program: in EXPORTERS."""

    option = "data"

    def __init__(self, program: str) -> None:
        self._exporter = EXPORTERS[program]

    def files(
        self, nlp: Language, pipe: SparseCRFPipe, output: Path, samples: Iterable[Any] | None
    ) -> Exported:
        """See `ExportFormat.files`."""
        program = self._exporter.program
        model = export(pipe, program)
        files: dict[str, bytes] = {output.name: self._exporter.write(model)}
        if samples is not None:
            columns = sequences(pipe, model, samples)
            files[f"{output.name}.data"] = "".join(columns).encode()
        longest = max(len(line) for text in files.values() for line in text.split(b"\n"))
        if longest > (most := self._exporter.longest_line or longest):
            reason = f"it reads lines of up to {most} bytes, and one would have {longest}"
            raise refused_option("format", program.lower(), reason)
        n, names = len(model.weights.values), ", ".join(files)
        message = f"{n} weights of {pipe.name} are in {output.parent}: {names}"
        return Exported(output.parent, files, message)


class PortableFormat(ExportFormat):
    """A folder with a model and a program that labels texts without packages."""

    option = "check"

    def files(
        self, nlp: Language, pipe: SparseCRFPipe, output: Path, samples: Iterable[Any] | None
    ) -> Exported:
        """See `ExportFormat.files`."""
        files = portable_folder(nlp, pipe, samples)
        n = files["check.jsonl"].count(b"\n")
        message = f"{output} labels {n} texts as {pipe.name} does: {', '.join(files)}"
        return Exported(output, files, message)


FORMATS: dict[str, ExportFormat] = {
    **{program: ProgramFormat(program) for program in EXPORTERS},
    PORTABLE: PortableFormat(),
}
"""Formats by the value of `--format`."""
