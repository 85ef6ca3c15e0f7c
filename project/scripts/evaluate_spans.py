"""Score spans where Docs come with their part-of-speech tags, which `spacy evaluate` leaves out."""

from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer
from functions import gold_tokens

Model = Annotated[Path, typer.Argument(help="Trained pipeline")]
Data = Annotated[Path, typer.Argument(help=".spacy file with given tags")]
Output = Annotated[Path, typer.Argument(help="JSON file for the scores")]


def main(model: Model, data: Data, output: Output) -> None:
    """Predict the spans of Docs that have their part-of-speech tags, and score them."""
    nlp = spacy.load(model)
    scores = nlp.evaluate(gold_tokens(data, given_tags=True)(nlp))
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, scores)
    for name in ("spans_sc_p", "spans_sc_r", "spans_sc_f"):
        print(f"{name}  {100 * scores[name]:.2f}")


if __name__ == "__main__":
    typer.run(main)
