"""Score a pipeline on Docs with some annotation, such as tags, which `spacy evaluate` does not set.

python -m measure.evaluate MODEL DATA OUTPUT
"""

from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer

from spacy_sparsecrf.pipeline.example_reader import make_annotated_corpus


def main(
    model: Annotated[Path, typer.Argument(help="Trained pipeline")],
    data: Annotated[Path, typer.Argument(help=".spacy file")],
    output: Annotated[Path, typer.Argument(help="JSON file for the scores")],
    annotation: Annotated[list[str] | None, typer.Option(help="Of given Docs; tags")] = None,
) -> None:
    """Annotate Docs that have some annotation, and score them."""
    nlp = spacy.load(model)
    read = make_annotated_corpus(data, gold_tokens=True, annotations=annotation or ["tag"])
    scores = nlp.evaluate(list(read(nlp)))
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, scores)
    for name, score in scores.items():
        if name.endswith(("_p", "_r", "_f", "_acc")) and score is not None:
            print(f"{name}  {100 * score:.2f}")


if __name__ == "__main__":
    typer.run(main)
