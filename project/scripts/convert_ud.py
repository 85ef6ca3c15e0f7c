"""Convert UD English EWT to .spacy files: gold tokens, XPOS as tags, FEATS as morphology."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import Sources, convert, read_conllu, read_tsv
from spacy.tokens import Doc
from spacy.vocab import Vocab


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield one Doc a sentence from a .conllu or a .tsv.gz file."""
    sentences = read_conllu(path) if path.suffix == ".conllu" else read_tsv(path)
    for rows in sentences:
        yield Doc(
            vocab,
            words=[row[0] for row in rows],
            tags=[row[2] for row in rows],
            morphs=[row[3] for row in rows],
            spaces=[row[-1] == "1" for row in rows],
        )


def main(
    output: Annotated[Path, typer.Argument(help="Directory for ud-{train,dev,test}.spacy")],
    sources: Sources,
) -> None:
    """Convert the three parts; relative sources are taken from the repository root."""
    vocab = spacy.blank("en").vocab
    parts = {
        output / f"ud-{split}.spacy": [f"ud-en-ewt.{split}.tsv.gz", f"en_ewt-ud-{split}.conllu"]
        for split in ("train", "dev", "test")
    }
    convert(parts, sources, partial(read_docs, vocab=vocab), ["TAG", "MORPH"])


if __name__ == "__main__":
    typer.run(main)
