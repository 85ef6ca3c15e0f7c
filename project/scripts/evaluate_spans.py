"""Score spans where Docs come with annotation, such as tags, which `spacy evaluate` leaves out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer
from spacy.tokens import Token

from spacy_sparsecrf.pipeline.corpora import AnnotatedCorpus, make_annotated_corpus
from spacy_sparsecrf.targets.base import add_extension

Model = Annotated[Path, typer.Argument(help="Trained pipeline")]
Data = Annotated[Path, typer.Argument(help=".spacy file with given tags")]
Output = Annotated[Path, typer.Argument(help="JSON file for the scores")]
Given = Annotated[list[str] | None, typer.Option(help="Annotation that Docs come with, else tags")]

TAGS = ("tag",)


def given(data: Path, annotation: Sequence[str] = TAGS) -> AnnotatedCorpus:
    """The reader of a .spacy file whose predicted Docs have the gold tokens, and annotation."""
    return make_annotated_corpus(data, gold_tokens=True, annotations=annotation)


def main(model: Model, data: Data, output: Output, annotation: Given = None) -> None:
    """Predict the spans of Docs that have some annotation, and score them."""
    annotation = annotation or [*TAGS]
    for name in annotation:
        if name.startswith("_."):
            add_extension(Token, name.removeprefix("_."))
    nlp = spacy.load(model)
    scores = nlp.evaluate(given(data, annotation)(nlp))
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, scores)
    for name, score in scores.items():
        if name[-2:] in ("_p", "_r", "_f") and score is not None:
            print(f"{name}  {100 * score:.2f}")


if __name__ == "__main__":
    typer.run(main)
