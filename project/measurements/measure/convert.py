"""Convert the data sets to .spacy files: `python -m measure.convert NAME`."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, DocBin

from measure.data import Data, find
from spacy_sparsecrf.interop.columns import Row, Sentence, Source
from spacy_sparsecrf.interop.docs import read_docs
from spacy_sparsecrf.interop.formats import Format, open_source
from spacy_sparsecrf.interop.schemes import ColumnScheme

# Marks the beginning of a document.
_MARK = "-DOCSTART-"
# A Spanish news document begins with a dateline that ends with the agency's name, "( EFE"; and the
# number of tokens of a sentence to search for it.
AGENCY, N_LOOKED_AT = "EFE", 25


@dataclass(frozen=True)
class Set:
    """A data set.

    stem: of its files; columns: see `spacy_sparsecrf convert`; stored: attributes to store; lang;
    train, dev: names of these parts; most: maximum number of sentences of a document.
    """

    stem: str
    columns: str
    stored: tuple[str, ...]
    lang: str = "en"
    train: str = "train"
    dev: str = "dev"
    most: int = 1


_ENTITIES = ("ENT_IOB", "ENT_TYPE", "SENT_START")
SETS = {
    "ud": Set("ud-en-ewt", "orth,_,tag,morph,space_after", ("TAG", "MORPH")),
    "conll2000": Set("conll2000", "orth,tag,spans:sc", ("TAG",), train="train7936", dev="dev1000"),
    "conll2002-es": Set("conll2002-es", "orth,_,ner", _ENTITIES, "es", most=50),
    "jnlpba": Set("jnlpba", "orth,ner", _ENTITIES, "en", "train16807", "dev1739", most=10),
}


def with_marks(sentences: Iterator[Sentence]) -> Iterator[Sentence]:
    """Insert a mark before each sentence with an agency's dateline near its beginning."""
    for sentence in sentences:
        words = [row.values[0] for row in sentence[:N_LOOKED_AT]]
        if any(a == "(" and b.startswith(AGENCY) for a, b in pairwise(words)):
            yield [Row(0, [_MARK] * len(sentence[0].values)), *sentence]
        else:
            yield sentence


def docs_of(name: str, path: Path, most: int = 1, marks: bool = False) -> Iterator[Doc]:
    """Return the Docs of a file.

    most: maximum sentences of a Doc; marks: split at datelines.
    """
    own, vocab = SETS[name], spacy.blank(SETS[name].lang).vocab
    kind = Format.conllu if path.suffix == ".conllu" else Format.tsv
    source = open_source(path, kind, () if kind is Format.conllu else tuple(own.columns.split(",")))
    columns = tuple("_" if column in ("lemma", "pos") else column for column in source.columns)
    read = source.entries
    source = Source(path, lambda _: with_marks(read()) if marks else read(), columns)
    return read_docs(source, vocab, n_sentences=most, scheme=ColumnScheme.iob1)


def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(SETS)}")],
    output: Annotated[Path, typer.Argument(help="Directory for NAME-{train,dev,test}.spacy")],
    data: Data = "",
    documents: Annotated[bool, typer.Option(help="Doc a document, not a sentence")] = False,
) -> None:
    """Convert the three parts."""
    own = SETS[name]
    output.mkdir(parents=True, exist_ok=True)
    suffix, most = ("-documents", own.most) if documents else ("", 1)
    for part, file in (("train", own.train), ("dev", own.dev), ("test", "test")):
        public = [f"en_ewt-ud-{part}.conllu"] if name == "ud" else []
        path = find(data, [f"{own.stem}.{file}.tsv.gz", *public])
        made = docs_of(name, path, most, marks=documents)
        docs = DocBin(attrs=own.stored, docs=made)
        docs.to_disk(output / f"{name}-{part}{suffix}.spacy")
        print(f"{path}: {len(docs)} Docs")


if __name__ == "__main__":
    typer.run(main)
