"""Convert CoNLL-2000 to .spacy files: chunks as tags and as spans, the given tags beside them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import find, read_tsv
from functions import GIVEN_TAGS
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_sparsecrf.convert.schemes import Scheme, read_spans

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = {"train": "train7936", "dev": "dev1000", "test": "test"}


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield one Doc a sentence, the given tags in its user data."""
    for rows in read_tsv(path):
        chunks = [row[2] for row in rows]
        doc = Doc(
            vocab,
            words=[row[0] for row in rows],
            tags=chunks,
            user_data={GIVEN_TAGS: [row[1] for row in rows]},
        )
        doc.spans["sc"] = [Span(doc, *span) for span in read_spans(chunks, Scheme.iob1)]
        yield doc


def main(
    output: Annotated[Path, typer.Argument(help="Directory for conll2000-{train,dev,test}.spacy")],
    sources: Annotated[list[str], typer.Argument(help="Directories to look in, in this order")],
) -> None:
    """Convert the three parts; relative sources are taken from the repository root."""
    vocab = spacy.blank("en").vocab
    output.mkdir(parents=True, exist_ok=True)
    for split, part in PARTS.items():
        path = find(sources, [f"conll2000.{part}.tsv.gz"], base=REPOSITORY)
        docs = DocBin(attrs=["TAG"], store_user_data=True, docs=read_docs(path, vocab))
        docs.to_disk(output / f"conll2000-{split}.spacy")
        print(f"{path}: {len(docs)} sentences")


if __name__ == "__main__":
    typer.run(main)
