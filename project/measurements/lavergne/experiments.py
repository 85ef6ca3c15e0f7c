"""The experiments: each is a row of a table."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from spacy_sparsecrf.pipeline.features.defaults import DEFAULT_TEMPLATES

# Lavergne et al. (2010), section 5.1.
L1, L2 = 0.5, 1e-5
# The weights after six epochs of warm start are the initial weights.
WARM_START: dict[str, Any] = {"epochs": 6, "averaged": False, "evaluated": False}
# Defaults of solver settings.
SETTINGS = {"OWLQN": {"variant": "plain"}}
FAMILIES = "1", "3", "5", "7", "5+", "5++"


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    name: of its row; data: name of a task; templates; solver, settings: see `crf_solvers`; l1, l2:
    the penalty; polish: numbers of L-BFGS iterations after training, each from the same weights;
    stages: templates of each stage, see `stages`; by_label: whether stages admit features with
    single labels; observed_only, precision: see `ChainLoss`; cap, most: maximum processor seconds,
    and outer iterations; warm_start: whether to begin with a warm start.
    """

    name: str
    data: str
    templates: tuple[str, ...]
    solver: str = "OWLQN"
    settings: dict[str, Any] = field(default_factory=dict)
    l1: float = L1
    l2: float = L2
    polish: tuple[int, ...] = (5, 10)
    stages: tuple[tuple[str, ...], ...] = ()
    by_label: bool = False
    observed_only: bool = False
    precision: str = "float64"
    cap: float = 3600.0
    most: int = 200
    warm_start: bool = True


# Settings by suffix of an experiment's name. Coordinate descent starts from zero as in the paper;
# an outer iteration is one sweep, so that the stopping rule is checked after each sweep.
SOLVERS: dict[str, dict[str, Any]] = {
    "owlqn": {"solver": "OWLQN"},
    "published": {
        "solver": "OWLQN",
        "settings": {"variant": "classic", "history": 5},
        "warm_start": False,
    },
    "sgd": {"solver": "SGDL1", "most": 40, "warm_start": False},
    "bcd": {
        "solver": "BCD",
        "settings": {"inner_iterations": 1},
        "warm_start": False,
        "cap": 900.0,
    },
}
# With many runs or many labels, the last digits of the objective would take too long.
_SOONER = {"window": 1e-4}
# Without l1.
L2_TRIED = 0.03, 0.1, 0.3, 1.0


def parts_of(family: str) -> tuple[str, str]:
    """Split a family into window length and suffix: "5+" into 5 and +."""
    n = family.rstrip("+-")
    return n, family[len(n) :]


def ngrm(family: str, pairs: bool = True) -> tuple[str, ...]:
    """Return templates of windows of letters for a family such as "5+".

    pairs: whether windows are conjoined with label pairs as well as with labels.
    """
    n, variant = parts_of(family)
    window = f"ngrm({n}, orth){variant}"
    return (f"*:{window}",) if pairs else ("b:", f"u:{window}")


def letters(data: str, family: str, solver: str = "owlqn", **changes: Any) -> Experiment:
    """Return an experiment on Nettalk, named after its settings."""
    n, variant = parts_of(family)
    name = f"{data}-{n}grm{variant}-{solver}"
    return replace(Experiment(name, data, ngrm(family), **SOLVERS[solver]), **changes)


def _changed(one: Experiment, suffix: str, **changes: Any) -> Experiment:
    return replace(one, name=f"{one.name}-{suffix}", **changes)


def _in_stages(one: Experiment, family: str, suffix: str) -> Experiment:
    """Return an experiment that admits windows by length, where smaller windows are active."""
    n, variant = parts_of(family)
    stages = tuple(ngrm(f"{length}{variant}") for length in range(1, int(n) + 1, 2))
    return _changed(one, suffix, stages=stages, by_label=suffix == "by-labels")


def phonemes() -> Iterator[Experiment]:
    """Yield table 4, and the first column of table 1."""
    for family in FAMILIES:
        for solver in ("owlqn", "sgd", "bcd"):
            yield letters("phonemes", family, solver)
    for family in ("1", "3", "5+"):
        yield letters("phonemes", family, "published")


def without_pairs() -> Iterator[Experiment]:
    """Yield table 1: features conjoined with single labels only."""
    for family in ("3", "5", "5+"):
        yield _changed(letters("phonemes", family), "unigrams", templates=ngrm(family, False))


def penalties() -> Iterator[Experiment]:
    """Yield table 3; l2 is selected on the development part."""
    for family in ("1", "3", "5"):
        yield _changed(letters("phonemes", family), "l1", l2=0.0)
        for l2 in L2_TRIED:
            # All weights are dense: an iteration with 14 million takes many seconds; a dozen
            # vectors of 160 million do not fit in memory here.
            dense = {"settings": {"history": 5}, "polish": (), "cap": 600.0, "l1": 0.0, "l2": l2}
            suffix = f"l2={l2:g}" + ("-observed" if family == "5" else "")
            one = _changed(letters("phonemes", family), suffix, **dense)
            yield replace(one, observed_only=family == "5")


def structured() -> Iterator[Experiment]:
    """Yield section 5.4, on letters: windows in stages, and observed pairs only."""
    for family in ("5", "7", "5+", "5++"):
        for suffix in ("by-features", "by-labels"):
            yield _in_stages(letters("phonemes", family), family, suffix)
    for family in ("5", "7", "5+"):
        yield _changed(letters("phonemes", family), "observed", observed_only=True)


def joint() -> Iterator[Experiment]:
    """Yield table 5: phonemes with stress marks."""
    for family in FAMILIES:
        one = letters("joint", family, settings=_SOONER)
        yield one
        if family in ("5+", "5++"):
            yield _in_stages(one, family, "by-labels")
        yield letters("joint", family, "sgd")


# Features of the word itself are also conjoined with label pairs.
_OWN = tuple(t for t in DEFAULT_TEMPLATES if t.count("[") == 1 and t.endswith("[0]"))
PAIR_TEMPLATES = tuple(f"*:{t.removeprefix('u:')}" if t in _OWN else t for t in DEFAULT_TEMPLATES)


def tags() -> Iterator[Experiment]:
    """Yield part-of-speech tagging, in place of the Wall Street Journal."""
    yield Experiment("ewt-owlqn", "ewt", PAIR_TEMPLATES)
    yield Experiment("ewt-sgd", "ewt", PAIR_TEMPLATES, **SOLVERS["sgd"])
    yield Experiment("ewt-owlqn-unigrams", "ewt", DEFAULT_TEMPLATES)
    yield Experiment("brown-owlqn-unigrams", "brown", DEFAULT_TEMPLATES, precision="float32")


EXPERIMENTS = {
    one.name: one
    for table in (
        *(phonemes, without_pairs, penalties, structured),
        *(joint, tags),
    )
    for one in table()
}
