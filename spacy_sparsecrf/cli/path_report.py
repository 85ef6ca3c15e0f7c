"""What `path` writes: a table of its points as JSON and Markdown, and a plot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly

from ..pipeline.path import PipelinePath, Point

Row = Mapping[str, Any]


def record_of(
    path: PipelinePath, points: Sequence[Point], choice: Row, chosen: int | None
) -> dict[str, Any]:
    """The path so far, in numbers and strings.

    choice: how to choose; chosen: place of the chosen point, or None while there is none.
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


def row_of(point: Point, score_weights: Row) -> dict[str, Any]:
    """A point in numbers."""
    solution, model = point.solution, point.model
    return {
        "l1": solution.l1,
        "objective": solution.objective,
        "optimality": solution.optimality,
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


def cells_of(row: Row) -> list[str]:
    """The columns of a row of the tables; see `header`."""
    scores = [_score(key, value) for key, value in row["scores"].items()]
    return [
        f"{row['l1']:.4g}",
        f"{row['objective']:.2f}",
        f"{row['active_weights']:,}",
        f"{row['active_features']:,}",
        f"{row['bytes'] / 1000:,.1f}",
        *scores,
        _score("score", row["score"]),
        f"{row['seconds']:.1f}",
    ]


def header(score_weights: Row) -> list[str]:
    """Names of the columns."""
    return ["l1", "loss", "weights", "features", "kB", *score_weights, "score", "s"]


def _score(key: str, value: Any) -> str:
    """A score as spaCy's log has it: in percent, save the speed."""
    if not isinstance(value, int | float):
        return "-"
    return f"{value:.0f}" if key == "speed" else f"{100 * value:.2f}"


def write_tables(record: Row, directory: Path) -> None:
    """Write path.json and path.md."""
    srsly.write_json(directory / "path.json", record)
    names = header(record["score_weights"])
    lines = [
        f"# Regularisation path of `{record['component']}`",
        "",
        f"All weights are zero from l1 = {record['l1_max']:.6g} on; l2 = {record['l2']:g}.",
        "",
        "| " + " | ".join(names) + " |",
        "|" + "---:|" * len(names),
    ]
    for i, row in enumerate(record["points"]):
        cells = cells_of(row)
        if i == record["chosen"]:
            cells = [f"**{cell}**" for cell in cells]
        lines.append("| " + " | ".join(cells) + " |")
    if record["chosen"] is not None:
        chosen = record["points"][record["chosen"]]
        lines += ["", f"Chosen ({record['choice']['rule']}): l1 = {chosen['l1']:g}, in bold."]
    (directory / "path.md").write_text("\n".join(lines) + "\n", encoding="utf8")


def draw(record: Row, file: Path) -> bool:
    """Draw the score against the number of weights and the size, if matplotlib is installed.

    file: with a suffix that matplotlib knows. RETURNS: whether it was drawn.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    points = record["points"]
    panels = figure.subplots(1, 2, sharey=True)
    for axes, key, label, unit in (
        (panels[0], "active_weights", "weights that are not zero", 1),
        (panels[1], "bytes", "size of the model, kB", 1000),
    ):
        # Without any weight there is no place on a logarithmic axis.
        drawn = [i for i, point in enumerate(points) if point[key] > 0]
        x = [points[i][key] / unit for i in drawn]
        y = [100 * points[i]["score"] for i in drawn]
        axes.plot(x, y, marker="o", ms=4, lw=1.2)
        for i, across, up in zip(drawn, x, y, strict=True):
            l1 = f"{points[i]['l1']:.3g}"
            axes.annotate(l1, (across, up), (4, -10), textcoords="offset points", fontsize=7)
            if i == record["chosen"]:
                axes.plot([across], [up], marker="o", ms=9, mfc="none", color="black")
        axes.set(xscale="log", xlabel=label)
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("development score, %")
    figure.suptitle(f"{record['component']}: score and size by l1 (circled: chosen)", fontsize=10)
    figure.savefig(file, dpi=120)
    return True
