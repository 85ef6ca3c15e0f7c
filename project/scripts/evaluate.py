"""Score spans on Docs with annotation, such as tags, which `spacy evaluate` does not set.

    python -m scripts.evaluate MODEL DATA OUTPUT --labels chunk

scores spans that IOB labels in an extension attribute of tokens encode.
"""

from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer
from spacy.scorer import PRFScore
from spacy.tokens import Token
from spacy.training import Example

from spacy_sparsecrf.interop.schemes import ColumnScheme, read_spans
from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus
from spacy_sparsecrf.targets.base import add_extension


def score_labels(examples: list[Example], name: str) -> dict[str, float]:
    """Return precision, recall and F1 of whole spans, as in conlleval, and label accuracy."""
    spans, right, n = PRFScore(), 0, 0
    for example in examples:
        found, gold = (
            [token._.get(name) for token in doc] for doc in (example.predicted, example.reference)
        )
        spans.score_set(*(set(read_spans(labels, ColumnScheme.iob1)) for labels in (found, gold)))
        right += sum(a == b for a, b in zip(found, gold, strict=True))
        n += len(gold)
    scores = {"p": spans.precision, "r": spans.recall, "f": spans.fscore, "acc": right / n}
    return {f"{name}_{key}": value for key, value in scores.items()}


def main(
    model: Annotated[Path, typer.Argument(help="Trained pipeline")],
    data: Annotated[Path, typer.Argument(help=".spacy file")],
    output: Annotated[Path, typer.Argument(help="JSON file for the scores")],
    annotation: Annotated[list[str] | None, typer.Option(help="Of given Docs; tags")] = None,
    labels: Annotated[str, typer.Option(help="Extension attribute of the labels")] = "",
) -> None:
    """Predict the spans of Docs that have some annotation, and score them."""
    given = annotation or ["tag"]
    for name in (*given, f"_.{labels}"):
        if name.startswith("_.") and name != "_.":
            add_extension(Token, name.removeprefix("_."))
    nlp = spacy.load(model)
    examples = list(make_annotated_corpus(data, gold_tokens=True, annotations=given)(nlp))
    if labels:
        docs = nlp.pipe(example.predicted for example in examples)
        pairs = zip(docs, examples, strict=True)
        scores = score_labels([Example(doc, each.reference) for doc, each in pairs], labels)
    else:
        scores = nlp.evaluate(examples)
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, scores)
    for name, score in scores.items():
        if name.endswith(("_p", "_r", "_f", "_acc")) and score is not None:
            print(f"{name}  {100 * score:.2f}")


if __name__ == "__main__":
    typer.run(main)
