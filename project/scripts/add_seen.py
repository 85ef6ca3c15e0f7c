"""Tell of tokens which labels their words have in the training part: `token._.seen`.

A token of the training part is told of the labels in the other four fifths of that, as those in its
own would tell it its own label. `spacy train --code` takes this file: it registers the attribute.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, DocBin, Token

from spacy_sparsecrf.targets.base import add_extension

FOLDS = 5
SHARE = 0.05  # of a word's tokens: labels that are rarer do not count

Counts = dict[str, Counter[str]]

add_extension(Token, "seen")


def count(docs: Sequence[Doc], label: str) -> Counts:
    """Count the labels of words. label: "tag", or the name of an extension attribute."""
    counts: Counts = defaultdict(Counter)
    for doc in docs:
        for token in doc:
            found = token.tag_ if label == "tag" else token._.get(label)
            if found:
                counts[token.lower_][found] += 1
    return counts


def annotate(docs: Sequence[Doc], counts: Counts, without: Counts) -> None:
    """Set the attribute by counts, without those of a part."""
    for doc in docs:
        for token in doc:
            found = counts.get(token.lower_, Counter()) - without.get(token.lower_, Counter())
            least = SHARE * found.total()
            token._.seen = "|".join(sorted(label for label, n in found.items() if n >= least))


def main(
    directory: Annotated[Path, typer.Argument(help="Directory of NAME-{train,dev,test}.spacy")],
    name: Annotated[str, typer.Argument(help="Name of the corpus")],
    label: Annotated[str, typer.Argument(help='"tag", or an extension attribute')],
) -> None:
    """Write NAME-seen-{train,dev,test}.spacy."""
    vocab = spacy.blank("en").vocab
    add_extension(Token, label)
    parts = {
        part: list(DocBin().from_disk(directory / f"{name}-{part}.spacy").get_docs(vocab))
        for part in ("train", "dev", "test")
    }
    counts = count(parts["train"], label)
    for part, docs in parts.items():
        for fold in range(FOLDS):
            own = docs[fold::FOLDS]
            annotate(own, counts, count(own, label) if part == "train" else {})
        written = DocBin(attrs=["TAG"], store_user_data=True, docs=docs)
        written.to_disk(directory / f"{name}-seen-{part}.spacy")


if __name__ == "__main__":
    typer.run(main)
