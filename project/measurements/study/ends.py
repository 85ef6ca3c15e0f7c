"""How runs end with default settings, on small random problems: what they say, and the true gap.

A gap is the objective minus the minimum, in percent of it. OWL-QN with a history of 100 finds the
minimum, to a tolerance of 1e-8. Each solver gets the same problems, with a penalty that
it supports. Claims are wrong if a run says "converged" with a gap above its bound, or above 0.1 %
(with --odd, 1 %). --odd: settings that users seldom have: an l2 of 1e-4, sequences that weigh 1 or
1,000, and one iteration of the solver in an outer iteration.
"""

from functools import cache
from typing import Annotated, Any

import numpy as np
import typer

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.training.training import Problem, Training
from spacy_sparsecrf.registry import crf_solvers

_CLAIMED, _CLAIMED_ODDLY = 1e-3, 1e-2
_NAMES = "OWLQN SAG Hybrid NewtonCG BCD RPROP OEG GIS SCGIS SGDL1 SGD AdaGrad SMD Perceptron"


def make_corpus(rng: np.random.Generator, weight: float) -> tuple[EncodedCorpus, int]:
    """Return random sequences of a weight, some of one token, and their number of labels."""
    n_labels, n_columns = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    lengths = rng.integers(1, rng.choice([2, 5, 20]), int(rng.choice([1, 4, 12, 40])))
    offsets, builder = np.cumsum([0, *lengths]), CorpusBuilder()
    size = offsets[-1], n_columns
    hashes = rng.integers(1, rng.choice([3, 10, 60]), size).astype(np.uint64)
    labels = hashes[:, 0] % np.uint64(n_labels)
    other = rng.random(size[0]) < rng.choice([0.0, 0.1, 0.5])
    labels[other] = rng.integers(0, n_labels, int(other.sum()))
    hashes += np.arange(n_columns, dtype=np.uint64) * np.uint64(1000)
    columns = np.arange(n_columns, dtype=np.int32)
    first = int(rng.integers(0, n_columns + 1))
    observations = Observations(hashes, offsets, columns, columns[first:])
    weights = np.full(len(lengths), weight)
    builder.add(observations, labels.astype(np.int32), weights)
    return builder.build(), n_labels


def train(
    made: Any, seed: int, l1: float, l2: float, kind: str, weight: float, cap: int
) -> Training:
    """Train on a random corpus until the run ends, at most `cap` outer iterations."""
    corpus, n_labels = make_corpus(np.random.default_rng(seed), weight)
    own: dict[str, Any] = {"l1": l1, "l2": l2, "problem": Problem(kind=kind)}
    labels = [f"L{y}" for y in range(n_labels)]
    training = Training(corpus, labels, made, n_threads=1, dtype="float64", **own)
    for _ in range(cap):
        report = training.step()
        if getattr(report, "end", report.converged):
            break
    return training


@cache
def least(*problem: Any) -> float:
    """Return the minimum of a problem."""
    exact = OWLQN(history=100, tolerance=1e-8, window=0.0, inner_iterations=50)
    return train(exact, *problem, cap=40).objective


def main(
    only: Annotated[list[str] | None, typer.Option("--only", help="Solvers; all")] = None,
    n: Annotated[int, typer.Option(help="Problems")] = 100,
    cap: Annotated[int, typer.Option(help="Outer iterations")] = 300,
    odd: Annotated[bool, typer.Option("--odd", help="Settings that users seldom have")] = False,
) -> None:
    """Print a row for each solver."""
    typer.echo(
        "| solver | converged | no longer improves | at the cap | median | 90 % | most | wrong |"
    )
    typer.echo("|---|---|---|---|---|---|---|---|")
    for name in only or _NAMES.split():
        ends, gaps, n_wrong = [0, 0, 0], [], 0
        for seed in range(n):
            rng = np.random.default_rng([seed, 1])
            solver = crf_solvers.get(f"spacy_sparsecrf.{name}.v1")()
            l1, l2 = float(rng.choice([0.0, 0.001, 0.1, 0.5])), float(rng.choice([0.01, 0.1, 1.0]))
            l1 = 0.0 if "no l1" in solver.requires else l1
            weight = 1.0
            if odd:
                l2, weight, solver.inner_iterations = 1e-4, float(rng.choice([1.0, 1e3])), 1
            l2 = 0.0 if "no l2" in solver.requires else l2
            kind = "maxent" if "single tokens" in solver.requires else "chain"
            problem = seed, l1, l2, kind, weight
            run, best = train(solver, *problem, cap), least(*problem)
            report, ended = run.report, getattr(run, "end", run.converged)
            gap, bound = report.objective - best, max(report.gap, 1e-9 * abs(best))
            ends[0 if run.converged else 1 if ended else 2] += 1
            claimed = _CLAIMED_ODDLY if odd else _CLAIMED
            n_wrong += run.converged and gap > min(bound, claimed * abs(best))
            gaps.append(100.0 * gap / max(abs(best), 1e-9))
        median, most = np.median(gaps), max(gaps)
        shares = f"{median:.2g} | {np.quantile(gaps, 0.9):.2g} | {most:.2g}"
        typer.echo(f"| `{name}` | {ends[0]} | {ends[1]} | {ends[2]} | {shares} | {n_wrong} |")


if __name__ == "__main__":
    typer.run(main)
