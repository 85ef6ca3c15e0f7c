"""The development scores of our entity recognizer at pairs of penalties, with CRFsuite's weights.

At the minimum CRFsuite has the scores that ours has where it may break the rules, so that one of
the two is enough.
"""

from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from functions import gold_tokens
from wasabi import msg

from .entities import (
    FACTORY,
    FREE,
    OURS,
    make_pipeline,
    our_predictions,
    read_penalties,
    score,
    train_ours,
)


def scores(config: Path, data: str, penalties: dict[str, float]) -> dict[str, Any]:
    """Train at a pair of penalties; its figures, and the scores of the development part."""
    nlp = make_pipeline(config, **penalties)
    pipe: Any = nlp.get_pipe(FACTORY)
    figures = {**penalties, **train_ours(nlp, list(gold_tokens(Path(f"{data}-train.spacy"))(nlp)))}
    examples = list(gold_tokens(Path(f"{data}-dev.spacy"))(nlp))
    found = our_predictions(pipe, [example.predicted for example in examples])
    return {**figures, **{name: score(pipe, examples, ids) for name, ids in found.items()}}


def main(
    config: Annotated[Path, typer.Argument(help="Config of our component")],
    data: Annotated[str, typer.Argument(help="Corpus files: DATA-{train,dev}.spacy")],
    output: Annotated[Path, typer.Argument(help="JSON file for the figures")],
    pairs: Annotated[str, typer.Argument(help="Pairs l1,l2 separated by blanks")],
) -> None:
    """Train at each pair, and score whole entities of the development part."""
    figures = [scores(config, data, read_penalties(pair)) for pair in pairs.split()]
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, figures)
    shown = ["l1", "l2", "active_weights", "objective", "cpu_seconds"]
    rows = [[f[OURS]["f"], f[FREE]["f"], *(f[key] for key in shown)] for f in figures]
    msg.table(rows, header=["dev F1", "dev F1, unconstrained", *shown], divider=True)


if __name__ == "__main__":
    typer.run(main)
