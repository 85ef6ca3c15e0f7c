"""Convert corpora of named entities, a token a line, its IOB2 label last, to .spacy files."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import Sources, convert, read_tsv
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_sparsecrf.convert.schemes import Scheme, read_spans


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
    sources: Sources,
) -> None:
    """Convert the three parts; relative sources are taken from the repository root."""
    source = SOURCES[name]
    vocab = spacy.blank(source.lang).vocab
    parts = {
        output / f"{name.value}-{split}.spacy": [f"{name.value}.{getattr(source, split)}.tsv.gz"]
        for split in ("train", "dev", "test")
    }
    convert(parts, sources, partial(read_docs, vocab=vocab), ["ENT_IOB", "ENT_TYPE"])


if __name__ == "__main__":
    typer.run(main)
