"""Check that peers have the same weights and the same objective as this package.

Peers run a fixed number of iterations on small samples; our objective at *their* weights must then
equal the objective that they print. Otherwise the command fails.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from measure.data import Problem
from measure.race import Course
from measure.results import Row
from measure.tables import table

from . import peers
from .ours import chain_loss, objective_at
from .record import Options

_ITERATIONS = 15
# Relative tolerance: Wapiti prints two digits of the objective, CRFsuite six of each weight.
_CLOSE = 2e-5


def check(
    name: str, problem: Problem, n_weights: int, weights: peers.Weights, run: Course
) -> dict[str, float | None]:
    """Compare numbers of weights, and objectives at a peer's weights.

    RAISES: ValueError if the two sides differ.
    """
    ours, its = objective_at(problem, *weights), run.objective[-1]
    assert its is not None
    found = {"weights": n_weights, "its_weights": run.n_weights, "ours": ours, "its": its}
    if n_weights != run.n_weights or abs(ours - its) > _CLOSE * its:
        raise ValueError(f"{name} solves another problem: {found}")
    return found


def measure(options: Options) -> None:
    """Compare with each available peer, and record the sizes of all corpora."""
    record = options.record("agreement")
    chunks, letters = (
        Problem.load(options.corpus(f"{name}-sample")) for name in ("conll2000", "nettalk-3grm")
    )
    with TemporaryDirectory() as name:
        scratch = Path(name)
        for problem in (chunks, letters) if peers.has_wapiti() else ():
            run = peers.train_wapiti(problem, scratch, _ITERATIONS)
            weights = peers.wapiti_weights(problem, scratch)
            name = f"{peers.WAPITI}, {problem.name}"
            record.add(name, **check(name, problem, problem.n_potential, weights, run))
        if peers.has_crfsuite():
            path, model = options.corpus(chunks.name), scratch / "crfsuite.model"
            run = peers.train_crfsuite(path, model, _ITERATIONS)
            name = f"{peers.CRFSUITE} (observed features), {chunks.name}"
            n_weights = len(chain_loss(chunks).observed_coordinates())
            weights = peers.crfsuite_weights(chunks, model)
            record.add(name, **check(name, chunks, n_weights, weights, run))
    for path in sorted(options.corpus("").parent.glob("*.npz")):
        record.add(path.stem, sizes=Problem.load(path).sizes())


def tables(rows: list[Row], absent: list[str]) -> list[str]:
    """Return a table of numbers of weights and objectives, ours and theirs; a table of corpora."""
    compared = [
        [
            row["name"],
            f"{row['weights']:,}",
            f"{row['its_weights']:,}",
            f"{row['ours']:.6f}",
            str(row["its"]),
        ]
        for row in rows
        if "its" in row
    ]
    header = ["", "weights, ours", "weights, its", "objective, ours", "objective, its"]
    corpora = {row["name"]: row["sizes"] for row in rows if "sizes" in row}
    columns = list(next(iter(corpora.values()), {}))
    sizes = [[name, *(f"{row[key]:,}" for key in columns)] for name, row in corpora.items()]
    missing = [f"{name} was not available." for name in absent]
    return [table(header, compared), table(["", *columns], sizes), *missing]
