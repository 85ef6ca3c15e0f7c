"""Put the figures of a trained sparse CRF together: scores, cost, features, size on disk."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import srsly
import typer
from spacy.language import Language
from spacy.util import registry
from wasabi import msg

from spacy_sparsecrf.corpus.encoded import CorpusBuilder
from spacy_sparsecrf.pipeline.component import SparseCRFPipe

DOCS_PER_BATCH = 1000


def count_potential(nlp: Language, pipe: SparseCRFPipe) -> int:
    """Count the weights that training chose from: those of all tests of the training Docs."""
    corpora = registry.resolve({"corpora": nlp.config.interpolate()["corpora"]})["corpora"]
    docs = [example.predicted for example in corpora["train"](nlp)]
    builder = CorpusBuilder()
    for start in range(0, len(docs), DOCS_PER_BATCH):
        observations = pipe.features(docs[start : start + DOCS_PER_BATCH], pipe.settings.sequences)
        builder.add(observations, np.full(observations.n_tokens, -1, dtype=np.int32))
    return builder.build().n_potential(len(pipe.label_data))


def size_of(directory: Path) -> int:
    """Sum the sizes of a directory's files, in bytes."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def main(
    model: Annotated[Path, typer.Argument(help="Trained pipeline")],
    output: Annotated[Path, typer.Argument(help="JSON file for all figures")],
    metrics: Annotated[list[Path], typer.Argument(help="JSON files to take over")],
) -> None:
    """Collect the figures, write and print them."""
    figures: dict[str, Any] = {}
    for path in metrics:
        figures |= srsly.read_json(path)
    nlp = spacy.load(model)
    pipe = next(pipe for _, pipe in nlp.pipeline if isinstance(pipe, SparseCRFPipe))
    figures |= {
        "labels": len(pipe.label_data),
        "active_features": pipe.model.n_active,
        "potential_features": count_potential(nlp, pipe),
        "model_bytes": size_of(model),
        "component_bytes": size_of(model / pipe.name),
    }
    srsly.write_json(output, figures)
    msg.table([(name, value) for name, value in figures.items() if not isinstance(value, dict)])


if __name__ == "__main__":
    typer.run(main)
