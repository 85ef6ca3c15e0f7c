"""Convert CoNLL-2000 to .spacy files: tags as given, chunks as `token._.chunk` and as spans."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import Sources, convert, read_tsv
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from spacy_sparsecrf.interop.schemes import ColumnScheme, read_spans

PARTS = {"train": "train7936", "dev": "dev1000", "test": "test"}


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield one Doc a sentence."""
    if not Token.has_extension("chunk"):
        Token.set_extension("chunk", default=None)
    for rows in read_tsv(path):
        chunks = [row[2] for row in rows]
        doc = Doc(vocab, words=[row[0] for row in rows], tags=[row[1] for row in rows])
        for token, chunk in zip(doc, chunks, strict=True):
            token._.chunk = chunk
        doc.spans["sc"] = [Span(doc, *span) for span in read_spans(chunks, ColumnScheme.iob1)]
        yield doc


def main(
    output: Annotated[Path, typer.Argument(help="Directory for conll2000-{train,dev,test}.spacy")],
    sources: Sources,
) -> None:
    """Convert the three parts; relative sources are taken from the repository root."""
    vocab = spacy.blank("en").vocab
    parts = {
        output / f"conll2000-{split}.spacy": [f"conll2000.{part}.tsv.gz"]
        for split, part in PARTS.items()
    }
    convert(parts, sources, partial(read_docs, vocab=vocab), ["TAG"], user_data=True)


if __name__ == "__main__":
    typer.run(main)
