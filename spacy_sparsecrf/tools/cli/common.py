"""Helpers of commands: error reporting, and access to components."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ...errors import Errors, SparseCRFError, nearest, printable
from ...pipeline.component import SparseCRFPipe
from ...pipeline.corpus_files import read_files
from ...pipeline.spacy_loop import block_of

Model: TypeAlias = Annotated[
    str, typer.Argument(help="Saved pipeline, or name of an installed one")
]
Component: TypeAlias = Annotated[
    str, typer.Option("--component", "-c", help="Name of the component, if there are several")
]

Data: TypeAlias = Annotated[
    Path, typer.Argument(help="Gold Docs: a .spacy file, or a directory of them", exists=True)
]
Html: TypeAlias = Annotated[
    Path | None, typer.Option(help="Write a page of HTML", show_default=False)
]
Code: TypeAlias = Annotated[
    Path | None, typer.Option("--code", "-c", help="Python file with registered functions")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite what exists")]

_NO_COMPONENT = (
    "Give a pipeline with a component sparse_crf, sparse_crf_ner or sparse_crf_spans, as `spacy "
    "train` saves it with a config of `python -m spacy_sparsecrf config`."
)


@contextmanager
def reported() -> Iterator[None]:
    """Report errors of input, files and languages, without a traceback, and exit with 1."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError, ImportError) as error:
        if isinstance(error, OSError) and error.filename:
            error = _of_path(Path(error.filename), error.strerror or "")
        # Not printed by wasabi, which would wrap lines and break paths.
        typer.secho(f"Error: {printable(error)}", fg="red", err=True)
        raise typer.Exit(1) from error


def _of_path(path: Path, reason: str) -> SparseCRFError:
    """Return an error about a path that cannot be read or written."""
    near = "" if path.exists() else nearest(path.name, [x.name for x in path.parent.glob("*")])
    return SparseCRFError(Errors.SC672.format(path=path, reason=reason, nearest=near))


def overrides_of(ctx: typer.Context) -> dict[str, object]:
    """Return the settings in the further options of a command. RAISES: typer.BadParameter."""
    from click import ClickException
    from spacy.cli._util import parse_config_overrides

    try:
        return dict(parse_config_overrides(ctx.args))
    except ClickException as error:
        raise typer.BadParameter(f"{error.message} Settings are as --training.seed 1.") from error


def with_folder(path: Path) -> Path:
    """Create the directory of a file or directory to write. RETURNS: its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def check_free(force: bool, *paths: Path | None) -> None:
    """Refuse to overwrite files, or directories with any, unless forced. RAISES: SparseCRFError."""
    for path in filter(None, () if force else paths):
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise SparseCRFError(Errors.SC608.format(path=path))


def load(model: str, name: str = "") -> tuple[Language, SparseCRFPipe]:
    """Load a pipeline, and find its sparse CRF component; see `find`."""
    nlp = spacy.load(model)
    return nlp, find(nlp, model, name)


def find(nlp: Language, model: str, name: str = "") -> SparseCRFPipe:
    """Find the sparse CRF component of a pipeline.

    model: name or path of the pipeline, for messages; name: of the component, or "" if there is
    only one.
    RAISES: SparseCRFError if there is no such component, or several and no name.
    """
    pipes = {key: pipe for key, pipe in nlp.components if isinstance(pipe, SparseCRFPipe)}
    listed = ", ".join(pipes)
    if name not in pipes and (name or not pipes):
        values = {"named": f" {name!r}" if name else "", "pipes": ", ".join(nlp.component_names)}
        remedy = f"Choose one by --component: {listed}." if pipes else _NO_COMPONENT
        raise SparseCRFError(Errors.SC601.format(model=model, remedy=remedy, **values))
    if not name and len(pipes) > 1:
        raise SparseCRFError(Errors.SC602.format(model=model, n=len(pipes), known=listed))
    return pipes[name or next(iter(pipes))]


def up_to(nlp: Language, name: str, docs: Iterable[Doc]) -> Iterator[Doc]:
    """Annotate Docs with the pipes before a component."""
    names = nlp.pipe_names
    yield from nlp.pipe(docs, disable=names[names.index(name) :])


def read(nlp: Language, data: Path, corpus: str) -> list[Example]:
    """Read Examples from `data` with a corpus reader of the pipeline's config.

    corpus: "train_corpus" or "dev_corpus", the setting in [training] that names the reader's block.
    RAISES: SparseCRFError if the reader has no path, and if there are no Docs.
    """
    block = block_of(nlp, corpus)
    if "path" not in block:
        name = nlp.config["training"][corpus]
        raise SparseCRFError(Errors.SC641.format(block=name, data=data))
    examples = list(read_files(nlp, block, [data]))
    if not examples:
        raise SparseCRFError(Errors.SC654.format(data=data))
    return examples


def annotated_gold(nlp: Language, name: str, data: Path) -> Iterator[Example]:
    """Read development Examples, and annotate predicted Docs with the pipes before a component."""
    examples = read(nlp, data, "dev_corpus")
    docs = up_to(nlp, name, (example.predicted for example in examples))
    return (Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True))
