"""Convert corpora of named entities, a token a line, its IOB2 label last, to .spacy files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import Rows, Sources, convert, read_tsv
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_sparsecrf.interop.schemes import ColumnScheme, read_spans

# Documents, of which the files do not tell where they begin: words of a dateline in Spanish news.
AGENCY, N_LOOKED_AT = "EFE", 25  # a dateline's last words, and tokens among which it is looked for


class Name(str, Enum):
    """Names of the corpora."""

    SPANISH = "conll2002-es"
    GENIA = "jnlpba"


@dataclass(frozen=True)
class Source:
    """The language of a corpus, the names of its parts, and most sentences of a document."""

    lang: str
    train: str
    dev: str
    most: int
    test: str = "test"


SOURCES = {
    Name.SPANISH: Source("es", "train", "dev", most=50),
    Name.GENIA: Source("en", "train16807", "dev1739", most=10),
}


def read_docs(path: Path, vocab: Vocab, most: int = 1) -> Iterator[Doc]:
    """Yield Docs with their entities, of so many sentences at most, see `gather`."""
    for sentences in gather(read_tsv(path), most):
        rows = [row for sentence in sentences for row in sentence]
        starts = [i == 0 for sentence in sentences for i in range(len(sentence))]
        doc = Doc(vocab, words=[row[0] for row in rows], sent_starts=starts)
        doc.set_ents(
            [Span(doc, *span) for span in read_spans([row[-1] for row in rows], ColumnScheme.iob1)]
        )
        yield doc


def gather(sentences: Iterable[Rows], most: int) -> Iterator[list[Rows]]:
    """Gather sentences into documents.

    One begins with a sentence that has an agency's dateline, "( EFE", near its beginning, or where
    the last one has so many sentences.
    """
    document: list[Rows] = []
    for rows in sentences:
        words = [row[0] for row in rows[:N_LOOKED_AT]]
        has_line = any(a == "(" and b.startswith(AGENCY) for a, b in pairwise(words))
        if document and (has_line or len(document) == most):
            yield document
            document = []
        document.append(rows)
    if document:
        yield document


def main(
    name: Annotated[Name, typer.Argument(help="Corpus")],
    output: Annotated[Path, typer.Argument(help="Directory for NAME-{train,dev,test}.spacy")],
    sources: Sources,
    documents: Annotated[bool, typer.Option(help="Doc a document, not a sentence")] = False,
) -> None:
    """Convert the three parts; relative sources are taken from the repository root."""
    source = SOURCES[name]
    vocab = spacy.blank(source.lang).vocab
    parts = {
        output / f"{name.value}-{split}.spacy": [f"{name.value}.{getattr(source, split)}.tsv.gz"]
        for split in ("train", "dev", "test")
    }
    suffix = "-documents" if documents else ""
    parts = {path.with_stem(path.stem + suffix): names for path, names in parts.items()}
    read = partial(read_docs, vocab=vocab, most=source.most if documents else 1)
    convert(parts, sources, read, ["ENT_IOB", "ENT_TYPE", "SENT_START"])


if __name__ == "__main__":
    typer.run(main)
