"""The tables of the report, in the order of the paper."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev

from bench.tables import number, table

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
    alike,
    letters,
    phonemes,
    structured,
)
from .paper import L2_ERRORS, PUBLISHED, TAGS_PUBLISHED
from .records import (
    Record,
    admitted,
    count,
    ending,
    iterations,
    lowest_iteration,
    passes,
    percent,
    polished_cell,
)

Records = Mapping[str, Record]
_METHODS = {
    "owlqn": "OWL-QN",
    "sgd": "SGD-L1",
    "bcd": "BCD",
    "published": "OWL-QN, as published",
}


def family_of(name: str) -> str:
    """The feature set of an experiment's name, as the paper writes it."""
    word = name.split("-")[1]
    n, _, variant = word.partition("grm")
    return f"{n}-grm{variant}"


def method_of(name: str) -> str:
    """The solver of an experiment's name."""
    return _METHODS[name.split("-")[2]]


def _cost(record: Record) -> list[str]:
    return [f"{record['cpu']:,.0f}{ending(record)}", f"{record['peak_mb']:,.0f}"]


def methods(records: Records, extra: Record) -> str:
    """Table 4: three ways to learn."""
    rows = []
    for name in (one.name for one in phonemes()):
        if name not in records:
            continue
        record, paper = records[name], PUBLISHED.get(name)
        rows.append(
            [
                f"{family_of(name)}, {method_of(name)}",
                *(percent(record["errors"][part]) for part in ("dev", "test")),
                percent(paper.error if paper else None),
                f"{percent(record['best']['test'])} ({lowest_iteration(record)})",
                polished_cell(record),
                str(iterations(record)),
                number(passes(record)),
                f"{record['active']:,}",
                f"{paper.active:,}" if paper and paper.active else "",
                count(record["potential"]),
                *_cost(record),
                f"{paper.minutes}" if paper and paper.minutes else "",
            ]
        )
    if not rows:
        return ""
    header = ["", "dev, %", "test, %", "paper", "best dev (iteration)", "polished", "iterations"]
    header += ["passes", "active", "paper", "potential", "s", "MB", "paper, min"]
    return table(header, rows)


def pairs(records: Records, extra: Record) -> str:
    """Table 1: what it is worth to conjoin observations with pairs of labels."""
    rows = []
    for family in FAMILIES:
        n = family.rstrip("+")
        name = f"phonemes-{n}grm{family[len(n) :]}-owlqn"
        both = name, f"{name}-unigrams"
        if not all(one in records for one in both):
            continue
        cells = [family_of(name)]
        for one in both:
            record, paper = records[one], PUBLISHED.get(one)
            cells += [percent(record["errors"]["test"]), percent(paper.error if paper else None)]
            cells += [count(record["potential"]), f"{record['active']:,}", *_cost(record)[:1]]
        rows.append(cells)
    if not rows:
        return ""
    side = ["test, %", "paper", "potential", "active", "s"]
    return table(["", *(f"with: {c}" for c in side), *(f"without: {c}" for c in side)], rows)


def _best_dense(records: Records, family: str) -> tuple[float, Record] | None:
    """The l2 that is best on the development part without l1, and its record."""
    suffix = "-observed" if family == "5" else ""
    names = {l2: f"phonemes-{family}grm-owlqn-l2={l2:g}{suffix}" for l2 in L2_TRIED}
    found = {l2: records[name] for l2, name in names.items() if name in records}
    if not found:
        return None
    best = min(found, key=lambda l2: found[l2]["errors"]["dev"])
    return best, found[best]


def penalties(records: Records, extra: Record) -> str:
    """Table 3: l2, l1, and both; and other l1."""
    rows = []
    for family in ("1", "3", "5"):
        name = f"phonemes-{family}grm-owlqn"
        dense, sparse, both = (
            _best_dense(records, family),
            records.get(f"{name}-l1"),
            records.get(name),
        )
        if not (dense and sparse and both):
            continue
        note = ", observed pairs only" if family == "5" else ""
        paper = PUBLISHED[f"{name}-l1"].error, {"1": 17.79, "3": 10.70, "5": 8.48}[family]
        rows.append(
            [
                f"{family}-grm",
                f"{percent(dense[1]['errors']['test'])} (l2 = {dense[0]:g}{note})",
                percent(L2_ERRORS[family]),
                percent(sparse["errors"]["test"]),
                percent(paper[0]),
                percent(both["errors"]["test"]),
                percent(paper[1]),
                f"{dense[1]['active']:,}",
                f"{both['active']:,}",
            ]
        )
    header = ["", "l2", "paper", "l1", "paper", "both", "paper", "active, l2", "active, both"]
    text = table(header, rows) if rows else ""
    return "\n\n".join(filter(None, [text, _tried(records)]))


def _tried(records: Records) -> str:
    """Errors of the development part with other penalties."""
    rows = []
    for family in TUNED:
        name = letters("phonemes", family).name
        tried = {name: (L1, L2)}
        tried |= {f"{name}-l1={l1:g}": (l1, L2) for l1 in L1_TRIED}
        tried |= {f"{name}-more-l2={l2:g}": (L1, l2) for l2 in MORE_L2_TRIED}
        found = [one for one in tried if one in records]
        if len(found) < 2:
            continue
        rows += [
            [
                f"{family_of(name)}, l1 = {tried[one][0]:g}, l2 = {tried[one][1]:g}",
                *(percent(records[one]["errors"][part]) for part in ("dev", "test")),
                *(percent(records[one]["best"][part]) for part in ("dev", "test")),
                f"{records[one]['active']:,}",
                *_cost(records[one]),
            ]
            for one in sorted(found, key=tried.__getitem__)
        ]
    if not rows:
        return ""
    header = ["", "dev, %", "test, %", "lowest dev", "test there", "active", "s", "MB"]
    return "All other tables have the paper's l1 and l2.\n\n" + table(header, rows)


def joint(records: Records, extra: Record) -> str:
    """Table 5: phonemes with stress marks."""
    rows = []
    for family in FAMILIES:
        n = family.rstrip("+")
        stem = f"joint-{n}grm{family[len(n) :]}"
        published = [PUBLISHED.get(f"{stem}-{solver}") for solver in ("sgd", "bcd")]
        for suffix in ("owlqn", "owlqn-by-labels", "sgd"):
            name = f"{stem}-{suffix}"
            if name not in records:
                continue
            record = records[name]
            in_stages = ", in stages, by labels" if "by-labels" in name else ""
            rows.append(
                [
                    f"{family_of(name)}, {method_of(name)}{in_stages}",
                    *(_two(record["errors"], part) for part in ("dev", "test")),
                    _two(record["best"], "test"),
                    *(f"{p.error:.2f} / {p.part:.2f}" if p else "" for p in published),
                    str(iterations(record)),
                    f"{record['active']:,}",
                    count(record["potential"]),
                    *_cost(record),
                    *(f"{p.minutes}" if p else "" for p in published),
                ]
            )
    if not rows:
        return ""
    header = ["joint / phoneme, %", "dev", "test", "best dev", "paper, SGD", "paper, BCD"]
    header += ["iterations", "active", "potential", "s", "MB", "paper, SGD, min", "paper, BCD, min"]
    return table(header, rows)


def _two(errors: Mapping[str, float], part: str) -> str:
    return f"{errors[part]:.2f} / {errors[f'{part}_part']:.2f}"


def stages(records: Records, extra: Record) -> str:
    """Section 5.4, on letters."""
    rows = []
    for one in structured():
        whole = one.name.removesuffix("-by-tests").removesuffix("-by-labels")
        whole = whole.removesuffix("-observed")
        rule = one.name.removeprefix(whole).removeprefix("-").replace("by-", "by ")
        for name, how in ((whole, "all at once"), (one.name, rule)):
            if name not in records or one.name not in records:
                continue
            record = records[name]
            rows.append(
                [
                    f"{family_of(name)}, {how}",
                    percent(record["errors"]["test"]),
                    percent(record["best"]["test"]),
                    percent(record["errors"]["dev"]),
                    count(admitted(record)),
                    f"{100.0 * admitted(record) / record['potential']:.1f} %",
                    f"{record['active']:,}",
                    *_cost(record),
                ]
            )
    if not rows:
        return ""
    distinct = list(dict.fromkeys(map(tuple, rows)))
    header = ["", "test, %", "best dev", "dev, %", "admitted", "share", "active", "s", "MB"]
    return (
        "*By tests*: windows of three, five and seven letters enter where all the largest windows "
        "inside them are active, with all labels; *by labels*: with the labels only that these "
        "are active with; *observed*: all at once, but only pairs of a test and a label, or two, "
        "that occur in training.\n\n" + table(header, distinct)
    )


def merging(records: Records, extra: Record) -> str:
    """What it saves to learn tests that are alike as one."""
    rows = []
    for one in alike():
        both = one.name.removesuffix("-merged"), one.name
        if not all(name in records for name in both):
            continue
        for name, how in zip(both, ("apart", "as one"), strict=True):
            record = records[name]
            rows.append(
                [
                    f"{family_of(name)}, {how}",
                    *(percent(record["errors"][part]) for part in ("dev", "test")),
                    f"{record['course']['objective'][-1]:,.1f}",
                    str(iterations(record)),
                    f"{record['course']['n_active'][-1]:,}",
                    f"{record['active']:,}",
                    *_cost(record),
                ]
            )
    if not rows:
        return ""
    header = ["", "dev, %", "test, %", "objective", "iterations", "active, learnt", "active"]
    return (
        "Tests that are true of the same letters of the training words are learnt as one "
        "(`merge_tests`), whose weight is then divided among them: *active, learnt* are such "
        "weights, *active* those of the model. The minimum is the same; runs stop before it.\n\n"
        + table([*header, "s", "MB"], rows)
    )


def folds(records: Records, extra: Record) -> str:
    """The ten folds, as far as they have been run."""
    rows = []
    for family in FOLDED:
        stem = letters("phonemes", family).name
        names = [f"{stem}-fold{fold}" for fold in range(N_FOLDS)]
        found = {name: records[name] for name in names if name in records}
        if len(found) < 2:
            continue
        paper = PUBLISHED.get(stem)
        for which, label in (("errors", "at the stop"), ("best", "best dev")):
            errors = {name: record[which]["test"] for name, record in found.items()}
            rows.append(
                [
                    f"{family_of(stem)}, {label}",
                    f"{fmean(errors.values()):.2f}",
                    f"{stdev(errors.values()):.2f}",
                    str(len(errors)),
                    percent(paper.error if paper else None),
                    *(percent(errors.get(name)) for name in names),
                    f"{fmean(record['cpu'] for record in found.values()):,.0f}",
                ]
            )
    if not rows:
        return ""
    header = ["test, %", "mean", "deviation", "folds", "paper"]
    header += [f"fold {fold}" for fold in range(N_FOLDS)]
    return (
        "Each is for testing once, the one before it for stopping, the others for training. Fold 9 "
        "is the test part of the other tables; runs end sooner here.\n\n"
        + table([*header, "s each"], rows)
    )


def tags(records: Records, extra: Record) -> str:
    """Parts of speech."""
    names: Sequence[str] = [name for name in records if name.split("-")[0] in ("ewt", "brown")]
    rows = [
        [
            name,
            *(percent(records[name]["errors"][part]) for part in ("dev", "test")),
            percent(records[name]["best"]["test"]),
            polished_cell(records[name]),
            percent(TAGS_PUBLISHED.get(name)),
            str(records[name]["labels"]),
            f"{records[name]['active']:,}",
            count(records[name]["potential"]),
            *_cost(records[name]),
        ]
        for name in names
    ]
    if not rows:
        return ""
    header = ["", "dev, %", "test, %", "best dev", "polished", "paper, WSJ", "labels", "active"]
    return (
        "UD English EWT with its XPOS, and Brown with the simple tags, in place of the Wall Street "
        "Journal, which is licensed: other text, so that figures do not compare. Default "
        "templates; tests of the word itself have pairs of labels too, but for *unigrams*.\n\n"
        + table([*header, "potential", "s", "MB"], rows)
    )


def gradients(records: Records, extra: Record) -> str:
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
    return (
        "There is no switch between sparse and dense recursions: only weights of the working set "
        "are ever looked at. So a value and gradient at the weights of a finished run is timed "
        "twice, on the active weights and on all of them. *Zeros of M*: pairs of labels at a token "
        "that have no active weight; the paper's column has minutes of whole runs: sparse, not "
        "sparse (zeros).\n\n" + table([*header, "paper"], rows)
    )


SECTIONS: tuple[tuple[str, Callable[[Records, Record], str]], ...] = (
    ("Tests of pairs of labels (table 1)", pairs),
    ("Sparse evaluation (table 2)", gradients),
    ("Penalties (table 3)", penalties),
    ("Methods (table 4)", methods),
    ("Phonemes with stress (table 5)", joint),
    ("Structured feature sets (section 5.4)", stages),
    ("Tests that are alike", merging),
    ("Ten folds", folds),
    ("Parts of speech", tags),
)
