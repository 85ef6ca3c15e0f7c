"""Readers of annotated sentences in columns: tab-separated files and CoNLL-U."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from spacy_sparsecrf.convert.columns import TAB, read_columns
from spacy_sparsecrf.convert.conllu import COLUMNS
from spacy_sparsecrf.convert.conllu import read_conllu as read_words

Rows = list[list[str]]


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
    kept = [COLUMNS.index(name) for name in ("orth", "pos", "tag", "morph", "space_after")]
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
