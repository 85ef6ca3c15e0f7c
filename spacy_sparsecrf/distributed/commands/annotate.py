"""`annotate`: annotate files with a pipeline, in processes or on a cluster."""

from collections.abc import Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, DocBin
from wasabi import msg

from ...atomic_write import write_files
from ...cli.common import Component, Model, find, reported
from ...cli.files import SPACY, kind_of_text, read_texts
from ...errors import Errors, SparseCRFError
from ...parallel import LocalWorkerPool, ProcessWorkerPool, WorkerPool
from ..ray_engine import Ray

_SETTING = "--output"


class Annotator:
    """A pipeline that annotates files.

    model: path of a saved pipeline, or name of an installed one; soft: number of weighted
    labellings of a Doc, 0 for one without a weight; component: predicts the labellings.
    """

    def __init__(self, model: str, soft: int = 0, component: str = "") -> None:
        self._nlp, self._soft = spacy.load(model), soft
        self._pipe = find(self._nlp, model, component) if soft else None

    def annotate(self, source: Path, folder: Path) -> int:
        """Annotate the Docs of a file, and write them to one of the same name in a folder.

        The file is written atomically. RETURNS: the number of Docs.
        RAISES: SparseCRFError if a file cannot be read or written.
        """
        found = DocBin(store_user_data=True)
        for doc in self._nlp.pipe(self._read(source)):
            pipe = self._pipe
            for each in [doc] if pipe is None else pipe.labellings(doc, self._soft):
                found.add(each)
        write_files(folder, {target_of(source): found.to_bytes()}, _SETTING)
        return len(found)

    def _read(self, source: Path) -> Iterator[str | Doc]:
        """Yield the Docs of a .spacy file, or the texts of another one; blank lines are skipped."""
        of_lines = kind_of_text(source) == ".txt"
        for text, _ in read_texts(source, self._nlp.vocab):
            yield text.strip() if of_lines and isinstance(text, str) else text


def target_of(source: Path) -> str:
    """Return the name of the file of annotated Docs."""
    return Path(source.name.removesuffix(".gz")).stem + SPACY


def find_files(sources: list[Path]) -> list[Path]:
    """Return the files of paths; the files of a folder are sorted.

    Other entries of folders are reported.
    RAISES: SparseCRFError for another type of file, and for two with one output name.
    """
    found: list[Path] = []
    for source in sources:
        entries = sorted(source.glob("*")) if source.is_dir() else [source]
        others = [each for each in entries if not (kind_of_text(each) and each.is_file())]
        if source.is_dir() and others:
            shown = f"{len(others)} entries of {source} are not annotated"
            msg.warn(f"{shown}, such as {others[0].name}")
            entries = sorted({*entries} - {*others})
        found += entries
    names: dict[str, Path] = {}
    for path in found:
        if not kind_of_text(path):
            raise SparseCRFError(Errors.SC920.format(path=path))
        other = names.setdefault(target_of(path), path)
        if other is not path:
            raise SparseCRFError(Errors.SC921.format(path=path, other=other))
    return found


class Means(str, Enum):
    """The engines that annotate files."""

    processes = "processes"
    ray = "ray"


def annotate(
    model: Model,
    sources: Annotated[
        list[Path],
        typer.Argument(
            help=".spacy files, .txt with a Doc a line, .jsonl (`text`), or folders", exists=True
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the annotated files")],
    means: Annotated[
        Means, typer.Option("--engine", help="Processes, or a Ray cluster")
    ] = Means.processes,
    workers: Annotated[
        int, typer.Option("--workers", "-n", min=1, help="Number of processes or workers")
    ] = 1,
    address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster (default: start one)")
    ] = None,
    soft: Annotated[
        int,
        typer.Option(min=0, help="Write so many labellings of each Doc, weighted, to learn from"),
    ] = 0,
    component: Component = "",
) -> None:
    """Annotate files of Docs by a pipeline, into .spacy files of the same names.

    Existing files are skipped, so that the same command resumes an interrupted run. Each process or
    worker annotates one file at a time.
    """
    with reported():
        if component and not soft:
            raise typer.BadParameter("--component is the one whose labellings --soft writes")
        files = find_files(sources)
        targets = [(output / target_of(path)).resolve() for path in files]
        if same := [a for a, b in zip(files, targets, strict=True) if a.resolve() == b]:
            raise SparseCRFError(Errors.SC922.format(path=same[0], output=output))
        todo = [path for path in files if not (output / target_of(path)).exists()]
        if len(todo) < len(files):
            msg.info(f"{len(files) - len(todo)} files are in {output} already")
        if todo:
            pool = _pool(means, (model, soft, component), min(workers, len(todo)), address)
            try:
                _annotate(pool, todo, output)
            finally:
                pool.close()
        msg.good(f"{len(files)} files are in {output}")


def _pool(
    means: Means, given: tuple[str, int, str], workers: int, address: str | None
) -> WorkerPool:
    """Start the workers; given: arguments of `Annotator`."""
    model, path = given[0], Path(given[0])
    make = partial(Annotator, str(path.absolute()) if path.exists() else model, *given[1:])
    if means is Means.ray:
        return Ray(num_workers=workers, address=address).pool(make)
    return LocalWorkerPool(1, make) if workers == 1 else ProcessWorkerPool(workers, make)


def _annotate(pool: WorkerPool, todo: list[Path], output: Path) -> None:
    """Annotate files, as many at once as there are workers."""
    for first in range(0, len(todo), len(pool)):
        own = todo[first : first + len(pool)]
        counts = pool.ask("annotate", [(path.absolute(), output.absolute()) for path in own])
        for path, n_docs in zip(own, counts, strict=True):
            msg.text(f"{path}: {n_docs} docs")
