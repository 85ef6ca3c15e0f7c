"""`path`: train at decreasing l1, and keep the model with the requested trade-off.

Writes a table of the points of the path as JSON and Markdown, and a page with a plot.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import srsly
import tqdm
import typer
from spacy.util import logger
from wasabi import msg
from wasabi.printer import Printer

from ...cli.common import overridden
from ...errors import Errors, SparseCRFError
from ...pages.rendering import Page, render
from ...progress import Task, progress

if TYPE_CHECKING:
    from ...solvers.base import StepReport
    from ..path import PathPoint, PipelinePath

Row = Mapping[str, Any]
Ticks = list[tuple[float, str]]

N_POINTS = 10
WITHIN = 0.1  # in points of 100
WINDOW = 1e-3


# The command


class Choice(str, Enum):
    """The rule that chooses the saved model."""

    best = "best"
    smallest = "smallest"


def path(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config, as for `spacy train`", exists=True)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory to write to")],
    l1: Annotated[
        str | None, typer.Option(help="Values of l1, such as 2,1,0.5; default: automatic")
    ] = None,
    points: Annotated[
        int | None, typer.Option(help=f"Length of the automatic sequence (default: {N_POINTS})")
    ] = None,
    choose: Annotated[
        Choice, typer.Option(help="Save the model of the best score, or the smallest near it")
    ] = Choice.best,
    within: Annotated[
        float | None,
        typer.Option(
            help="With --choose smallest: how many points of 100 its score may be below the best, "
            f"{WITHIN} if not given"
        ),
    ] = None,
    window: Annotated[
        float,
        typer.Option(
            help="Continue with the next l1 when an iteration lowers the objective by at most "
            "this fraction; only the chosen model is then trained until convergence. "
            "0: all are"
        ),
    ] = WINDOW,
    code: Annotated[
        Path | None, typer.Option("--code", "-c", help="Python file with registered functions")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-V", help="Log each iteration")] = False,
) -> None:
    """Train the sparse CRF of a pipeline at falling values of l1, each from the last solution.

    Writes path.json, path.md, path.html and the chosen pipeline, model/. Settings of the config
    are overridden as `spacy train` does: --paths.train train.spacy. The automatic sequence falls
    geometrically from the l1 with all weights zero to that of the config.
    """
    if verbose:
        logger.setLevel(logging.DEBUG)
    try:
        choice = _choice(choose, within)
        if l1 is not None and points is not None:
            raise SparseCRFError(Errors.SC711)
        if not 0.0 <= window < 1.0:
            raise SparseCRFError(Errors.SC713.format(window=window))
        l1s = None if l1 is None else _numbers(l1)
        _prepare(output)
        with overridden(ctx, config, code) as loaded:
            msg.divider("Initializing pipeline")
            from ..path import PipelinePath

            found = PipelinePath(loaded, l1s, N_POINTS if points is None else points)
        msg.good("Initialized pipeline")
        _follow(found, choice, window or None, output)
    except (OSError, ValueError) as error:
        msg.fail(str(error), exits=1)


def _choice(choose: Choice, within: float | None) -> dict[str, Any]:
    """Return the rule of choice as text, and the permitted loss of score as a fraction of 1."""
    if choose is Choice.best:
        if within is not None:
            raise SparseCRFError(Errors.SC710.format(within=within))
        return {"rule": "the best score", "within": 0.0}
    within = WITHIN if within is None else within
    if not within >= 0.0:
        raise SparseCRFError(Errors.SC710.format(within=within))
    return {"rule": f"the smallest within {within:g} of the best score", "within": within / 100}


def _numbers(text: str) -> list[float]:
    """Read values of l1."""
    try:
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise SparseCRFError(Errors.SC702.format(values=text)) from None


def _prepare(output: Path) -> None:
    """Create the output directory; refuse one whose `model` exists and is not a pipeline."""
    model = output / "model"
    if model.exists() and not (model / "meta.json").is_file():
        raise SparseCRFError(Errors.SC708.format(path=model))
    output.mkdir(parents=True, exist_ok=True)


def _follow(
    found: "PipelinePath", choice: dict[str, Any], window: float | None, output: Path
) -> None:
    """Train, choose a model, save it, and report progress."""
    # Imported here because it imports numba, which slows the start of other commands.
    from ..regularization_path import choose

    msg.divider("Following the path")
    msg.info(f"All weights are zero from l1 = {found.highest:.6g} on")
    points = _train(found, choice, window, output)
    scores, sizes = [point.score for point in points], [point.size for point in points]
    chosen = choose(scores, sizes, choice["within"])
    msg.info(f"Chosen: l1 = {points[chosen].solution.l1:g}, {choice['rule']}")
    if window is not None:
        points[chosen] = _finish(found, points[chosen])
    found.adopt(points[chosen])
    found.save(output / "model")
    record = record_of(found, points, choice, chosen)
    write_tables(record, output)
    msg.good(f"Saved pipeline with l1 = {points[chosen].solution.l1:g}", output / "model")
    msg.info(f"Table: {output / 'path.md'}, page with a plot: {output / 'path.html'}")


def _train(
    found: "PipelinePath", choice: dict[str, Any], window: float | None, output: Path
) -> "list[PathPoint]":
    """Train at each l1 and add a row to the table; an interruption ends the path."""
    points: list[PathPoint] = []
    try:
        with progress("Training", "iterations") as shown:
            for point in found.points(window, partial(show_step, shown)):
                points.append(point)
                # Written after each point, so that an interrupted run keeps its results.
                write_tables(record_of(found, points, choice, None), output)
                _echo(found, point, with_header=len(points) == 1)
    except KeyboardInterrupt:
        if not points:
            raise
        msg.warn(f"Interrupted: the path ends at l1 = {points[-1].solution.l1:g}")
    return points


def _finish(found: "PipelinePath", point: "PathPoint") -> "PathPoint":
    """Train the chosen model to convergence; an interruption leaves it unchanged."""
    try:
        with progress("Training", "iterations") as shown:
            point = found.finish(point, partial(show_step, shown))
        _echo(found, point)
    except KeyboardInterrupt:
        msg.warn("Interrupted: the chosen model is saved before its training has ended")
    return point


def _echo(found: "PipelinePath", point: "PathPoint", with_header: bool = False) -> None:
    """Print a point as a row of the table."""
    echo(cells_of(row_of(point, found.score_weights)), with_header)


def echo(cells: Mapping[str, str], with_header: bool = False) -> None:
    """Print a row of a table. cells: by the names of columns."""
    widths = [max(10, len(name)) for name in cells]
    rows = [list(cells.values())]
    if with_header:
        rows = [[name.upper() for name in cells], ["-" * width for width in widths], *rows]
    printer = Printer(no_print=True)
    with tqdm.tqdm.external_write_mode():
        for row in rows:
            typer.echo(printer.row(row, widths=widths, aligns=["r"] * len(widths)))


def show_step(shown: Task, report: "StepReport") -> None:
    """Count an outer iteration and log its values."""
    shown.done += 1
    values = report.objective, report.optimality, report.n_active
    logger.debug("objective %.6g, optimality %.3g, %d active weights", *values)


# The table and the page


def record_of(
    path: "PipelinePath", points: "Sequence[PathPoint]", choice: Row, chosen: int | None
) -> dict[str, Any]:
    """Return the path so far as JSON.

    choice: rule of choice; chosen: position of the chosen point, or None if not yet chosen.
    """
    return {
        "component": path.name,
        "l1_max": path.highest,
        "l2": path.pipe.settings.l2,
        "score_weights": path.score_weights,
        "choice": choice,
        "chosen": chosen,
        "points": [row_of(point, path.score_weights) for point in points],
    }


def row_of(point: "PathPoint", score_weights: Row) -> dict[str, Any]:
    """Return a point as JSON."""
    solution, model = point.solution, point.model
    return {
        "l1": solution.l1,
        "objective": solution.objective,
        # None if the only step was the warm start, which has no certificate. JSON has no infinity.
        "optimality": solution.optimality if math.isfinite(solution.optimality) else None,
        "converged": solution.converged,
        "steps": solution.n_steps,
        "passes": solution.passes,
        "active_weights": model.n_active,
        "active_features": len(model.unigram.keys) + len(model.bigram.keys),
        "bytes": point.size,
        "score": point.score,
        "scores": {key: point.scores.get(key) for key in score_weights},
        "seconds": round(point.seconds, 3),
    }


def cells_of(row: Row) -> dict[str, str]:
    """Return the cells of a row of the tables, by the names of columns."""
    return {
        "l1": f"{row['l1']:.4g}",
        "loss": f"{row['objective']:.2f}",
        "weights": f"{row['active_weights']:,}",
        "features": f"{row['active_features']:,}",
        "kB": f"{row['bytes'] / 1000:,.1f}",
        **{key: _score(key, value) for key, value in row["scores"].items()},
        "score": _score("score", row["score"]),
        "s": f"{row['seconds']:.1f}",
    }


def _score(key: str, value: Any) -> str:
    """Format a score as in spaCy's log: in percent, except for speed."""
    if not isinstance(value, int | float):
        return "-"
    return f"{value:.0f}" if key == "speed" else f"{100 * value:.2f}"


def write_tables(record: Row, directory: Path) -> None:
    """Write path.json, path.md and path.html. record: see `record_of`, with at least one point."""
    srsly.write_json(directory / "path.json", record)
    rows = [cells_of(row) for row in record["points"]]
    lines = [
        f"# Regularisation path of `{record['component']}`",
        "",
        f"All weights are zero from l1 = {record['l1_max']:.6g} on; l2 = {record['l2']:g}.",
        "",
        "| " + " | ".join(rows[0]) + " |",
        "|" + "---:|" * len(rows[0]),
    ]
    for i, row in enumerate(rows):
        mark = "**" if i == record["chosen"] else ""
        lines.append("| " + " | ".join(f"{mark}{cell}{mark}" for cell in row.values()) + " |")
    if record["chosen"] is not None:
        chosen = record["points"][record["chosen"]]
        lines += ["", f"Chosen ({record['choice']['rule']}): l1 = {chosen['l1']:g}, in bold."]
    (directory / "path.md").write_text("\n".join(lines) + "\n", encoding="utf8")
    page = render(PathReport(record), f"Regularisation path of {record['component']}")
    (directory / "path.html").write_text(page, encoding="utf8")


@dataclass(frozen=True)
class PathReport(Page):
    """The path so far as a page. record: see `record_of`, with at least one point."""

    page: ClassVar[str] = "path.html"
    record: Row

    @property
    def rows(self) -> list[dict[str, str]]:
        """Rows of the table."""
        return [cells_of(row) for row in self.record["points"]]

    def plot(self) -> tuple[list[tuple[int, float, float]], Ticks, Ticks]:
        """Return a plot of score by number of weights, with a logarithmic axis of weights.

        RETURNS: index and (x, y) in [0, 1] of each point that has weights; the ticks of both axes.
        """
        points = self.record["points"]
        drawn = [i for i, point in enumerate(points) if point["active_weights"] > 0]
        if not drawn:
            return [], [], []
        sizes = [points[i]["active_weights"] for i in drawn]
        scores = [100 * points[i]["score"] for i in drawn]
        left, right = math.log10(min(sizes)), math.log10(max(sizes)) + 1e-9
        low = math.floor(min(scores))
        height = max(scores) - low + 0.01
        step = math.ceil(height / 4) if height > 4 else math.ceil(height) / 4
        marks = [m * 10**k for k in range(math.ceil(right)) for m in (1, 2, 5)]
        if right - left > 3.0:
            marks = marks[::3]
        x = {n: (math.log10(n) - left) / (right - left) for n in {*sizes, *marks}}
        across = [(x[n], f"{n:,}") for n in marks if 0.0 <= x[n] <= 1.0]
        up = [(i / 4, f"{low + i * step:g}") for i in range(5)]
        y = ((score - low) / (4 * step) for score in scores)
        return list(zip(drawn, (x[n] for n in sizes), y, strict=True)), across, up
