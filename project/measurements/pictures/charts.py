"""Charts of figures that the project's reports and `figures.json` have."""

from pathlib import Path
from typing import Any

import srsly
from measure.report import read_document, rows_of

from .style import CRFSUITE, FAINT, INK, OTHER, OURS, SPACY, new_chart, save_chart

PROJECT = Path(__file__).parent.parent
# Names, colours and markers of the rows of BENCHMARKS.md.
TOOLS = {
    "sparsecrf": ("spacy-sparsecrf", OURS, "o"),
    "python-crfsuite, L1 and L2": ("python-crfsuite", CRFSUITE, "s"),
    "spaCy": ("spaCy ner", SPACY, "^"),
}
# Fewest entities of a bin that the chart shows.
_FEWEST = 40


def figures(name: str) -> dict[str, Any]:
    """Return a part of figures.json, which `pictures.measure` writes."""
    return dict(srsly.read_json(Path(__file__).parent / "figures.json")[name])


def whole_runs(data: str) -> dict[str, list[str]]:
    """Return the rows of BENCHMARKS.md on a data set, by tool: test, development, CPU s, ..."""
    _, sections = read_document(PROJECT / "BENCHMARKS.md")
    rows = rows_of("\n".join(sections["Whole runs"]))
    return {row[1]: row[2:] for row in rows if row[0] == data}


def comparison(path: Path) -> None:
    """Draw F1 and CPU seconds of three tools on CoNLL-2002 Spanish, from BENCHMARKS.md."""
    rows = whole_runs("CoNLL-2002 es")
    figure, panels = new_chart(260, 2)
    for axes, column, title, form in (
        (panels[0], 0, "F1 on CoNLL-2002 Spanish, test part, %", "{:.1f}"),
        (panels[1], 2, "CPU seconds of training", "{:.0f}"),
    ):
        values = [float(rows[tool][column].replace(",", "")) for tool in TOOLS]
        _bars(axes, [name for name, *_ in TOOLS.values()], values, title, form)
    save_chart(figure, path, "F1 and CPU seconds of three tools on CoNLL-2002 Spanish")


def _bars(axes: Any, names: list[str], values: list[float], title: str, form: str) -> None:
    """Draw horizontal bars from zero, with the numbers at their ends."""
    bars = axes.barh(names, values, color=[OURS, CRFSUITE, SPACY], height=0.7)
    axes.bar_label(bars, [form.format(value) for value in values], padding=4, color=INK)
    axes.set(title=title, xlim=(0, max(values) * 1.15), xticks=[])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[["bottom"]].set_visible(False)


def learning(path: Path) -> None:
    """Draw test F1 against the number of training sentences, by tool."""
    found = figures("learning")["test_f1"]
    published = {3000: "CoNLL-2002 es, 3,000 sentences", 8323: "CoNLL-2002 es"}
    figure, (axes,) = new_chart(300)
    for tool, (name, colour, marker) in TOOLS.items():
        points = {int(n): f1 for n, f1 in found.get(tool, {}).items()}
        points |= {n: float(whole_runs(data)[tool][0]) for n, data in published.items()}
        _line(axes, points, name, colour, marker)
    axes.set_xscale("log")
    ticks = [100, 300, 1000, 3000, 8323]
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks], minor=False)
    axes.set(title="F1 on CoNLL-2002 Spanish, test part, %", xlabel="training sentences")
    axes.legend(frameon=False, loc="lower right")
    save_chart(figure, path, "Test F1 of three tools after training on 100 to 8,323 sentences")


def regularisation(path: Path) -> None:
    """Draw development F1 and model size against `l1`."""
    found = figures("path")
    figure, panels = new_chart(380, 2, sharex=True)
    for axes, key, title in zip(
        panels,
        ("dev_f1", "mb"),
        ("F1 on the development part, %", "MB of the pipeline on disk"),
        strict=True,
    ):
        _line(axes, dict(zip(found["l1"], found[key], strict=True)), "", OURS, "o")
        axes.set_title(title)
    panels[1].set(xscale="log", xlabel="l1", ylim=(0, None))
    panels[1].set_xticks(found["l1"], [f"{l1:g}" for l1 in found["l1"]], minor=False)
    save_chart(figure, path, "Development F1 and megabytes against l1")


def calibration(path: Path) -> None:
    """Draw the share of right entities against their probability, before and after calibration."""
    found = figures("calibration")
    figure, (axes,) = new_chart(360)
    axes.plot([0, 1], [0, 1], color=FAINT, label="perfect")
    for key, colour, marker in ("before", OTHER, "s"), ("after", OURS, "o"):
        points = {p: right for p, right, n in found[key]["bins"] if n >= _FEWEST}
        _line(axes, points, f"{key} calibration", colour, marker, "")
    before, after = (f"{found[key]['error']:.3f}" for key in ("before", "after"))
    title = f"share of right entities,\nerror {before} before calibration, {after} after"
    axes.set(title=title, xlabel="probability of the entities")
    axes.legend(frameon=False, loc="upper left")
    save_chart(figure, path, "Share of right entities by probability, before and after calibration")


def rates(path: Path) -> None:
    """Draw precision and recall against the threshold, and against the outside weight."""
    found = figures("rates")
    figure, panels = new_chart(460, 2)
    for axes, key in zip(panels, ("threshold", "outside_weight"), strict=True):
        rows = found[key]
        for i, name, colour, style in (1, "precision", OTHER, "--"), (2, "recall", OURS, "-"):
            _line(axes, {row[0]: row[i] for row in rows}, name, colour, "", style)
        axes.set(xlabel=key, ylim=(20, 90))
    panels[0].set_title("precision and recall on JNLPBA, test part, %")
    panels[0].legend(frameon=False, loc="lower left")
    save_chart(figure, path, "Precision and recall against threshold and outside weight")


def _line(
    axes: Any, points: dict[Any, float], name: str, colour: str, marker: str, style: str = "-"
) -> None:
    """Draw a line through points, and a grid."""
    x = sorted(points)
    y = [points[each] for each in x]
    axes.plot(x, y, color=colour, marker=marker, ls=style, lw=2, ms=6, label=name)
    axes.grid(lw=0.5)


_FUNCTIONS = comparison, learning, regularisation, calibration, rates
CHARTS = {each.__name__: each for each in _FUNCTIONS}
