"""Combinations that are refused, in one table.

A fact is the name of a setting, of a property of a corpus, or of a requirement of a solver. Two
facts are incompatible if and only if a row of the table says so. `facts_of_run` states the facts of
a training run, and `pipeline.facts.facts_of` those of a component, which include them.
"""

from collections.abc import Mapping
from typing import Any

from .errors import Errors, SparseCRFError

# The gold label id of the first set of labels, see `EncodedCorpus`; others are less.
_FIRST_SET = -2

Facts = Mapping[str, str]
"""Facts, each with a description for messages, such as 'l1 = 0.1'."""


REFUSED: dict[tuple[str, str], str] = {
    # A corpus in shards.
    ("whole corpus", "shards"): Errors.SC906,
    ("per token", "shards"): Errors.SC906,
    ("stack", "shards"): Errors.SC906,
    ("real values", "shards"): Errors.SC906,
    # Requirements of solvers.
    ("no l1", "l1 > 0"): Errors.SC308,
    ("l2", "l2 = 0"): Errors.SC309,
    ("single tokens", "chain"): Errors.SC340,
    ("all sequences", "constrained"): Errors.SC359,
    ("indicators", "real values"): Errors.SC393,
    ("complete labels", "partial labels"): Errors.SC395,
    ("no prior", "prior"): Errors.SC366,
    ("no l2", "l2 > 0"): Errors.SC336,
    # Models.
    ("clusters", "not maxent"): Errors.SC343,
    ("clusters", "real values"): Errors.SC394,
    ("clusters", "prior"): Errors.SC367,
    ("clusters", "several labels"): Errors.SC360,
    ("constrained", "per token"): Errors.SC357,
    # Loops around training.
    ("stack", "no reader"): Errors.SC411,
    ("reader", "no stack"): Errors.SC416,
    # Updates without a corpus, and predictions.
    ("clusters", "no corpus"): Errors.SC384,
    ("stack", "no corpus"): Errors.SC384,
    ("others", "no outside label"): Errors.SC504,
    ("spans", "token target"): Errors.SC511,
    ("outside weight", "posterior"): Errors.SC402,
}
"""Pairs of facts, and the message of each, which may contain their descriptions."""


def check(facts: Facts, name: str = "NAME", solver: object = None) -> None:
    """Raise the error of the first row whose two facts hold.

    name: of the component; solver: whose requirements are among the facts. RAISES: SparseCRFError.
    """
    for (first, second), error in REFUSED.items():
        if first in facts and second in facts:
            values = {"name": name, "solver": type(solver).__name__}
            described = {"first": facts[first], "second": facts[second]}
            raise SparseCRFError(error.format(**values, **described))


def facts_of_run(
    *,
    kind: str,
    l1: float = 0.0,
    l2: float = 0.0,
    clusters: int = 0,
    constrained: bool = False,
    prior: bool = False,
    solver: Any = None,
    corpus: Any = None,
) -> dict[str, str]:
    """Return the facts of a training run.

    kind, l1, l2, clusters: of the model and its penalty; constrained: whether only some sequences
    of labels are valid; prior: whether the penalty is centred on earlier weights; solver: None if
    the run has none; corpus: an `EncodedCorpus`, None if it is not read yet.
    """
    model = f'model = "{kind}"'
    facts = {
        "l2 > 0" if l2 > 0.0 else "l2 = 0": f"l2 = {l2:g}",
        "chain" if kind == "chain" else "per token": model,
    }
    if l1 > 0.0:
        facts["l1 > 0"] = f"l1 = {l1:g}"
    if kind != "maxent":
        facts["not maxent"] = model
    if clusters:
        facts["clusters"] = f"clusters = {clusters}"
    if constrained:
        facts["constrained"] = "learning.constrained = true"
    if prior:
        facts["prior"] = "prior"
    if solver is not None:
        facts |= dict.fromkeys(solver.requires, f"solver {type(solver).__name__}")
    return facts if corpus is None else facts | _facts_of_corpus(corpus, kind, facts)


def _facts_of_corpus(corpus: Any, kind: str, facts: Facts) -> dict[str, str]:
    """Return the facts of a corpus; facts: of the run."""
    of_corpus = {}
    if len(corpus.value_features):
        of_corpus["real values"] = "real-valued features"
    if len(corpus.sets):
        of_corpus["several labels"] = f"{(corpus.labels <= _FIRST_SET).sum()} training tokens"
    if "complete labels" in facts and (n_partial := _count_partial(corpus, kind)):
        of_corpus["partial labels"] = f"{n_partial} training sequences"
    return of_corpus


def _count_partial(corpus: Any, kind: str) -> int:
    """Count sequences with gold labels of which some are missing, or several for a token."""
    if kind != "chain":
        return int((corpus.labels <= _FIRST_SET).sum())
    labelled, sure = corpus.with_labels()
    return int((labelled & ~sure).sum())
