"""Benchmark 10: tokens a second from Doc to tests, on the test part of English EWT.

The default templates alone, with six regular expressions, and with character n-grams. Cold: with a
new featurizer, which meets every word for the first time; steady: again, with the words that it has
met. Kernels are compiled before, and expressions parsed.
"""

from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, DocBin

from spacy_sparsecrf.features.defaults import DEFAULT_TEMPLATES
from spacy_sparsecrf.features.featurizer import Featurizer

from .measurements import Record
from .options import Output, Quick, Repeats
from .timing import Cost, alternate, measured

DATA = "ud-en-ewt test"
COLD, STEADY = "cold", "steady"
EXPRESSIONS = (
    r"u:regex('^\p{Lu}\p{Ll}+$')[0]",
    r"u:regex('^[0-9.,]+$')[0]",
    r"u:regex('^\p{Lu}{2,}$')[0]",
    r"u:regex('\p{L}-\p{L}')[0]",
    r"u:match('[aeiou]+$')[0]",
    r"u:match('(ing|ed|ly|s)$')[0]",
)
SETS = {
    "default templates": DEFAULT_TEMPLATES,
    "default templates and 6 regular expressions": (*DEFAULT_TEMPLATES, *EXPRESSIONS),
    "default templates and ngrams(2, 4)": (*DEFAULT_TEMPLATES, "u:ngrams(2, 4)[0]"),
}
_QUICK_DOCS = 100


def run(templates: tuple[str, ...], docs: list[Doc]) -> tuple[Cost, Cost]:
    """Read Docs with a new featurizer, and once more; both costs."""
    features = Featurizer(templates)
    with measured() as cold:
        features(docs)
    with measured() as steady:
        features(docs)
    return cold, steady


def main(
    output: Output,
    test: Annotated[Path, typer.Argument(help="The .spacy file of the test part")],
    repeats: Repeats = 3,
    quick: Quick = False,
) -> None:
    """Read the test part with all sets of templates in turn."""
    docs = list(DocBin().from_disk(test).get_docs(spacy.blank("en").vocab))
    docs, repeats = (docs[:_QUICK_DOCS], 1) if quick else (docs, repeats)
    record = Record("templates", quick, {"repeats": repeats})
    for templates in SETS.values():
        run(templates, docs[:1])
    sides = {name: lambda given=given: run(given, docs) for name, given in SETS.items()}
    costs = alternate(repeats, sides)
    n_tokens = sum(map(len, docs))
    words = {token.orth for doc in docs for token in doc}
    record.details = {"corpus": {"tokens": n_tokens, "distinct words": len(words)}}
    for name, pairs in costs.items():
        both = zip((COLD, STEADY), zip(*pairs, strict=True), strict=True)
        record.add(DATA, name, {tool: list(part) for tool, part in both}, items=n_tokens)
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
