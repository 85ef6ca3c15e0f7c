"""The tables of the report, in the order of the paper."""

from collections.abc import Callable, Mapping
from statistics import fmean, stdev

from reports.records import Stored
from reports.tables import count, number, percent, share, whole, with_text

from .corpora import N_FOLDS
from .experiments import (
    FAMILIES,
    FOLDED,
    L1,
    L1_TRIED,
    L2,
    L2_TRIED,
    MORE_L2_TRIED,
    TUNED,
    letters,
    parts_of,
    phonemes,
    structured,
)
from .figures import Figures
from .paper import L2_ERRORS, PUBLISHED, TAGS_PUBLISHED

Known = Mapping[str, Figures]
_METHODS = {
    "owlqn": "OWL-QN",
    "sgd": "SGD-L1",
    "bcd": "BCD",
    "published": "OWL-QN, as published",
}


def grm(family: str) -> str:
    """A feature set, as the paper writes it."""
    n, variant = parts_of(family)
    return f"{n}-grm{variant}"


def family_of(name: str) -> str:
    """The feature set of an experiment's name, as the paper writes it."""
    return grm(name.split("-")[1].replace("grm", "", 1))


def method_of(name: str) -> str:
    """The solver of an experiment's name."""
    return _METHODS[name.split("-")[2]]


def numbered(error: float | None, iterations: int | None) -> str:
    """An error rate, and the iteration that it is of, or their number."""
    known = error is not None and iterations is not None
    return percent(error) + (f" ({iterations})" if known else "")


def both(labels: float | None, parts: float | None) -> str:
    """Error rates of labels and of their parts."""
    return " / ".join(filter(None, [percent(labels), percent(parts)]))


def mark(one: Figures) -> str:
    """A mark where the run was cut."""
    return "*" if one.cut else ""


def cost(one: Figures) -> list[str]:
    """Seconds, with a mark, and the peak of memory."""
    return [f"{whole(one.cpu)}{mark(one)}", whole(one.peak_mb)]


def methods(known: Known, extra: Stored) -> str:
    """Table 4: three ways to learn."""
    rows = []
    for name in (one.name for one in phonemes()):
        if name not in known:
            continue
        one, paper = known[name], PUBLISHED.get(name)
        rows.append(
            [
                f"{family_of(name)}, {method_of(name)}",
                percent(one.dev),
                percent(one.test),
                percent(paper.error if paper else None),
                numbered(one.best_test, one.best_iteration),
                numbered(one.polished, one.polish_iterations),
                whole(one.iterations),
                "" if one.passes is None else number(one.passes),
                whole(one.active),
                f"{paper.active:,}" if paper and paper.active else "",
                count(one.potential),
                *cost(one),
                f"{paper.minutes}" if paper and paper.minutes else "",
            ]
        )
    if not rows:
        return ""
    header = ["", "dev, %", "test, %", "paper", "best dev (iteration)", "polished", "iterations"]
    header += ["passes", "active", "paper", "potential", "s", "MB", "paper, min"]
    return with_text("", header, rows)


def pairs(known: Known, extra: Stored) -> str:
    """Table 1: what it is worth to conjoin observations with pairs of labels."""
    rows = []
    for family in FAMILIES:
        name = letters("phonemes", family).name
        sides = name, f"{name}-unigrams"
        if not all(side in known for side in sides):
            continue
        cells = [family_of(name)]
        for side in sides:
            one, paper = known[side], PUBLISHED.get(side)
            cells += [percent(one.test), percent(paper.error if paper else None)]
            cells += [count(one.potential), whole(one.active), *cost(one)[:1]]
        rows.append(cells)
    header = ["test, %", "paper", "potential", "active", "s"]
    sides = [f"{side}: {column}" for side in ("with", "without") for column in header]
    return with_text("", ["", *sides], rows)


def _best_dense(known: Known, family: str) -> tuple[float, Figures] | None:
    """The l2 that is best on the development part without l1, and its figures."""
    suffix = "-observed" if family == "5" else ""
    names = {l2: f"phonemes-{family}grm-owlqn-l2={l2:g}{suffix}" for l2 in L2_TRIED}
    found = {l2: known[name] for l2, name in names.items() if name in known}
    if not found:
        return None

    def error(l2: float) -> float:
        dev = found[l2].dev
        # One that is kept without it was the best of those that were tried.
        return float("-inf") if dev is None else dev

    best = min(found, key=error)
    return best, found[best]


def penalties(known: Known, extra: Stored) -> str:
    """Table 3: l2, l1, and both; and other l1."""
    rows = []
    for family in ("1", "3", "5"):
        name = f"phonemes-{family}grm-owlqn"
        dense = _best_dense(known, family)
        sparse, elastic = known.get(f"{name}-l1"), known.get(name)
        if not (dense and sparse and elastic):
            continue
        note = ", observed pairs only" if family == "5" else ""
        paper = PUBLISHED[f"{name}-l1"].error, {"1": 17.79, "3": 10.70, "5": 8.48}[family]
        rows.append(
            [
                f"{family}-grm",
                f"{percent(dense[1].test)}{mark(dense[1])} (l2 = {dense[0]:g}{note})",
                percent(L2_ERRORS[family]),
                percent(sparse.test),
                percent(paper[0]),
                percent(elastic.test),
                percent(paper[1]),
                whole(dense[1].active),
                whole(elastic.active),
            ]
        )
    header = ["", "l2", "paper", "l1", "paper", "both", "paper", "active, l2", "active, both"]
    return "\n\n".join(filter(None, [with_text("", header, rows), _tried(known)]))


def _tried(known: Known) -> str:
    """Errors of the development part with other penalties."""
    rows = []
    for family in TUNED:
        stem = letters("phonemes", family).name
        tried = {stem: (L1, L2)}
        tried |= {f"{stem}-l1={l1:g}": (l1, L2) for l1 in L1_TRIED}
        tried |= {f"{stem}-more-l2={l2:g}": (L1, l2) for l2 in MORE_L2_TRIED}
        found = [known[name] for name in tried if name in known]
        if len(found) < 2:
            continue
        rows += [
            [
                f"{family_of(stem)}, l1 = {tried[one.name][0]:g}, l2 = {tried[one.name][1]:g}",
                *map(percent, (one.dev, one.test, one.best_dev, one.best_test)),
                whole(one.active),
                *cost(one),
            ]
            for one in sorted(found, key=lambda one: tried[one.name])
        ]
    header = ["", "dev, %", "test, %", "lowest dev", "test there", "active", "s", "MB"]
    return with_text("All other tables have the paper's l1 and l2.", header, rows)


def joint(known: Known, extra: Stored) -> str:
    """Table 5: phonemes with stress marks."""
    rows = []
    for family in FAMILIES:
        stem = letters("joint", family).name.removesuffix("-owlqn")
        published = [PUBLISHED.get(f"{stem}-{solver}") for solver in ("sgd", "bcd")]
        for suffix in ("owlqn", "owlqn-by-labels", "sgd"):
            name = f"{stem}-{suffix}"
            if name not in known:
                continue
            one = known[name]
            in_stages = ", in stages, by labels" if "by-labels" in name else ""
            rows.append(
                [
                    f"{family_of(name)}, {method_of(name)}{in_stages}",
                    both(one.dev, one.dev_part),
                    both(one.test, one.test_part),
                    both(one.best_test, one.best_test_part),
                    *(both(p.error, p.part) if p else "" for p in published),
                    whole(one.iterations),
                    whole(one.active),
                    count(one.potential),
                    *cost(one),
                    *(f"{p.minutes}" if p else "" for p in published),
                ]
            )
    header = ["joint / phoneme, %", "dev", "test", "best dev", "paper, SGD", "paper, BCD"]
    header += ["iterations", "active", "potential", "s", "MB", "paper, SGD, min", "paper, BCD, min"]
    return with_text("", header, rows)


def stages(known: Known, extra: Stored) -> str:
    """Section 5.4, on letters."""
    rows = []
    for staged in (experiment.name for experiment in structured()):
        plain = staged.removesuffix("-by-tests").removesuffix("-by-labels")
        plain = plain.removesuffix("-observed")
        rule = staged.removeprefix(f"{plain}-").replace("by-", "by ")
        for name, how in ((plain, "all at once"), (staged, rule)):
            if name not in known or staged not in known:
                continue
            one = known[name]
            rows.append(
                [
                    f"{family_of(name)}, {how}",
                    *map(percent, (one.test, one.best_test, one.dev)),
                    count(one.admitted),
                    share(one.admitted, one.potential),
                    whole(one.active),
                    *cost(one),
                ]
            )
    distinct = list(dict.fromkeys(map(tuple, rows)))
    header = ["", "test, %", "best dev", "dev, %", "admitted", "share", "active", "s", "MB"]
    text = (
        "*By tests*: windows of three, five and seven letters enter where all the largest windows "
        "inside them are active, with all labels; *by labels*: with the labels only that these "
        "are active with; *observed*: all at once, but only pairs of a test and a label, or two, "
        "that occur in training."
    )
    return with_text(text, header, distinct)


def folds(known: Known, extra: Stored) -> str:
    """The ten folds, as far as they have been run."""
    rows = []
    for family in FOLDED:
        stem = letters("phonemes", family).name
        names = [f"{stem}-fold{fold}" for fold in range(N_FOLDS)]
        found = [known[name] for name in names if name in known]
        paper = PUBLISHED.get(stem)
        stop = {one.name: one.test for one in found}
        best = {one.name: one.best_test for one in found if one.best_test is not None}
        seconds = [one.cpu for one in found if one.cpu is not None]
        for label, errors in (("at the stop", stop), ("best dev", best)):
            if len(errors) < 2:
                continue
            rows.append(
                [
                    f"{family_of(stem)}, {label}",
                    percent(fmean(errors.values())),
                    percent(stdev(errors.values())),
                    str(len(errors)),
                    percent(paper.error if paper else None),
                    *(percent(errors.get(name)) for name in names),
                    whole(fmean(seconds) if seconds else None),
                ]
            )
    header = ["test, %", "mean", "deviation", "folds", "paper"]
    header += [f"fold {fold}" for fold in range(N_FOLDS)]
    text = (
        "Each is for testing once, the one before it for stopping, the others for training. Fold 9 "
        "is the test part of the other tables; runs end sooner here."
    )
    return with_text(text, [*header, "s each"], rows)


def tags(known: Known, extra: Stored) -> str:
    """Parts of speech."""
    rows = [
        [
            name,
            *map(percent, (one.dev, one.test, one.best_test)),
            numbered(one.polished, one.polish_iterations),
            percent(TAGS_PUBLISHED.get(name)),
            whole(one.labels),
            whole(one.active),
            count(one.potential),
            *cost(one),
        ]
        for name, one in known.items()
        if name.split("-")[0] in ("ewt", "brown")
    ]
    header = ["", "dev, %", "test, %", "best dev", "polished", "paper, WSJ", "labels", "active"]
    text = (
        "UD English EWT with its XPOS, and Brown with the simple tags, in place of the Wall Street "
        "Journal, which is licensed: other text, so that figures do not compare. Default "
        "templates; tests of the word itself have pairs of labels too, but for *unigrams*."
    )
    return with_text(text, [*header, "potential", "s", "MB"], rows)


def gradients(known: Known, extra: Stored) -> str:
    """Table 2: what a sparse evaluation saves."""
    if not extra:
        return ""
    rows = [
        [
            name,
            f"{number(1000.0 * one['active_s'])}",
            f"{number(1000.0 * one['all_s'])}",
            f"{one['all_s'] / one['active_s']:.1f}x",
            f"{one['active']:,}",
            count(one["potential"]),
            f"{one['zeros']:.1f} %",
            one["paper"],
        ]
        for name, one in extra["rows"].items()
    ]
    header = ["", "active weights, ms", "all weights, ms", "ratio", "active", "all", "zeros of M"]
    text = (
        "There is no switch between sparse and dense recursions: only weights of the working set "
        "are ever looked at. So a value and gradient at the weights of a finished run is timed "
        "twice, on the active weights and on all of them. *Zeros of M*: pairs of labels at a token "
        "that have no active weight; the paper's column has minutes of whole runs: sparse, not "
        "sparse (zeros)."
    )
    return with_text(text, [*header, "paper"], rows)


SECTIONS: tuple[tuple[str, Callable[[Known, Stored], str]], ...] = (
    ("Tests of pairs of labels (table 1)", pairs),
    ("Sparse evaluation (table 2)", gradients),
    ("Penalties (table 3)", penalties),
    ("Methods (table 4)", methods),
    ("Phonemes with stress (table 5)", joint),
    ("Structured feature sets (section 5.4)", stages),
    ("Ten folds", folds),
    ("Parts of speech", tags),
)
