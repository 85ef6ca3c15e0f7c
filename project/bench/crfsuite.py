"""CRFsuite (python-crfsuite) as a peer, trained in a process of its own."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from .data import L1, L2, PROJECT, Problem, load
from .follow import Progress, Run, follow
from .peer_files import crfsuite_sequences

NAME = "CRFsuite"
# Observed features only, which is where CRFsuite is at its best. Its c2 |w|^2 is our l2 / 2.
PARAMETERS: dict[str, Any] = {
    "c1": L1,
    "c2": L2 / 2,
    "feature.possible_states": False,
    "feature.possible_transitions": False,
    # Its own stopping criteria are turned off.
    "epsilon": 0.0,
    "delta": 0.0,
}

_BEGIN = "BEGIN"
_ITERATION = re.compile(r"ITERATION (\d+) objective (\S+) active (\d+)$")
_WEIGHTS = re.compile(r"WEIGHTS (\d+)$")


def available() -> bool:
    """Whether python-crfsuite is installed."""
    return importlib.util.find_spec("pycrfsuite") is not None


def read(line: str) -> Progress | None:
    """Read a line that the training process writes."""
    if line.startswith(_BEGIN):
        return Progress(begins=True)
    match = _ITERATION.match(line.strip())
    if match is None:
        return None
    return Progress(objective=float(match[2]), n_active=int(match[3]))


def read_weights(line: str) -> int | None:
    """Read how many weights it has."""
    match = _WEIGHTS.match(line.strip())
    return int(match[1]) if match else None


def train(
    corpus: Path,
    model: Path,
    n_iterations: int,
    *,
    cap: float = float("inf"),
    stop_at: float = float("-inf"),
) -> Run:
    """Train on an encoded corpus; follow it."""
    paths = [str(corpus.resolve()), str(model.resolve())]
    command = [sys.executable, "-m", "bench.crfsuite", *paths, str(n_iterations)]
    return follow(command, read, read_weights, cap=cap, stop_at=stop_at, directory=PROJECT)


def new_trainer(**parameters: Any) -> Any:
    """A trainer by L-BFGS that writes the lines that `read` understands."""
    import pycrfsuite

    class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
        """Writes what it is doing, a line an iteration."""

        def _say(self, text: str) -> None:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

        def on_start(self, log: str) -> None:
            pass

        def on_featgen_progress(self, log: str, percent: int) -> None:
            pass

        def on_featgen_end(self, log: str) -> None:
            self._say(f"WEIGHTS {self.logparser.featgen_num_features}")
            self._say(_BEGIN)

        def on_prepared(self, log: str) -> None:
            pass

        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            self._say(
                f"ITERATION {info['num']} objective {info['loss']} active {info['active_features']}"
            )

        def on_optimization_end(self, log: str) -> None:
            pass

        def on_end(self, log: str) -> None:
            pass

    return Trainer(algorithm="lbfgs", params={**PARAMETERS, **parameters})


def weights(problem: Problem, model: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Our coordinates, ascending, and the values of a model's weights (it tells six digits)."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    information = tagger.info()
    n, base = problem.n_labels, len(problem.corpus.unigram_keys) * problem.n_labels
    found = {
        int(attribute[1:]) * n + int(label): value
        for (attribute, label), value in information.state_features.items()
    }
    found |= {
        base + int(previous) * n + int(label): value
        for (previous, label), value in information.transitions.items()
    }
    coordinates = np.array(sorted(found), dtype=np.int64)
    return coordinates, np.array([found[k] for k in coordinates.tolist()])


def main(
    corpus: Annotated[Path, typer.Argument(help="Encoded corpus")],
    model: Annotated[Path, typer.Argument(help="Where to leave the model")],
    n_iterations: Annotated[int, typer.Argument(help="Iterations")],
) -> None:
    """Train, writing a line after each iteration."""
    trainer = new_trainer(max_iterations=n_iterations)
    for attributes, labels in crfsuite_sequences(load(corpus).corpus):
        trainer.append(attributes, labels)
    trainer.train(str(model))


if __name__ == "__main__":
    typer.run(main)
