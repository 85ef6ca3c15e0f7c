"""Score spans where Docs come with annotation, such as tags, which `spacy evaluate` leaves out."""

from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer

from spacy_sparsecrf.pipeline.corpora import AnnotatedCorpus, make_annotated_corpus

Model = Annotated[Path, typer.Argument(help="Trained pipeline")]
Data = Annotated[Path, typer.Argument(help=".spacy file with given tags")]
Output = Annotated[Path, typer.Argument(help="JSON file for the scores")]
Given = Annotated[str, typer.Option(help="What annotation Docs come with")]


def given(data: Path, annotation: str = "tag") -> AnnotatedCorpus:
    """The reader of a .spacy file whose predicted Docs have the gold tokens, and annotation."""
    return make_annotated_corpus(data, gold_tokens=True, annotations=[annotation])


def main(model: Model, data: Data, output: Output, annotation: Given = "tag") -> None:
    """Predict the spans of Docs that have some annotation, and score them."""
    nlp = spacy.load(model)
    scores = nlp.evaluate(given(data, annotation)(nlp))
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, scores)
    for name, score in scores.items():
        if name[-2:] in ("_p", "_r", "_f") and score is not None:
            print(f"{name}  {100 * score:.2f}")


if __name__ == "__main__":
    typer.run(main)
