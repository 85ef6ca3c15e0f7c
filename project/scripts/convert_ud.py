"""Convert UD English EWT to .spacy files: gold tokens, XPOS as tags, FEATS as morphology."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import find, read_conllu, read_tsv
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

REPOSITORY = Path(__file__).resolve().parents[2]


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
    sources: Annotated[list[str], typer.Argument(help="Directories to look in, in this order")],
) -> None:
    """Convert the three parts; relative sources are taken from the repository root."""
    vocab = spacy.blank("en").vocab
    output.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        names = (f"ud-en-ewt.{split}.tsv.gz", f"en_ewt-ud-{split}.conllu")
        path = find(sources, names, base=REPOSITORY)
        docs = DocBin(attrs=["TAG", "MORPH"], docs=read_docs(path, vocab))
        docs.to_disk(output / f"ud-{split}.spacy")
        print(f"{path}: {len(docs)} sentences")


if __name__ == "__main__":
    typer.run(main)
