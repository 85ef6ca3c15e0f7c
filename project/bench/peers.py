"""Peers: CRFsuite (python-crfsuite), and Wapiti if it is on PATH.

    python -m bench.peers CORPUS MODEL ITERATIONS

trains CRFsuite in this process. Peers read our encoded corpus, with attributes and labels named by
number. A peer thus has our weights by construction: a weight for each label, or for each label
pair, of an attribute.
"""

import importlib.util
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Annotated, Any

import numpy as np
import typer
from measure.data import Problem
from measure.processes import Child
from measure.race import Course
from numpy.typing import NDArray

from .ours import L1, L2

WAPITI, CRFSUITE = "Wapiti", "CRFsuite"
# Memory of Wapiti's OWL-QN per weight, in float64: weights, gradient, direction, pseudo-gradient
# and their predecessors, and five pairs of differences.
BYTES_PER_WEIGHT = 128
# Observed features only, which is CRFsuite's fastest setting. Its c2 |w|^2 is our l2 / 2.
PARAMETERS: dict[str, Any] = {
    "c1": L1,
    "c2": L2 / 2,
    "feature.possible_states": False,
    "feature.possible_transitions": False,
    # Its own stopping criteria are turned off.
    "epsilon": 0.0,
    "delta": 0.0,
}
Weights = tuple[NDArray[np.int64], NDArray[np.float64]]


def has_wapiti() -> bool:
    """Return whether Wapiti is on PATH."""
    return shutil.which("wapiti") is not None


def has_crfsuite() -> bool:
    """Return whether python-crfsuite is installed."""
    return importlib.util.find_spec("pycrfsuite") is not None


# Training in a child process


@dataclass(frozen=True)
class Log:
    """Log format of a toolkit: first line of training, lines of iterations, number of weights."""

    begin: str
    objective: re.Pattern[str]
    weights: re.Pattern[str]


LOGS = {
    WAPITI: Log(
        "* Train the model",
        re.compile(r"\s*\[\s*\d+\] obj=(\S+)\s+act=\d+\s+err=.*time=[\d.]+s/[\d.]+s"),
        re.compile(r"\s*nb features:\s*(\d+)"),
    ),
    CRFSUITE: Log(
        "L-BFGS optimization", re.compile(r"Loss: (\S+)"), re.compile(r"Number of features: (\d+)")
    ),
}


def follow(
    command: Sequence[str],
    log: Log,
    cap: float = float("inf"),
    stop_at: float = float("-inf"),
) -> Course:
    """Run a command, and record the end of each iteration.

    cap: maximum seconds of training; stop_at: objective at which the command is stopped.
    RAISES: subprocess.CalledProcessError if the command fails without being stopped.
    """
    course, child, wall, cpu = Course(), Child(command), 0.0, 0.0
    # A timer, because a long iteration writes no line on which to check the cap.
    timer = Timer(min(cap, 1e6), child.stop)
    try:
        for line in child.lines():
            if line.startswith(log.begin):
                wall, cpu = time.perf_counter(), child.cpu()
                timer.start()
            elif found := log.weights.match(line):
                course.n_weights = course.n_weights or int(found[1])
            elif found := log.objective.match(line):
                course.wall.append(time.perf_counter() - wall)
                course.cpu.append(child.cpu() - cpu)
                course.objective.append(None if found[1] == "NA" else float(found[1]))
                if course.lowest <= stop_at:
                    child.stop()
                    break
    finally:
        timer.cancel()
        course.peak_mb = child.wait().peak_mb
    course.cut = child.stopped
    return course


def train_wapiti(
    problem: Problem,
    directory: Path,
    n_iterations: int,
    *,
    algorithm: str = "l-bfgs",
    threads: int = 1,
    **limits: float,
) -> Course:
    """Train Wapiti on a problem, and leave its model in `directory`. limits: see `follow`."""
    train, dev, pattern = write_wapiti(problem, directory)
    # -w 0 -e 0 disable Wapiti's stopping criteria.
    options = ["-1", str(L1), "-2", f"{L2:.5f}", "-w", "0", "-e", "0", "-t", str(threads)]
    options += ["-i", str(n_iterations), *([] if pattern is None else ["-p", str(pattern)])]
    paths = ["-d", str(dev), str(train), str(directory / "wapiti.model")]
    command = ["wapiti", "train", "-a", algorithm, *options, *paths]
    return follow(command, LOGS[WAPITI], **limits)


def train_crfsuite(corpus: Path, model: Path, n_iterations: int, **limits: float) -> Course:
    """Train CRFsuite on an encoded corpus in a child process. limits: see `follow`."""
    command = ["python", "-m", "bench.peers", str(corpus), str(model), str(n_iterations)]
    return follow(command, LOGS[CRFSUITE], **limits)


# Models of peers


def wapiti_weights(problem: Problem, directory: Path) -> Weights:
    """Return our coordinates, ascending, and the weights of Wapiti's last model."""
    model, dumped = directory / "wapiti.model", directory / "wapiti.dump"
    command = ["wapiti", "dump", "-p", "17", str(model), str(dumped)]
    subprocess.run(command, check=True, capture_output=True)
    n, base = problem.n_labels, len(problem.corpus.unigram_keys) * problem.n_labels
    found: dict[int, float] = {}
    for row in filter(None, dumped.read_text(encoding="ascii").splitlines()):
        name, previous, label, value = row.split("\t")
        # "u17", with or without patterns.
        own = int(name[1:]) * n + int(label)
        if name[0] != "u":
            own = base + (int(name[1:]) * n + int(previous)) * n + int(label)
        found[own] = float(value)
    return _sorted(found)


def crfsuite_weights(problem: Problem, model: Path) -> Weights:
    """Return our coordinates, ascending, and the weights of CRFsuite's model (six digits)."""
    information = open_tagger(model).info()
    n, base = problem.n_labels, len(problem.corpus.unigram_keys) * problem.n_labels
    states, transitions = information.state_features, information.transitions
    found = {int(name[1:]) * n + int(y): value for (name, y), value in states.items()}
    found |= {base + int(a) * n + int(b): value for (a, b), value in transitions.items()}
    return _sorted(found)


def open_tagger(model: Path) -> Any:
    """Open a model of CRFsuite."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    return tagger


def _sorted(found: dict[int, float]) -> Weights:
    coordinates = np.array(sorted(found), dtype=np.int64)
    return coordinates, np.array([found[k] for k in coordinates.tolist()])


# Input of peers


def tokens_of(problem: Problem, sequence: int) -> Iterator[tuple[list[int], list[int], str]]:
    """Yield for each token its unigram attributes, its label-pair attributes, and its label.

    RAISES: ValueError for a corpus with a start label, which peers do not support.
    """
    corpus = problem.corpus
    if corpus.start_label:
        raise ValueError("peers have no start label: encode the corpus without it")
    for t in range(int(corpus.offsets[sequence]), int(corpus.offsets[sequence + 1])):
        c = corpus.context[t]
        yield (
            corpus.uni_indices[corpus.uni_indptr[t] : corpus.uni_indptr[t + 1]].tolist(),
            corpus.ctx_indices[corpus.ctx_indptr[c] : corpus.ctx_indptr[c + 1]].tolist(),
            str(corpus.labels[t]),
        )


def write_wapiti(problem: Problem, directory: Path) -> tuple[Path, Path, Path | None]:
    """Write a training file, the shortest sentence as development file, and patterns if possible.

    If all tokens have the same number of attributes, each attribute is a column with a pattern.
    Otherwise columns are named u... or b..., which Wapiti accepts as observations without patterns;
    lines may then differ in length, without placeholders. (SGD-L1 needs patterns: without them it
    writes beyond its arrays.)
    """
    corpus, shape = problem.corpus, _shape(problem)
    train, dev = directory / f"{problem.name}.wapiti", directory / f"{problem.name}.dev.wapiti"
    with train.open("w", encoding="ascii") as file:
        for s in range(corpus.n_sequences):
            file.write(_wapiti_sentence(problem, s, shape))
    shortest = int(np.argmin(np.diff(corpus.offsets)))
    dev.write_text(_wapiti_sentence(problem, shortest, shape), encoding="ascii")
    if shape is None:
        return train, dev, None
    # Patterns without a prefix of their own: equal attributes in two columns share weights.
    unigrams = [f"U%x[0,{column}]" for column in range(shape[0])]
    bigrams = [f"B%x[0,{shape[0] + column}]" for column in range(shape[1])]
    pattern = directory / f"{problem.name}.pattern"
    pattern.write_text("\n".join([*unigrams, *bigrams, ""]), encoding="ascii")
    return train, dev, pattern


def _shape(problem: Problem) -> tuple[int, int] | None:
    """Return the numbers of unigram and pair attributes per token, or None if tokens differ."""
    corpus = problem.corpus
    begins = np.zeros(corpus.n_tokens, dtype=np.bool_)
    begins[corpus.offsets[:-1]] = True
    unigrams = np.unique(np.diff(corpus.uni_indptr))
    bigrams = np.unique(np.diff(corpus.ctx_indptr)[corpus.context[~begins]])
    if len(unigrams) != 1 or len(bigrams) != 1:
        return None
    return int(unigrams[0]), int(bigrams[0])


def _wapiti_sentence(problem: Problem, sequence: int, shape: tuple[int, int] | None) -> str:
    tokens = list(tokens_of(problem, sequence))
    if shape is None:
        rows = [[*(f"u{i}" for i in u), *(f"b{i}" for i in b), y] for u, b, y in tokens]
    else:
        # Wapiti ignores label pairs at the first token, but registers new attributes of pairs. The
        # attributes of the second token are registered anyway.
        dummy = tokens[1][1] if len(tokens) > 1 else [0] * shape[1]
        rows = [[*tokens[0][0], *dummy, tokens[0][2]], *([*u, *b, y] for u, b, y in tokens[1:])]
    return "\n".join([*(" ".join(map(str, row)) for row in rows), "", ""])


def crfsuite_sequences(problem: Problem) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Yield attributes and labels of each sequence for CRFsuite.

    RAISES: ValueError if there are label-pair attributes other than plain transitions.
    """
    if len(problem.corpus.bigram_keys) > 1:
        raise ValueError("CRFsuite has plain transitions only")
    for s in range(problem.corpus.n_sequences):
        tokens = list(tokens_of(problem, s))
        yield [[f"u{i}" for i in found] for found, _, _ in tokens], [y for _, _, y in tokens]


def main(
    corpus: Annotated[Path, typer.Argument(help="Encoded corpus")],
    model: Annotated[Path, typer.Argument(help="Where to leave the model")],
    n_iterations: Annotated[int, typer.Argument(help="Iterations")],
) -> None:
    """Train CRFsuite, which writes a few lines after each iteration."""
    import pycrfsuite

    parameters = {**PARAMETERS, "max_iterations": n_iterations}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=True)
    for attributes, labels in crfsuite_sequences(Problem.load(corpus)):
        trainer.append(attributes, labels)
    trainer.train(str(model))


if __name__ == "__main__":
    typer.run(main)
