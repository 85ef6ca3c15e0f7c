"""Convert the Brown corpus to .spacy files: its full tags."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import Rows, find, read_tsv
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from wasabi import msg

from .data import PROJECT, sample


def make_docs(sentences: Sequence[Rows], vocab: Vocab) -> Iterator[Doc]:
    """Yield one Doc a sentence."""
    for rows in sentences:
        yield Doc(vocab, words=[row[0] for row in rows], tags=[row[1] for row in rows])


def main(
    output: Annotated[Path, typer.Argument(help="Directory for brown-{train,dev,test}.spacy")],
    directories: Annotated[list[str], typer.Argument(help="Directories to look in, in order")],
    sentences: Annotated[int, typer.Option(help="Training sentences to take, 0 for all")] = 0,
) -> None:
    """Convert the three parts."""
    vocab = spacy.blank("en").vocab
    output.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        path = find(directories, [f"brown.{part}.tsv.gz"], base=PROJECT.parent)
        rows = sample(list(read_tsv(path)), sentences)
        DocBin(attrs=["TAG"], docs=make_docs(rows, vocab)).to_disk(output / f"brown-{part}.spacy")
        msg.good(f"{path.name}: {len(rows)} sentences")


if __name__ == "__main__":
    typer.run(main)
