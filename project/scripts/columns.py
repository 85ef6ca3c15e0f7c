"""Annotated sentences in columns, tab-separated or CoNLL-U: readers, and what converts them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc, DocBin

from spacy_sparsecrf.interop.columns import TAB, read_columns
from spacy_sparsecrf.interop.formats import CONLLU_COLUMNS
from spacy_sparsecrf.interop.formats import read_conllu as read_words

Rows = list[list[str]]
Sources = Annotated[list[str], typer.Argument(help="Directories to look in, in this order")]
# Relative sources are taken from here.
_REPOSITORY = Path(__file__).resolve().parents[2]


def read_tsv(path: Path) -> Iterator[Rows]:
    """Yield the sentences of a file of tab-separated columns, a token a line.

    A line that starts with # is a token; sentences end with an empty line.
    """
    for sentence in read_columns(path, separator=TAB).sentences:
        yield [row.values for row in sentence]


def read_conllu(path: Path) -> Iterator[Rows]:
    """Yield the syntactic words of a CoNLL-U file: form, UPOS, XPOS, FEATS, space after (0/1).

    Empty nodes are left out. Within a multiword token no space follows but after its last word.
    """
    kept = [CONLLU_COLUMNS.index(name) for name in ("orth", "pos", "tag", "morph", "space_after")]
    for sentence in read_words(path).sentences:
        yield [[row.values[i] for i in kept] for row in sentence]


def find(directories: Iterable[str], names: Iterable[str], base: Path) -> Path:
    """Find the first file there is.

    directories: to look in, in this order; empty ones are passed over, and relative ones are
        taken from `base`.
    names: of the file, in order of preference.
    Raises typer.BadParameter.
    """
    places = [base / directory / name for directory in directories if directory for name in names]
    for place in places:
        if place.exists():
            return place
    listed = "\n".join(f"  {place}" for place in places) or "  (no directory was given)"
    raise typer.BadParameter(
        f"None of these files exists:\n{listed}\n"
        "Fetch the public data with `python -m spacy project assets project --extra`, or set the "
        "environment variable SPARSECRF_DATA to the directory of the .tsv.gz files."
    )


def convert(
    parts: Mapping[Path, Sequence[str]],
    sources: Iterable[str],
    read: Callable[[Path], Iterable[Doc]],
    attributes: Sequence[str],
    user_data: bool = False,
) -> None:
    """Write .spacy files.

    parts: names of the file that each is made of, in order of preference; sources: see `find`;
    read: makes Docs of a file; attributes, user_data: what of them is stored.
    """
    for output, names in parts.items():
        path = find(sources, names, base=_REPOSITORY)
        docs = DocBin(attrs=attributes, store_user_data=user_data, docs=read(path))
        output.parent.mkdir(parents=True, exist_ok=True)
        docs.to_disk(output)
        print(f"{path}: {len(docs)} sentences")
