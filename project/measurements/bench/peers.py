"""A peer: CRFsuite (python-crfsuite).

    python -m bench.peers NAME ITERATIONS

trains CRFsuite in this process on our encoded corpus, with attributes and labels named by number.
It thus has our weights by construction: a weight for each label of an attribute.
"""

import re
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from measure.data import Data
from measure.processes import Child, Cost, median_cost
from measure.race import Course
from measure.results import Quick

from .ours import L1, L2, encoded

CRFSUITE = "CRFsuite"
# Observed features only, which is CRFsuite's fastest setting. Its c2 |w|^2 is our l2 / 2. Its own
# stopping criteria are turned off.
PARAMETERS: dict[str, Any] = {
    "c1": L1,
    "c2": L2 / 2,
    "feature.possible_states": False,
    "feature.possible_transitions": False,
    "epsilon": 0.0,
    "delta": 0.0,
}
# First line of training, and lines at the end of iterations.
_BEGIN, _END = "L-BFGS optimization", re.compile(r"Loss: \S+")


def crfsuite(name: str, data: str, quick: bool, n_iterations: int) -> Cost:
    """Train CRFsuite on a data set in a child process; return the median cost of its iterations."""
    command = ["python", "-m", "bench.peers", name, str(n_iterations), "--data", data]
    course, child = Course(), Child([*command, "--quick" if quick else "--full"])
    wall = cpu = 0.0
    for line in child.lines():
        if line.startswith(_BEGIN):
            wall, cpu = time.perf_counter(), child.cpu()
        elif _END.match(line):
            course.wall.append(time.perf_counter() - wall)
            course.cpu.append(child.cpu() - cpu)
    child.wait()
    return median_cost(course.step_costs())


def main(
    name: Annotated[str, typer.Argument(help="Data set")],
    n_iterations: Annotated[int, typer.Argument(help="Iterations")],
    data: Data = "",
    quick: Quick = False,
) -> None:
    """Train CRFsuite, which writes a few lines after each iteration."""
    import pycrfsuite

    corpus = encoded(name, data, quick).corpus
    parameters = {**PARAMETERS, "max_iterations": n_iterations}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=True)
    for begin, end in pairwise(corpus.offsets.tolist()):
        cuts = pairwise(corpus.uni_indptr[begin : end + 1].tolist())
        attributes = [[f"u{i}" for i in corpus.uni_indices[a:b].tolist()] for a, b in cuts]
        trainer.append(attributes, [str(y) for y in corpus.labels[begin:end].tolist()])
    with TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "model"))


if __name__ == "__main__":
    typer.run(main)
