"""Write LATTICES.md and its plots from the stored courses."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from measure.document import Document, Metrics, Project, Published, measured_on, read_published
from measure.plots import label, line_styles, new_figure, save
from measure.results import Row, is_trial, machines_of, read_rows
from measure.tables import percent, shown, table, tabulate

from spacy_sparsecrf.errors import SparseCRFWarning

from .pictures import NOISES, read_shapes
from .race import BY_GAIN, OPTIMISERS, PAPER, Images

METHODS = {
    "lbp": "loopy belief propagation",
    "mean_field": "mean field",
    "pseudo_likelihood": "pseudo-likelihood",
}
_SHORT = {"lbp": "LBP", "mean_field": "MF", "pseudo_likelihood": "PL"}
# Tolerances relative to the lowest objective of L-BFGS: "near", and a looser one.
_NEAR, _ROUGH = 1e-3, 1e-2
_CLAIMS_TITLE = "What of the paper is confirmed"
DOCUMENT = Document("LATTICES.md", "small pictures", "lattices/plots", frozenset({_CLAIMS_TITLE}))


def is_stable(course: Row) -> bool:
    """Return whether there was no failure, and the objective never exceeded its first value."""
    return not course["failure"] and max(course["objective"]) <= course["objective"][0]


class Race:
    """The courses for one type of noise and one inference method.

    lowest: the lowest objective of L-BFGS. RAISES: LookupError if L-BFGS was not run.
    """

    def __init__(self, rows: Sequence[Row], method: str) -> None:
        self.courses = [row for row in rows if row.get("method") == method]
        self.method = method
        (batch,) = self.of("L-BFGS")
        self.lowest = min(batch["objective"])

    def of(self, name: str) -> list[Row]:
        """Return the courses of an optimiser. RAISES: LookupError if there is none."""
        found = [course for course in self.courses if course["optimiser"] == name]
        if not found:
            raise LookupError(name)
        return found

    def best(self, name: str) -> Row:
        """Return an optimiser's course with the best gain: first to be near, or lowest end."""
        return min(self.of(name), key=lambda each: (self.near(each), each["objective"][-1]))

    def near(self, course: Row, share: float = _NEAR) -> float:
        """Return passes to within a tolerance of the lowest objective; infinite if not reached."""
        goal = self.lowest * (1.0 + share)
        pairs = zip(course["passes"], course["objective"], strict=True)
        return next((passes for passes, value in pairs if value <= goal), np.inf)

    def end(self, course: Row) -> str:
        """Return the last objective, and remarks on stability and on L-BFGS before convergence."""
        if course["failure"]:
            return "unstable"
        before, last = course["objective"][-2:]
        if not is_stable(course):
            return f"{last:.2f}, once above the first"
        falls = course["optimiser"] == "L-BFGS" and before > last * (1.0 + _NEAR)
        return f"{last:.2f}" + (", still falling" if falls else "")


def _passes(value: float) -> str:
    return "–" if np.isinf(value) else f"{value:g}"


def noise_section(noise: str, rows: Sequence[Row]) -> list[str]:
    """Return the section on one type of noise."""
    (nodes,) = (row for row in rows if row["name"] == "nodes")
    settings = nodes["session"]["settings"]
    blocks = [
        f"Logistic regression on nodes alone: {percent(nodes['logistic'])} % of the test pixels "
        f"are wrong. One iteration of belief propagation over all {settings['train']} pictures, "
        f"messages sent all at once, takes {nodes['iteration']:.1f} ms of the processor."
    ]
    for method in dict.fromkeys(row["method"] for row in rows if "method" in row):
        race, name = Race(rows, method), METHODS[method]
        columns: dict[str, Callable[[Row], str]] = {
            "": lambda course: course["optimiser"],
            "gain": lambda course: f"{course['eta']:g}" if course["eta"] else "",
            "objective": race.end,
            f"passes to within {_ROUGH:.0%} of L-BFGS": lambda course, race=race: _passes(
                race.near(course, _ROUGH)
            ),
            f"to {_NEAR:.1%}": lambda course, race=race: _passes(race.near(course)),
            "test error, %": lambda course: percent(course["errors"][-1][1]),
            "CPU s": lambda course: shown(course["cpu"][-1], ".0f"),
            "most pictures not converged": lambda course: str(max(course["open"])),
        }
        title = f"**{name[0].upper()}{name[1:]}**, {settings['passes']} passes, of L-BFGS at most "
        blocks += [title + "twice as many:", tabulate(race.courses, columns)]
    text = f"Objective and test error against passes, {noise} noise"
    blocks.append(DOCUMENT.picture(f"{noise}-courses", text))
    return [*blocks, DOCUMENT.picture(f"{noise}-pictures", f"Pictures, {noise} noise")]


# Claims of the paper


def _told(is_so: bool, figures: str) -> str:
    return f"{'yes' if is_so else 'no'} ({figures})"


def smd_first(rows: Sequence[Row], method: str, other: str, share: float = _NEAR) -> str:
    """Check for each gain whether SMD is within a tolerance of L-BFGS before SGD."""
    race, won, cells = Race(rows, method), [], []
    others = {course["eta"]: course for course in race.of(other)}
    pairs = [(one, others[one["eta"]]) for one in race.of("SGD") if one["eta"] in others]
    for one, two in pairs:
        ends = race.near(one, share), race.near(two, share)
        if min(ends) < np.inf:
            won.append(ends[1] < ends[0])
            cells.append(f"{one['eta']:g}: {_passes(ends[0])} → {_passes(ends[1])}")
    if not won:
        return "neither is near"
    verdict = "yes" if all(won) else "with some gains" if any(won) else "no"
    return f"{verdict} ({', '.join(cells)})"


def is_faster(rows: Sequence[Row]) -> str:
    """Check whether SGD and SMD are near before L-BFGS."""
    race, names = Race(rows, "lbp"), ("L-BFGS", "SGD", "SMD")
    batch, *others = ends = [race.near(race.best(name)) for name in names]
    figures = [f"{name} {_passes(end)}" for name, end in zip(names, ends, strict=True)]
    return _told(max(others) < batch, ", ".join(figures))


def anneals_slowly(rows: Sequence[Row]) -> str:
    """Check whether ASG is near later than SGD."""
    race = Race(rows, "lbp")
    ends = [race.best(name) for name in ("ASG", "SGD")]
    figures = ", ".join(f"{end['optimiser']} {_passes(race.near(end))}" for end in ends)
    slower = race.near(ends[0]) > race.near(ends[1])
    return _told(slower or ends[0]["objective"][-1] > ends[1]["objective"][-1], figures)


def come_to_one(rows: Sequence[Row]) -> str:
    """Check whether all optimisers end at about the same objective."""
    race = Race(rows, "lbp")
    ends = {name: race.best(name)["objective"][-1] for name in OPTIMISERS}
    gaps = {name: end / min(ends.values()) - 1.0 for name, end in ends.items()}
    figures = ", ".join(f"{name} +{gap:.2%}" for name, gap in gaps.items())
    return _told(max(gaps.values()) <= _NEAR, figures)


def highest(rows: Sequence[Row], method: str) -> str:
    """Check whether the paper's gain is the highest with which SGD and SMD are stable."""
    race = Race(rows, method)
    unstable = {course["eta"] for course in race.courses if not is_stable(course)}
    found = max({course["eta"] for course in race.of("SGD")} - unstable, default=0.0)
    return _told(found == PAPER[method], f"{found:g} here, {PAPER[method]:g} there")


def compare_errors(rows: Sequence[Row], worse: str, better: str) -> str:
    """Check whether the test error of one inference method is higher than the error of another."""
    found = {row["name"]: row["logistic"] for row in rows if row["name"] == "nodes"}
    for method in dict.fromkeys(row["method"] for row in rows if "method" in row):
        found[_SHORT[method]] = Race(rows, method).best("L-BFGS")["errors"][-1][1]
    figures = ", ".join(f"{text} {percent(value)}" for text, value in found.items())
    return _told(found[worse] > found[better], figures)


_RIVALS = [(method, "SMD", "mu = 10 eta0") for method in METHODS]
_RIVALS.insert(1, ("lbp", "SMD, mu = 0.1", "mu = 0.1"))
# Claims of the paper, and functions that check them for a type of noise.
_CLAIMS: Mapping[str, Callable[[Sequence[Row]], str]] = {
    **{
        f"SMD is within {share:.1%} of BFGS in fewer passes than SGD with the same gain: "
        f"{_SHORT[method]}, {mu}": partial(smd_first, method=method, other=name, share=share)
        for method, name, mu in _RIVALS
        for share in (_ROUGH, _NEAR)
    },
    "SGD and SMD, each with its best gain, are near in fewer passes than BFGS: LBP": is_faster,
    "ASG is slower: LBP": anneals_slowly,
    f"all come to one objective, within {_NEAR:.1%}: LBP": come_to_one,
    **{
        f"the paper's gain is the highest stable one of those tried: {text}": partial(
            highest, method=method
        )
        for method, text in _SHORT.items()
    },
    "edges help: test error of LBP is lower than that of nodes alone, %": partial(
        compare_errors, worse="nodes", better="LBP"
    ),
    "mean field is slightly worse than LBP, %": partial(compare_errors, worse="MF", better="LBP"),
    "pseudo-likelihood breaks down (above 50 % there): worse than nodes alone, %": partial(
        compare_errors, worse="PL", better="nodes"
    ),
}


def _answer(tell: Callable[[Sequence[Row]], str], rows: Sequence[Row]) -> str:
    """Return the verdict on a claim, or "not run" if a required run is missing."""
    try:
        return tell(rows)
    except LookupError:
        return "not run"


def findings(records: Mapping[str, Sequence[Row]]) -> str:
    """Return the table of claims and verdicts."""
    lines = [
        [claim, *(_answer(tell, rows) for rows in records.values())]
        for claim, tell in _CLAIMS.items()
    ]
    return table(["Claim", *(f"{noise} noise" for noise in records)], lines)


# Plots


def draw_courses(rows: Sequence[Row], path: Path) -> None:
    """Draw objective and test error against passes, each with its best gain, as in figure 4."""
    ran = list(dict.fromkeys(row["method"] for row in rows if "method" in row))
    figure = new_figure(8.0, 3.0 * len(ran))
    if figure is None:
        return
    styles, most = line_styles(OPTIMISERS), rows[0]["session"]["settings"]["passes"]
    for (left, right), method in zip(figure.subplots(len(ran), 2, squeeze=False), ran, strict=True):
        race, name = Race(rows, method), METHODS[method]
        names = {course["optimiser"] for course in race.courses}
        for one in (name for name in OPTIMISERS if name in names):
            course = race.best(one)
            text = f"{one}, {course['eta']:g}" if one != "L-BFGS" else one
            style = {**styles[one], "label": text}
            left.plot(course["passes"], course["objective"], **style)
            at, errors = zip(*course["errors"], strict=True)
            right.plot([course["passes"][i] for i in at], errors, **style)
        start, lowest = race.courses[0]["objective"][0], race.lowest
        # The mean-field log Z is a lower bound, so the objective may fall below zero.
        scale = "log" if lowest > 0.0 else "symlog"
        label(left, xlabel="passes", ylabel="training objective", title=name, yscale=scale)
        left.set(ylim=(lowest - 0.01 * abs(lowest), 1.05 * start), xlim=(0.0, most))
        label(right, xlabel="passes", ylabel="wrong test pixels, %", title=name, yscale="log")
        right.set(xlim=(0.0, most))
        left.legend(frameon=False, fontsize="small")
    save(figure, path)


def draw_pictures(noise: str, rows: Sequence[Row], path: Path) -> None:
    """Draw truth, noise, and the results of logistic regression and inference, as in figure 3."""
    figure, session = new_figure(9.0, 5.0), rows[0]["session"]
    if figure is None:
        return
    pictures = read_shapes(session["settings"]["shapes"])[:4]
    pictures = [each[::4, ::4] if session["quick"] else each for each in pictures]
    test = Images.drawn(noise, pictures, len(pictures), 1)
    shape = len(test.truths), *test.truths[0].shape

    def denoised(course: Row) -> list[Any]:
        return list(test.labels(np.array(course["theta"])).reshape(shape))

    columns: list[tuple[str, Sequence[Any]]] = [("truth", test.truths), ("noise", test.greys)]
    columns.append(("nodes alone", denoised(rows[0])))
    for method in dict.fromkeys(row["method"] for row in rows if "method" in row):
        for one in ("L-BFGS", *BY_GAIN[:2]) if method == "lbp" else ("L-BFGS",):
            columns.append((f"{_SHORT[method]}, {one}", denoised(Race(rows, method).best(one))))
    axes = figure.subplots(len(pictures), len(columns), squeeze=False)
    for i, (title, column) in enumerate(columns):
        for j, picture in enumerate(column):
            axes[j][i].imshow(picture, cmap="gray", vmin=0.0, vmax=1.0)
            axes[j][i].set_axis_off()
        axes[0][i].set_title(title, fontsize="small")
    save(figure, path)


def render(records: Mapping[str, list[Row]], published: Published, trial: bool) -> str:
    """Return the report."""
    sections = {_CLAIMS_TITLE: [findings(records)]}
    for noise, rows in records.items():
        sections[f"{noise.capitalize()} noise"] = noise_section(noise, rows)
    machines = machines_of(row for rows in records.values() for row in rows)
    return DOCUMENT.render(published, measured_on(machines), sections, trial)


def main(metrics: Metrics, project: Project) -> None:
    """Write the report on the results so far."""
    files = {noise: read_rows(metrics / f"{noise}.jsonl") for noise in NOISES}
    records = {noise: rows for noise, rows in files.items() if rows}
    # Some courses end with weights so large that no inference converges; the tables report them.
    warnings.filterwarnings("ignore", "\\[SCW370", SparseCRFWarning)
    for noise, rows in records.items():
        draw_courses(rows, metrics / f"{noise}-courses")
        draw_pictures(noise, rows, metrics / f"{noise}-pictures")
    trial = is_trial(row for rows in records.values() for row in rows)
    text = render(records, read_published(project / DOCUMENT.name), trial)
    DOCUMENT.publish(text, metrics, project, trial)


if __name__ == "__main__":
    typer.run(main)
