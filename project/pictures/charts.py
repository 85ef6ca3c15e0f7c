"""Charts of figures that the project's reports and `figures.json` have."""

from pathlib import Path
from typing import Any

from measure.report import read_document, rows_of

from .style import CRFSUITE, INK, OURS, SPACY, new_chart, save_chart

PROJECT = Path(__file__).parent.parent


def comparison(path: Path) -> None:
    """Draw F1 and CPU seconds of three tools on CoNLL-2002 Spanish, from BENCHMARKS.md."""
    _, sections = read_document(PROJECT / "BENCHMARKS.md")
    rows = [row for row in rows_of("\n".join(sections["Whole runs"])) if row[0] == "CoNLL-2002 es"]
    peers = [row for row in rows if row[1].startswith("python-crfsuite")]
    best = max(peers, key=lambda row: float(row[2]))
    by_tool = {row[1]: row for row in rows}
    tools = {"spacy-sparsecrf": by_tool["sparsecrf"], "python-crfsuite": best}
    tools["spaCy ner"] = by_tool["spaCy"]
    figure, panels = new_chart(260, 2)
    for axes, column, title in (
        (panels[0], 2, "F1 on CoNLL-2002 Spanish, test part, %"),
        (panels[1], 4, "CPU seconds of training"),
    ):
        values = [float(row[column].replace(",", "")) for row in tools.values()]
        _bars(axes, list(tools), values, title, "{:.1f}" if column == 2 else "{:.0f}")
    save_chart(figure, path, "F1 and CPU seconds of three tools on CoNLL-2002 Spanish")


def _bars(axes: Any, names: list[str], values: list[float], title: str, form: str) -> None:
    """Draw horizontal bars from zero, with the numbers at their ends."""
    colours = [OURS, CRFSUITE, SPACY]
    bars = axes.barh(names, values, color=colours, height=0.7)
    axes.bar_label(bars, [form.format(value) for value in values], padding=4, color=INK)
    axes.set(title=title, xlim=(0, max(values) * 1.15), xticks=[])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[["bottom"]].set_visible(False)


CHARTS = {"comparison": comparison}
