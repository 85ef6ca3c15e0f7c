"""Benchmark 0: the peers have our weights and our objective.

Peers are trained for some iterations on small samples; then our objective is computed at *their*
weights, and must be the one that they print. The command fails where it is not.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import typer

from . import crfpp, crfsuite, wapiti
from .data import Problem, load
from .measurements import Record
from .options import Corpora, Output, Quick
from .ours import chain_loss, objective_at

_ITERATIONS = 15
# Relative: Wapiti prints two digits of the objective, CRFsuite six of each weight.
_CLOSE = 2e-5


def compare_wapiti(problem: Problem, directory: Path) -> dict[str, float | None]:
    """Number of weights, and objective, here and there."""
    run = wapiti.train(problem, directory, _ITERATIONS)
    return {
        "potential_weights": problem.n_potential,
        "its_weights": run.n_weights,
        "objective": objective_at(problem, *wapiti.weights(problem, directory)),
        "its_objective": run.points[-1].objective,
    }


def compare_crfsuite(problem: Problem, corpora: Path, directory: Path) -> dict[str, float | None]:
    """The same for observed features."""
    model = directory / "crfsuite.model"
    run = crfsuite.train(corpora / f"{problem.name}.npz", model, _ITERATIONS)
    return {
        "potential_weights": len(chain_loss(problem).observed_coordinates()),
        "its_weights": run.n_weights,
        "objective": objective_at(problem, *crfsuite.weights(problem, model)),
        "its_objective": run.points[-1].objective,
    }


def compare_crfpp(problem: Problem, directory: Path) -> dict[str, float | None]:
    """Number of weights, and objective at zero, which it prints first."""
    run = crfpp.train(problem, directory, 2)
    none = np.empty(0, dtype=np.int64)
    return {
        "potential_weights": problem.n_potential,
        "its_weights": run.n_weights,
        "objective": objective_at(problem, none, np.empty(0)),
        "its_objective": run.points[0].objective,
    }


def check(found: dict[str, float | None], name: str) -> dict[str, float | None]:
    """Pass a comparison on. RAISES: ValueError where the two sides differ."""
    ours, its = found["objective"], found["its_objective"]
    assert ours is not None and its is not None
    if found["potential_weights"] != found["its_weights"] or abs(ours - its) > _CLOSE * its:
        raise ValueError(f"{name} solves another problem: {found}")
    return found


def main(output: Output, corpora: Corpora, quick: Quick = False) -> None:
    """Compare with each peer that there is."""
    record = Record("agreement", quick)
    chunks = load(corpora / "conll2000-sample.npz")
    letters = load(corpora / "nettalk-3grm-sample.npz")
    with TemporaryDirectory() as scratch:
        directory = Path(scratch)
        if wapiti.available():
            for problem in (chunks, letters):
                found = compare_wapiti(problem, directory)
                name = f"{wapiti.NAME}, {problem.name}"
                record.details[name] = check(found, name)
        if crfsuite.available():
            found = compare_crfsuite(chunks, corpora, directory)
            name = f"{crfsuite.NAME} (observed features), {chunks.name}"
            record.details[name] = check(found, name)
        if crfpp.available():
            found = compare_crfpp(chunks, directory)
            name = f"{crfpp.NAME} (all weights zero), {chunks.name}"
            record.details[name] = check(found, name)
    for path in sorted(corpora.glob("*.npz")):
        problem = load(path)
        record.details.setdefault("corpora", {})[problem.name] = {
            "sentences": problem.corpus.n_sequences,
            "tokens": problem.corpus.n_tokens,
            "labels": problem.n_labels,
            "unigram tests": len(problem.corpus.unigram_keys),
            "bigram tests": len(problem.corpus.bigram_keys),
            "potential weights": problem.n_potential,
        }
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
