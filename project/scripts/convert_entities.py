"""Convert corpora of named entities, a token a line, its IOB2 label last, to .spacy files."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import find, read_tsv
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_sparsecrf.convert.schemes import Scheme, read_spans

REPOSITORY = Path(__file__).resolve().parents[2]


class Name(str, Enum):
    """Names of the corpora."""

    SPANISH = "conll2002-es"
    GENIA = "jnlpba"


@dataclass(frozen=True)
class Source:
    """The language of a corpus, and the names of its parts."""

    lang: str
    train: str
    dev: str
    test: str = "test"


SOURCES = {
    Name.SPANISH: Source("es", "train", "dev"),
    Name.GENIA: Source("en", "train16807", "dev1739"),
}


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield one Doc a sentence, with its entities."""
    for rows in read_tsv(path):
        doc = Doc(vocab, words=[row[0] for row in rows])
        doc.set_ents(
            [Span(doc, *span) for span in read_spans([row[-1] for row in rows], Scheme.iob1)]
        )
        yield doc


def main(
    name: Annotated[Name, typer.Argument(help="Corpus")],
    output: Annotated[Path, typer.Argument(help="Directory for NAME-{train,dev,test}.spacy")],
    sources: Annotated[list[str], typer.Argument(help="Directories to look in, in this order")],
) -> None:
    """Convert the three parts; relative sources are taken from the repository root."""
    source = SOURCES[name]
    vocab = spacy.blank(source.lang).vocab
    output.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        path = find(sources, [f"{name.value}.{getattr(source, split)}.tsv.gz"], base=REPOSITORY)
        docs = DocBin(attrs=["ENT_IOB", "ENT_TYPE"], docs=read_docs(path, vocab))
        docs.to_disk(output / f"{name.value}-{split}.spacy")
        print(f"{path}: {len(docs)} sentences")


if __name__ == "__main__":
    typer.run(main)
