"""The experiments: a row of a table each."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from spacy_sparsecrf.features.defaults import DEFAULT_TEMPLATES

from .corpora import CANONICAL, N_FOLDS

# Lavergne et al. (2010), section 5.1.
L1, L2 = 0.5, 1e-5
# Settings where an experiment says nothing: iterations begin with the last weights of six epochs,
# in the first row.
SETTINGS = {"OWLQN": {"warm_start_epochs": 6, "average_warm_start": False, "steep_start": False}}
FAMILIES = "1", "3", "5", "7", "5+", "5++"
FOLDED = "7", "5+", "5++"


@dataclass(frozen=True)
class Experiment:
    """One row.

    name: of its file; data: of a task; templates; solver, settings: see `crf_solvers`; l1, l2: the
    penalty; fold: to test on; polish: numbers of L-BFGS iterations after the stop, each tried from
    the same weights; schedule: stages of templates; observed_only, precision: see `ChainLoss`;
    cap: seconds of the processor after which training stops; most: outer iterations at most.
    """

    name: str
    data: str
    templates: tuple[str, ...]
    solver: str = "OWLQN"
    settings: dict[str, Any] = field(default_factory=dict)
    l1: float = L1
    l2: float = L2
    fold: int = CANONICAL
    polish: tuple[int, ...] = (5, 10)
    schedule: tuple[dict[str, Any], ...] = ()
    observed_only: bool = False
    precision: str = "float64"
    cap: float = 3600.0
    most: int = 200


# Settings by what names of experiments say. The paper's coordinate descent starts from zero; here
# a sweep is an outer iteration, so that the stop is looked for after each.
SOLVERS: dict[str, dict[str, Any]] = {
    "owlqn": {"solver": "OWLQN"},
    "published": {
        "solver": "OWLQN",
        "settings": {"classic": True, "history": 5, "warm_start_epochs": 0},
    },
    "sgd": {"solver": "SGDL1", "most": 40},
    "bcd": {
        "solver": "BCD",
        "settings": {"warm_start_epochs": 0, "inner_iterations": 1},
        "cap": 900.0,
    },
}
# Where there are many runs, or many labels, the last digits of the objective cost too much.
_SOONER = {"window": 1e-4}
# Penalties of the search on the development part, and the dense one of table 3.
TUNED = "5+", "7"
L1_TRIED = 0.1, 0.2, 0.35, 0.7, 1.0
MORE_L2_TRIED = 0.01, 0.1
L2_TRIED = 0.03, 0.1, 0.3, 1.0


def parts_of(family: str) -> tuple[str, str]:
    """The length of a family's windows, and what stands behind it: "5+" is 5 and +."""
    n = family.rstrip("+-")
    return n, family[len(n) :]


def ngrm(family: str, pairs: bool = True) -> tuple[str, ...]:
    """Templates of windows of letters, such as "5+".

    pairs: whether they are conjoined with pairs of labels, and not only with labels.
    """
    n, variant = parts_of(family)
    window = f"ngrm({n}, orth){variant}"
    return (f"*:{window}",) if pairs else ("b:", f"u:{window}")


def letters(data: str, family: str, solver: str = "owlqn", **changes: Any) -> Experiment:
    """An experiment on Nettalk, named after what it does."""
    n, variant = parts_of(family)
    name = f"{data}-{n}grm{variant}-{solver}"
    return replace(Experiment(name, data, ngrm(family), **SOLVERS[solver]), **changes)


def _changed(one: Experiment, suffix: str, **changes: Any) -> Experiment:
    return replace(one, name=f"{one.name}-{suffix}", **changes)


def _stages(family: str, admit: str) -> tuple[dict[str, Any], ...]:
    """Windows enter by their length, where smaller ones are active."""
    n, variant = parts_of(family)
    lengths = range(1, int(n) + 1, 2)
    stages = []
    for length in lengths:
        stage: dict[str, Any] = {"templates": f"*:ngrm({length}, orth){variant}"}
        if length < int(n):
            # Enough for the error to settle, not for the minimum.
            stage["steps"] = 2
        if length > 1:
            stage["admit"] = admit
        stages.append(stage)
    return tuple(stages)


def without_pairs() -> Iterator[Experiment]:
    """Table 1: tests that are conjoined with single labels only."""
    for family in ("3", "5", "5+"):
        yield _changed(letters("phonemes", family), "unigrams", templates=ngrm(family, False))


def penalties() -> Iterator[Experiment]:
    """Table 3, with the l2 that is best on the development part; and the search for l1."""
    for family in ("1", "3", "5"):
        yield _changed(letters("phonemes", family), "l1", l2=0.0)
    for family in ("1", "3"):
        for l2 in L2_TRIED:
            yield _dense(family, l2)
    for l2 in L2_TRIED:
        # 160 million weights in a dozen vectors are more than fits here.
        yield _changed(_dense("5", l2), "observed", observed_only=True)
    for family in TUNED:
        for l1 in L1_TRIED:
            yield _changed(letters("phonemes", family), f"l1={l1:g}", l1=l1)
        for l2 in MORE_L2_TRIED:
            yield _changed(letters("phonemes", family), f"more-l2={l2:g}", l2=l2)


def _dense(family: str, l2: float) -> Experiment:
    # All weights are in use, so that an iteration with 14 million takes many seconds.
    one = letters("phonemes", family, settings={"history": 5}, polish=(), cap=600.0)
    return _changed(one, f"l2={l2:g}", l1=0.0, l2=l2)


def structured() -> Iterator[Experiment]:
    """Section 5.4, on letters: windows in stages; and pairs that occur only."""
    for family in ("5", "7", "5+", "5++"):
        for admit in ("tests", "labels"):
            schedule = _stages(family, admit)
            yield _changed(letters("phonemes", family), f"by-{admit}", schedule=schedule)
    for family in ("5", "7", "5+"):
        yield _changed(letters("phonemes", family), "observed", observed_only=True)


def joint() -> Iterator[Experiment]:
    """Table 5: phonemes with stress marks."""
    for family in FAMILIES:
        yield letters("joint", family, settings=_SOONER)
        yield letters("joint", family, "sgd")
    for family in ("5+", "5++"):
        schedule = _stages(family, "labels")
        one = letters("joint", family, settings=_SOONER)
        yield _changed(one, "by-labels", schedule=schedule)


def folds() -> Iterator[Experiment]:
    """Some feature sets on all ten folds."""
    for family in FOLDED:
        for fold in range(N_FOLDS):
            one = letters("phonemes", family, settings=_SOONER, polish=())
            yield _changed(one, f"fold{fold}", fold=fold)


# Tests of the word itself, which are worth pairs of labels.
_OWN = tuple(t for t in DEFAULT_TEMPLATES if t.count("[") == 1 and t.endswith("[0]"))
PAIR_TEMPLATES = tuple(f"*:{t.removeprefix('u:')}" if t in _OWN else t for t in DEFAULT_TEMPLATES)


def tags() -> Iterator[Experiment]:
    """Parts of speech, in place of the Wall Street Journal."""
    yield Experiment("ewt-owlqn", "ewt", PAIR_TEMPLATES)
    yield Experiment("ewt-sgd", "ewt", PAIR_TEMPLATES, **SOLVERS["sgd"])
    yield Experiment("ewt-owlqn-unigrams", "ewt", DEFAULT_TEMPLATES)
    yield Experiment("brown-owlqn-unigrams", "brown", DEFAULT_TEMPLATES, precision="float32")


def phonemes() -> Iterator[Experiment]:
    """Table 4, and the first column of table 1."""
    for family in FAMILIES:
        for solver in ("owlqn", "sgd", "bcd"):
            yield letters("phonemes", family, solver)
    for family in ("1", "3", "5+"):
        yield letters("phonemes", family, "published")


EXPERIMENTS = (
    *phonemes(),
    *without_pairs(),
    *penalties(),
    *structured(),
    *joint(),
    *folds(),
    *tags(),
)


def by_name(name: str) -> Experiment:
    """The experiment of a name. RAISES: KeyError."""
    return {one.name: one for one in EXPERIMENTS}[name]
