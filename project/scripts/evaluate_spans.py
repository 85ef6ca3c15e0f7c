"""Score spans where Docs come with their part-of-speech tags, which `spacy evaluate` leaves out."""

from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer

from spacy_sparsecrf.pipeline.corpora import AnnotatedCorpus, make_annotated_corpus

Model = Annotated[Path, typer.Argument(help="Trained pipeline")]
Data = Annotated[Path, typer.Argument(help=".spacy file with given tags")]
Output = Annotated[Path, typer.Argument(help="JSON file for the scores")]


def tagged(data: Path) -> AnnotatedCorpus:
    """The reader of a .spacy file whose predicted Docs have the gold tokens and tags."""
    return make_annotated_corpus(data, gold_tokens=True, annotations=["tag"])


def main(model: Model, data: Data, output: Output) -> None:
    """Predict the spans of Docs that have their part-of-speech tags, and score them."""
    nlp = spacy.load(model)
    scores = nlp.evaluate(tagged(data)(nlp))
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, scores)
    for name in ("spans_sc_p", "spans_sc_r", "spans_sc_f"):
        print(f"{name}  {100 * scores[name]:.2f}")


if __name__ == "__main__":
    typer.run(main)
