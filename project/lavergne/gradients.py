"""Table 2: a value and gradient on the active weights, and on all weights.

The paper times training with its sparse recursions and without. Here only weights of the working
set are ever looked at; what that saves is told by the same evaluation with all weights in it.
"""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import srsly
import typer
from bench.data import Problem
from bench.options import Quick
from bench.ours import chain_loss, gradient
from bench.timing import alternate, median_cost
from reports.machine import describe

from spacy_sparsecrf.corpus.encoded import EncodedCorpus

from .child import QUICK_SEQUENCES, Course, make_training, run
from .experiments import letters, ngrm

# Minutes of table 2 with l1: sparse, not sparse; and zeros.
PAPER = {"1": "41, 57 (44.6 %)", "3-": "16, 44 (99.6 %)", "3": "48, 58 (19.9 %)"}
_REPEATS = 5
# Outer iterations, after which the number of active weights changes little.
_STEPS = 8


def zeros(corpus: EncodedCorpus, n_labels: int, coordinates: np.ndarray) -> float:
    """Percentage of pairs of labels, over tokens, that have no active weight.

    coordinates: [n] int64, of weights that are not zero. Of pairs (y', y), the start label left
    out, at the contexts of tokens.
    """
    n_unigram = len(corpus.unigram_keys) * n_labels
    pairs = coordinates[coordinates >= n_unigram] - n_unigram
    n_previous = n_labels + int(corpus.start_label)
    test, pair = np.divmod(pairs, n_previous * n_labels)
    starts = pair // n_labels == n_labels
    test, pair = test[~starts], pair[~starts]
    order = np.argsort(test, kind="stable")
    test, pair = test[order], pair[order]
    bounds = np.searchsorted(test, np.arange(len(corpus.bigram_keys) + 1))
    n_tokens = np.bincount(corpus.context, minlength=len(corpus.ctx_indptr) - 1)
    active = 0
    for context, n in enumerate(n_tokens):
        if not n:
            continue
        tests = corpus.ctx_indices[corpus.ctx_indptr[context] : corpus.ctx_indptr[context + 1]]
        there = [pair[bounds[o] : bounds[o + 1]] for o in tests]
        active += n * len(np.unique(np.concatenate([pair[:0], *there])))
    return 100.0 * (1.0 - active / (n_tokens.sum() * n_labels**2))


def time_gradients(family: str, directories: list[str], quick: bool) -> dict[str, Any]:
    """Train on a feature set, and evaluate at the weights with fewer weights and with all."""
    experiment = letters("phonemes", family, templates=ngrm(family))
    n = QUICK_SEQUENCES if quick else 0
    course = Course()
    training, parts, _ = make_training(experiment, directories, n, course)
    run(training, parts.dev, course, experiment.cap, _STEPS)
    coordinates, theta = training.weights
    loss = chain_loss(Problem(family, parts.corpus, parts.labels))
    everything = loss.all_coordinates()
    spread = np.zeros(len(everything))
    spread[np.searchsorted(everything, coordinates)] = theta
    sides = {"active": (loss.restrict(coordinates), theta)}
    sides["all"] = loss.restrict(everything), spread
    # The first evaluation writes to memory for the first time.
    for side in sides.values():
        gradient(*side)
    costs = alternate(1 if quick else _REPEATS, {s: partial(gradient, *sides[s]) for s in sides})
    return {
        **{f"{side}_s": median_cost(found).cpu for side, found in costs.items()},
        "active": len(coordinates),
        "potential": len(everything),
        "zeros": zeros(parts.corpus, len(parts.labels), coordinates),
        "paper": PAPER[family],
    }


def main(
    output: Annotated[Path, typer.Argument(help="JSON file for the figures")],
    directories: Annotated[list[str], typer.Argument(help="Directories of the data, in order")],
    quick: Quick = False,
) -> None:
    """Time the three feature sets of table 2, where that has not been done."""
    if output.exists() and srsly.read_json(output)["quick"] == quick:
        return
    rows = {f"{f.rstrip('-')}-grm{f[1:]}": time_gradients(f, directories, quick) for f in PAPER}
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, {"quick": quick, "rows": rows, "machine": describe()})


if __name__ == "__main__":
    typer.run(main)
