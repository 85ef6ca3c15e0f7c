"""The formats that can be read, by name."""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .attributes import IGNORED, WORDS
from .columns import BLANKS, TAB, read_columns
from .conllu import read_conllu
from .crfsuite import read_crfsuite
from .lines import Source


class Format(str, Enum):
    """Formats of annotated text."""

    columns = "columns"
    tsv = "tsv"
    wapiti = "wapiti"
    crfpp = "crfpp"
    conllu = "conllu"
    crfsuite = "crfsuite"


SEPARATORS = {
    Format.columns: "",
    Format.tsv: TAB,
    Format.wapiti: BLANKS,
    Format.crfpp: BLANKS,
}
"""What separates columns; "" is what the file's first line shows."""

_SUFFIXES = {
    ".tsv": Format.tsv,
    ".txt": Format.columns,
    ".conll": Format.columns,
    ".iob": Format.columns,
    ".iob2": Format.columns,
    ".conllu": Format.conllu,
    ".crfsuite": Format.crfsuite,
}


def guess_format(path: Path) -> Format:
    """Tell a file's format by its name, in which .gz does not count.

    RAISES: SparseCRFError where it does not show.
    """
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in _SUFFIXES:
        known = ", ".join(kind.value for kind in Format)
        raise SparseCRFError(Errors.SC613.format(path=path, known=known))
    return _SUFFIXES[suffix]


def open_source(
    path: Path, kind: Format, columns: Sequence[str] = (), attribute: str = ""
) -> Source:
    """Open a file of annotated text.

    columns: what its columns are, or with CRFsuite the words, "orth", and what the label is; by
    default see `read_columns`; attribute: see `read_crfsuite`.
    RAISES: SparseCRFError for more than one label with CRFsuite.
    """
    if kind in SEPARATORS:
        return read_columns(path, columns, SEPARATORS[kind])
    if kind is Format.conllu:
        return read_conllu(path)
    labels = [name for name in columns if name not in (WORDS, IGNORED)]
    if len(labels) > 1:
        raise SparseCRFError(Errors.SC606.format(columns=", ".join(labels)))
    return read_crfsuite(path, attribute, *labels)
