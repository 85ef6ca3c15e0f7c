"""The tables of LAVERGNE.md, from the stored figures.

`figures.jsonl` keeps the figures of experiments run here or elsewhere; `paper.jsonl` has the
figures of the paper.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import srsly
from measure import PROJECT
from measure.report import (
    Records,
    Report,
    Sections,
    count,
    percent,
    shown,
    tabulate,
    whole,
)
from measure.results import Row

from . import experiments as given
from .experiments import EXPERIMENTS, FAMILIES, letters

PAPER: dict[str, Row] = {
    row["name"]: row for row in srsly.read_jsonl(PROJECT / "lavergne" / "paper.jsonl")
}
_PROSE = (
    "Structured feature sets (section 5.4)",
    "Parts of speech",
)
METHODS = {
    "owlqn": "OWL-QN",
    "sgd": "SGD-L1",
    "bcd": "BCD",
    "published": "OWL-QN, as published",
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
SIZE: dict[str, Cell] = {"potential": of("potential", count), **COST}


def with_paper(row: Row) -> Row:
    """Add the paper's figures: for the experiment, and for SGD and BCD on the same features."""
    stem = "-".join(row["name"].split("-")[:2])
    names = {"paper": row["name"], "sgd": f"{stem}-sgd", "bcd": f"{stem}-bcd"}
    return {**row, **{key: PAPER.get(name, {}) for key, name in names.items()}}


def of_known(known: Known, experiments: Iterable[Any], columns: Mapping[str, Cell]) -> list[str]:
    """Return a table of the experiments that have been run."""
    return filled([known[one.name] for one in experiments if one.name in known], columns)


def filled(items: Sequence[Row], columns: Mapping[str, Cell]) -> list[str]:
    """Return a table, or nothing if it has no rows."""
    return [tabulate(items, columns)] if items else []


# Tables


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


def penalties(known: Known) -> list[str]:
    """Return table 3: l2, l1, elastic net."""
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
    return filled(rows, columns)


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
        **SIZE,
        "paper, min": of("paper.minutes", whole),
    }
    return of_known(known, given.phonemes(), columns)


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
        **SIZE,
        "paper, SGD, min": of("sgd.minutes", whole),
        "paper, BCD, min": of("bcd.minutes", whole),
    }
    return of_known(known, given.joint(), columns)


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
        "share": lambda row: f"{100.0 * row['admitted'] / row['potential']:.1f} %",
        "active": of("active", whole),
        **COST,
    }
    return filled(list(rows.values()), columns)


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
        **SIZE,
    }
    return of_known(known, given.tags(), columns)


SECTIONS: dict[str, Callable[[Known], list[str]]] = {
    "Tests of pairs of labels (table 1)": pairs,
    "Penalties (table 3)": penalties,
    "Methods (table 4)": methods,
    "Phonemes with stress (table 5)": joint,
    "Structured feature sets (section 5.4)": stages,
    "Parts of speech": tags,
}


def sections(records: Records, published: Sections) -> Sections:
    """Return the tables of all experiments with figures."""
    rows = {row["name"]: with_paper(row) for row in records.get("results", [])}
    known = {name: rows[name] for name in EXPERIMENTS if name in rows}
    return {title: blocks for title, write in SECTIONS.items() if (blocks := write(known))}


REPORT = Report(
    "LAVERGNE.md", "a few words", sections, frozenset(_PROSE), kept="lavergne/figures.jsonl"
)
