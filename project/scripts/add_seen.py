"""Set the labels that a token's word has in the training part: `token._.seen`.

Tokens of the training part get the labels in the other four fifths of it, as those in their own
fifth contain their own label. `spacy train --code` reads this file: it registers the attribute.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, DocBin, Token

from spacy_sparsecrf.targets.base import add_extension

FOLDS = 5
SHARE = 0.05  # of a word's tokens; rarer labels do not count

ENTITIES = "ent"
_DIGITS = re.compile(r"\d+")

Counts = dict[str, Counter[str]]

add_extension(Token, "seen")


def label_of(token: Token, label: str) -> str | None:
    """Return the label of a token. label: "tag", "ent", or the name of an extension attribute."""
    if label == ENTITIES:
        return f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else token.ent_iob_
    found: str | None = token.tag_ if label == "tag" else token._.get(label)
    return found


def word_of(token: Token, loose: bool) -> str:
    """Return what words are compared by. loose: without hyphens, and with 0 for each number."""
    word = token.lower_
    return _DIGITS.sub("0", word).replace("-", "") if loose else word


def count(docs: Sequence[Doc], label: str, loose: bool) -> Counts:
    """Count the labels of words."""
    counts: Counts = defaultdict(Counter)
    for doc in docs:
        for token in doc:
            found = label_of(token, label)
            if found:
                counts[word_of(token, loose)][found] += 1
    return counts


def annotate(docs: Sequence[Doc], counts: Counts, without: Counts, loose: bool) -> None:
    """Set the attribute by counts, without those of a part."""
    for doc in docs:
        for token in doc:
            word = word_of(token, loose)
            found = counts.get(word, Counter()) - without.get(word, Counter())
            least = SHARE * found.total()
            token._.seen = "|".join(sorted(label for label, n in found.items() if n >= least))


def main(
    directory: Annotated[Path, typer.Argument(help="Directory of NAME-{train,dev,test}.spacy")],
    name: Annotated[str, typer.Argument(help="Name of the corpus")],
    label: Annotated[str, typer.Argument(help='"tag", "ent", or an extension attribute')],
    loose: Annotated[bool, typer.Option(help="Compare words without hyphens and numbers")] = False,
    documents: Annotated[bool, typer.Option(help="Read NAME-PART-documents.spacy")] = False,
) -> None:
    """Write NAME-seen-{train,dev,test}.spacy, or those of documents."""
    suffix = "-documents" if documents else ""
    vocab = spacy.blank("en").vocab
    if label not in ("tag", ENTITIES):
        add_extension(Token, label)
    attrs = ["ENT_IOB", "ENT_TYPE", "SENT_START"] if label == ENTITIES else ["TAG"]
    parts = {
        part: list(DocBin().from_disk(directory / f"{name}-{part}{suffix}.spacy").get_docs(vocab))
        for part in ("train", "dev", "test")
    }
    counts = count(parts["train"], label, loose)
    for part, docs in parts.items():
        for fold in range(FOLDS):
            own = docs[fold::FOLDS]
            without = count(own, label, loose) if part == "train" else {}
            annotate(own, counts, without, loose)
        written = DocBin(attrs=attrs, store_user_data=True, docs=docs)
        written.to_disk(directory / f"{name}-seen-{part}{suffix}.spacy")


if __name__ == "__main__":
    typer.run(main)
