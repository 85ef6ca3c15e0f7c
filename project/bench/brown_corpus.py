"""Convert the Brown corpus to .spacy files: its full tags."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import convert, read_tsv
from spacy.tokens import Doc
from spacy.vocab import Vocab

from .data import sample


def read_docs(path: Path, vocab: Vocab, sentences: int) -> Iterator[Doc]:
    """Yield one Doc a sentence of a sample; 0 = of all."""
    for rows in sample(list(read_tsv(path)), sentences):
        yield Doc(vocab, words=[row[0] for row in rows], tags=[row[1] for row in rows])


def main(
    output: Annotated[Path, typer.Argument(help="Directory for brown-{train,dev,test}.spacy")],
    directories: Annotated[list[str], typer.Argument(help="Directories to look in, in order")],
    sentences: Annotated[int, typer.Option(help="Training sentences to take, 0 for all")] = 0,
) -> None:
    """Convert the three parts."""
    vocab = spacy.blank("en").vocab
    parts = {
        output / f"brown-{part}.spacy": [f"brown.{part}.tsv.gz"]
        for part in ("train", "dev", "test")
    }
    read = partial(read_docs, vocab=vocab, sentences=sentences)
    convert(parts, directories, read, ["TAG"])


if __name__ == "__main__":
    typer.run(main)
