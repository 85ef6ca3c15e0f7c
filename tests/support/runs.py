"""Training runs from flat options, and as `spacy train` runs them."""

import io
from dataclasses import fields
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config

from spacy_sparsecrf.crf.training.training import Problem, Training

from ..conftest import SHIPPED_CONFIG, Corpus

NAMES = frozenset(own.name for own in fields(Problem))


def training_of(*args: Any, **options: Any) -> Training:
    """Return a run; options: of `Training`, and fields of `Problem`."""
    given = {name: options.pop(name) for name in NAMES & options.keys()}
    return Training(*args, problem=Problem(**given), **options)


def run_training(config: Any, output: Path | None = None) -> tuple[Language, list[list[str]]]:
    """Train as `spacy train` does; return the pipeline, and the rows of the log, split."""
    nlp = init_nlp(config)
    log = io.StringIO()
    train(nlp, output, stdout=log, stderr=io.StringIO())
    rows = [line.split() for line in log.getvalue().splitlines()]
    return nlp, [row for row in rows if row and row[0].isdigit()]


def config_for(corpus: Corpus, **training: Any) -> Any:
    """Return the shipped config with the toy corpus."""
    config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
    config["components"]["sparse_crf"]["n_threads"] = 1
    config["training"].update(training)
    return config
