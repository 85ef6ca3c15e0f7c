"""Write LAVERGNE.md and its plot from the stored figures.

`figures.jsonl` keeps the figures of experiments run here or elsewhere; `paper.jsonl` has the
figures of the paper.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import srsly
import typer
from measure import PROJECT
from measure.document import Document, Metrics, Project, Published, measured_on, read_published
from measure.plots import label, line_styles, new_figure, save
from measure.results import Row, is_trial, read_rows
from measure.tables import count, number, percent, share, shown, tabulate, whole

from . import experiments as given
from .experiments import EXPERIMENTS, FAMILIES, N_FOLDS, letters

KEPT = "lavergne/figures.jsonl"
PLOT = "errors"
PAPER: dict[str, Row] = {
    row["name"]: row for row in srsly.read_jsonl(PROJECT / "lavergne" / "paper.jsonl")
}
_GOALS_TITLE, _PLOT_TITLE = "Goals", "Errors and active weights"
_PROSE = ("Sparse evaluation (table 2)", "Structured feature sets (section 5.4)", "Ten folds")
DOCUMENT = Document(
    "LAVERGNE.md", "a few words", "lavergne/plots", frozenset((*_PROSE, "Parts of speech"))
)
METHODS = {
    "owlqn": "OWL-QN",
    "sgd": "SGD-L1",
    "bcd": "BCD",
    "published": "OWL-QN, as published",
}
# Goals of experiments: phoneme error in percent, processor minutes, GB.
GOALS = {
    "phonemes-5grm+-owlqn": ("5-grm+", 7.9, 10.0, 3.0),
    "phonemes-7grm-owlqn": ("7-grm", 8.2, 10.0, 3.0),
    "phonemes-7grm-owlqn-l1=0.1": ("7-grm, l1 = 0.1", 8.2, 10.0, 3.0),
    "joint-5grm+-owlqn": ("joint, 5-grm+", 7.5, 60.0, 8.0),
    "joint-5grm++-owlqn": ("joint, 5-grm++", 7.4, 60.0, 8.0),
}
Known = Mapping[str, Row]
Cell = Callable[[Row], str]


# Cells


def grm(family: str) -> str:
    """Return a feature set in the paper's notation."""
    return "{}-grm{}".format(*given.parts_of(family))


def family_of(row: Row) -> str:
    """Return the feature set of an experiment in the paper's notation."""
    return grm(row["name"].split("-")[1].replace("grm", "", 1))


def method_of(row: Row) -> str:
    """Return the solver of an experiment."""
    return METHODS[row["name"].split("-")[2]]


def of(key: str, form: Callable[[float | None], str] = percent) -> Cell:
    """Return a function that formats a figure; key: keys of nested figures joined by dots."""

    def cell(row: Any) -> str:
        for part in key.split("."):
            row = row.get(part) if row else None
        return form(row)

    return cell


def numbered(error: str, iterations: str) -> Cell:
    """Return a function that formats an error rate with its iteration, or number of iterations."""

    def cell(row: Row) -> str:
        known = error in row and iterations in row
        return percent(row.get(error)) + (f" ({row[iterations]})" if known else "")

    return cell


def both(labels: Cell, parts: Cell) -> Cell:
    """Return a function that formats error rates of labels and of label parts."""
    return lambda row: " / ".join(filter(None, [labels(row), parts(row)]))


def seconds(row: Row) -> str:
    """Return processor seconds, marked if a limit ended the run."""
    return whole(row.get("cpu")) + ("*" if row.get("cut") else "")


COST: dict[str, Cell] = {"s": seconds, "MB": of("peak_mb", whole)}


def with_paper(row: Row) -> Row:
    """Add the paper's figures: for the experiment, and for SGD and BCD on the same features."""
    stem = "-".join(row["name"].split("-")[:2])
    names = {"paper": row["name"], "sgd": f"{stem}-sgd", "bcd": f"{stem}-bcd"}
    return {**row, **{key: PAPER.get(name, {}) for key, name in names.items()}}


def filled(items: Sequence[Row], columns: Mapping[str, Cell]) -> list[str]:
    """Return a table, or nothing if it has no rows."""
    return [tabulate(items, columns)] if items else []


# Tables


def goals(known: Known) -> list[str]:
    """Return a row for each goal."""
    rows = []
    for name, (title, *limits) in GOALS.items():
        row = known.get(name, {})
        reached = [row.get("best_test_part"), row.get("cpu"), row.get("peak_mb")]
        most = zip(limits, (1.0, 60.0, 1024.0), strict=True)
        met = [a is None or a <= b * unit for a, (b, unit) in zip(reached, most, strict=True)]
        told = "" if None in reached else "yes" if all(met) else "no"
        own = dict(zip(("error", "minutes", "gigabytes"), limits, strict=True))
        rows += [{**row, **own, "title": title, "met": told}] if row else []
    columns: dict[str, Cell] = {
        "phoneme error of OWL-QN, %": of("title", str),
        "dev": of("dev_part"),
        "test": of("test_part"),
        "best dev": of("best_test_part"),
        "at most": of("error", "{:.1f}".format),
        "min": of("cpu", lambda value: shown(value, ".1f", 60.0)),
        "at most ": of("minutes", "{:g}".format),
        "GB": of("peak_mb", lambda value: shown(value, ".2f", 1024.0)),
        "at most  ": of("gigabytes", "{:g}".format),
        "met": of("met", str),
    }
    return filled(rows, columns)


def pairs(known: Known) -> list[str]:
    """Return table 1: the gain from conjoining observations with label pairs."""
    names = [letters("phonemes", family).name for family in FAMILIES]
    sides = {"with": "", "without": "-unigrams"}
    rows = [known[n] for n in names if all(n + end in known for end in sides.values())]
    columns: dict[str, Cell] = {"": family_of}
    cells = {"test, %": of("test"), "paper": of("paper.error"), "potential": of("potential", count)}
    cells |= {"active": of("active", whole), "s": seconds}
    for side, end in sides.items():
        for header, cell in cells.items():
            columns[f"{side}: {header}"] = lambda row, end=end, cell=cell: cell(
                known[row["name"] + end]
            )
    return filled(rows, columns)


def gradients(known: Known) -> list[str]:
    """Return table 2: the time that a sparse evaluation saves."""
    columns: dict[str, Cell] = {
        "": lambda row: grm(row["name"].removeprefix("evaluation-").replace("grm", "")),
        "active weights, ms": lambda row: number(1000.0 * row["active_s"]),
        "all weights, ms": lambda row: number(1000.0 * row["all_s"]),
        "ratio": lambda row: f"{row['all_s'] / row['active_s']:.1f}x",
        "active": of("active", whole),
        "all": of("potential", count),
        "zeros of M": lambda row: f"{row['zeros']:.1f} %",
        "paper": of("paper.text", str),
    }
    return filled([row for row in known.values() if "zeros" in row], columns)


def penalties(known: Known) -> list[str]:
    """Return table 3: l2, l1, elastic net; and other penalties."""
    rows = []
    for family in ("1", "3", "5"):
        name = letters("phonemes", family).name
        dense = [x for x in given.penalties() if f"-{family}grm-" in x.name and not x.l1]
        dense = [x for x in dense if x.name in known]
        if dense and name in known and f"{name}-l1" in known:
            # A row kept without its development error was the best of the penalties tried.
            best = min(dense, key=lambda x: known[x.name].get("dev", float("-inf")))
            row = {"family": family, "dense": known[best.name], "l1": known[f"{name}-l1"]}
            row |= {key: PAPER[f"{key}-{family}grm"]["error"] for key in ("paper_l2", "paper_both")}
            cut = "*" if known[best.name].get("cut") else ""
            note = ", observed pairs only" if best.observed_only else ""
            row["l2"] = f"{percent(known[best.name]['test'])}{cut} (l2 = {best.l2:g}{note})"
            rows.append({**row, "both": known[name]})
    columns: dict[str, Cell] = {
        "": lambda row: grm(row["family"]),
        "l2": of("l2", str),
        "paper": of("paper_l2"),
        "l1": of("l1.test"),
        "paper ": of("l1.paper.error"),
        "both": of("both.test"),
        "paper  ": of("paper_both"),
        "active, l2": of("dense.active", whole),
        "active, both": of("both.active", whole),
    }
    return [*filled(rows, columns), *_searched(known)]


def _searched(known: Known) -> list[str]:
    """Return development errors with other penalties."""
    rows = []
    for family in dict.fromkeys(x.name.split("-")[1] for x in given.search()):
        tried = [EXPERIMENTS[f"phonemes-{family}-owlqn"]]
        tried += [x for x in given.search() if x.name.split("-")[1] == family]
        found = sorted((x.l1, x.l2, x.name) for x in tried if x.name in known)
        own = [{**known[name], "l1": l1, "l2": l2} for l1, l2, name in found]
        rows += own if len(own) > 1 else []
    columns: dict[str, Cell] = {
        "": lambda row: f"{family_of(row)}, l1 = {row['l1']:g}, l2 = {row['l2']:g}",
        "dev, %": of("dev"),
        "test, %": of("test"),
        "lowest dev": of("best_dev"),
        "test there": of("best_test"),
        "active": of("active", whole),
        **COST,
    }
    text = "All other tables have the paper's l1 and l2."
    return [text, tabulate(rows, columns)] if rows else []


def methods(known: Known) -> list[str]:
    """Return table 4: three training methods."""
    columns: dict[str, Cell] = {
        "": lambda row: f"{family_of(row)}, {method_of(row)}",
        "dev, %": of("dev"),
        "test, %": of("test"),
        "paper": of("paper.error"),
        "best dev (iteration)": numbered("best_test", "best_iteration"),
        "polished": numbered("polished", "polish_iterations"),
        "iterations": of("iterations", whole),
        "passes": of("passes", shown),
        "active": of("active", whole),
        "paper ": of("paper.active", whole),
        "potential": of("potential", count),
        **COST,
        "paper, min": of("paper.minutes", whole),
    }
    return filled([known[one.name] for one in given.phonemes() if one.name in known], columns)


def joint(known: Known) -> list[str]:
    """Return table 5: phonemes with stress marks."""

    def title(row: Row) -> str:
        staged = ", in stages, by labels" if "by-labels" in row["name"] else ""
        return f"{family_of(row)}, {method_of(row)}{staged}"

    columns: dict[str, Cell] = {
        "joint / phoneme, %": title,
        "dev": both(of("dev"), of("dev_part")),
        "test": both(of("test"), of("test_part")),
        "best dev": both(of("best_test"), of("best_test_part")),
        "paper, SGD": both(of("sgd.error"), of("sgd.part")),
        "paper, BCD": both(of("bcd.error"), of("bcd.part")),
        "iterations": of("iterations", whole),
        "active": of("active", whole),
        "potential": of("potential", count),
        **COST,
        "paper, SGD, min": of("sgd.minutes", whole),
        "paper, BCD, min": of("bcd.minutes", whole),
    }
    return filled([known[one.name] for one in given.joint() if one.name in known], columns)


def stages(known: Known) -> list[str]:
    """Return section 5.4, on letters."""
    rows = {}
    for name in (one.name for one in given.structured()):
        plain = "-".join(name.split("-")[:3])
        if name in known:
            own = {plain: "all at once", name: name.removeprefix(f"{plain}-").replace("by-", "by ")}
            rows |= {key: {**known[key], "how": how} for key, how in own.items() if key in known}
    columns: dict[str, Cell] = {
        "": lambda row: f"{family_of(row)}, {row['how']}",
        "test, %": of("test"),
        "best dev": of("best_test"),
        "dev, %": of("dev"),
        "admitted": of("admitted", count),
        "share": lambda row: share(row.get("admitted"), row.get("potential")),
        "active": of("active", whole),
        **COST,
    }
    return filled(list(rows.values()), columns)


def folds(known: Known) -> list[str]:
    """Return results on the folds that have been run."""
    rows = []
    for name in (letters("phonemes", family).name for family in given.FOLDED):
        found = {fold: known.get(f"{name}-fold{fold}", {}) for fold in range(N_FOLDS)}
        spent = [row["cpu"] for row in found.values() if "cpu" in row]
        for how, key in (("at the stop", "test"), ("best dev", "best_test")):
            errors = {f"fold {fold}": row[key] for fold, row in found.items() if key in row}
            if len(errors) > 1:
                row = with_paper({"name": name, "how": how, **errors, "n": len(errors)})
                row |= {"mean": fmean(errors.values()), "deviation": stdev(errors.values())}
                rows.append({**row, "each": fmean(spent) if spent else None})
    columns: dict[str, Cell] = {
        "test, %": lambda row: f"{family_of(row)}, {row['how']}",
        "mean": of("mean"),
        "deviation": of("deviation"),
        "folds": of("n", whole),
        "paper": of("paper.error"),
        **{f"fold {fold}": of(f"fold {fold}") for fold in range(N_FOLDS)},
        "s each": of("each", whole),
    }
    return filled(rows, columns)


def tags(known: Known) -> list[str]:
    """Return results of part-of-speech tagging."""
    columns: dict[str, Cell] = {
        "": lambda row: row["name"],
        "dev, %": of("dev"),
        "test, %": of("test"),
        "best dev": of("best_test"),
        "polished": numbered("polished", "polish_iterations"),
        "paper, WSJ": of("paper.error"),
        "labels": of("labels", whole),
        "active": of("active", whole),
        "potential": of("potential", count),
        **COST,
    }
    return filled([known[one.name] for one in given.tags() if one.name in known], columns)


SECTIONS: dict[str, Callable[[Known], list[str]]] = {
    _GOALS_TITLE: goals,
    "Tests of pairs of labels (table 1)": pairs,
    "Sparse evaluation (table 2)": gradients,
    "Penalties (table 3)": penalties,
    "Methods (table 4)": methods,
    "Phonemes with stress (table 5)": joint,
    "Structured feature sets (section 5.4)": stages,
    "Ten folds": folds,
    "Parts of speech": tags,
}


# The plot and the report

_MARKERS = {"OWL-QN": "o", "SGD-L1": "s", "BCD": "^", "OWL-QN, as published": "D"}


def points(known: Known) -> list[tuple[str, str, float, float]]:
    """Return feature set, series, number of active weights, and error of each point."""
    found = []
    for one in given.phonemes():
        row, published = known.get(one.name, {}), PAPER.get(one.name, {})
        for series, figures, key in (("", row, "test"), (", paper", published, "error")):
            if "active" in figures:
                place = family_of({"name": one.name}), f"{method_of({'name': one.name})}{series}"
                found.append((*place, figures["active"], figures[key]))
    for one in given.structured():
        if one.name.endswith("-by-labels") and "active" in known.get(one.name, {}):
            row = known[one.name]
            found.append((family_of(row), "in stages, by labels", row["active"], row["test"]))
    return found


def draw(known: Known, path: Path) -> None:
    """Draw phoneme error against active weights, ours and the paper's; path: without suffix."""
    figure = new_figure(9.0, 5.6)
    if figure is None:
        return
    axes = figure.subplots()
    colours = {
        name: style["color"] for name, style in line_styles(list(map(grm, FAMILIES))).items()
    }

    def marks(colour: Any, series: str) -> dict[str, Any]:
        # Hollow markers for the paper's figures.
        face = "none" if series.endswith(", paper") else colour
        marker = _MARKERS.get(series.removesuffix(", paper"), "*")
        return {"marker": marker, "markeredgecolor": colour, "markerfacecolor": face, "ls": ""}

    found = points(known)
    for family, series, n_active, error in found:
        axes.plot(n_active, error, ms=8, **marks(colours[family], series))
    for family, colour in colours.items():
        axes.plot([], [], ls="", marker="o", color=colour, label=family)
    for name in sorted({series for _, series, _, _ in found}):
        axes.plot([], [], ms=8, label=name, **marks("0.3", name))
    axes.legend(frameon=False, fontsize="small")
    label(axes, xscale="log", xlabel="active weights", ylabel="wrong phonemes of the test part, %")
    save(figure, path)


def read_kept(project: Path) -> dict[str, Row]:
    """Return the figures stored in the project, by experiment name."""
    path = project / KEPT
    return {row["name"]: row for row in srsly.read_jsonl(path)} if path.exists() else {}


def figures_of(row: Row) -> Row:
    """Return the figures of a run in the stored form."""
    machine = {key: row["session"]["machine"][key] for key in ("processor", "date")}
    own = {key: value for key, value in row.items() if key not in ("experiment", "session", "name")}
    return {"name": row["name"], **machine, **own}


def render(known: Known, published: Published, trial: bool) -> str:
    """Return the whole report."""
    machines = [{key: row[key] for key in ("processor", "date")} for row in known.values()]
    rows = {name: with_paper(row) for name, row in known.items()}
    sections = {title: blocks for title, write in SECTIONS.items() if (blocks := write(rows))}
    sections[_PLOT_TITLE] = [DOCUMENT.picture(PLOT, "Errors and weights")]
    return DOCUMENT.render(published, measured_on(machines), sections, trial)


def main(metrics: Metrics, project: Project) -> None:
    """Write the report; a trial omits the kept figures and writes next to its own figures."""
    rows = read_rows(metrics / "results.jsonl")
    trial = is_trial(rows)
    known = {row["name"]: figures_of(row) for row in rows}
    if not trial:
        known = read_kept(project) | known
        known = {name: known[name] for name in EXPERIMENTS if name in known}
        (project / KEPT).parent.mkdir(parents=True, exist_ok=True)
        srsly.write_jsonl(project / KEPT, known.values())
    draw(known, metrics / PLOT)
    text = render(known, read_published(project / DOCUMENT.name), trial)
    DOCUMENT.publish(text, metrics, project, trial)


if __name__ == "__main__":
    typer.run(main)
