"""Combinations that are refused, in one table.

A fact is the name of a setting, of a property of a corpus, or of a requirement of a solver. Each
part lists its facts: `Setup`, `Training` for its problem and corpus, and solvers as `requires`. Two
facts are incompatible if and only if a row of the table says so.
"""

from collections.abc import Mapping

from .errors import Errors, SparseCRFError

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
    ("spans", "token target"): Errors.SC504,
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


def of_problem(kind: str, l1: float, l2: float) -> dict[str, str]:
    """Return the facts of a kind of model and its penalty."""
    model = f'model = "{kind}"'
    facts = {
        "l2 > 0" if l2 > 0.0 else "l2 = 0": f"l2 = {l2:g}",
        "chain" if kind == "chain" else "per token": model,
    }
    if l1 > 0.0:
        facts["l1 > 0"] = f"l1 = {l1:g}"
    if kind != "maxent":
        facts["not maxent"] = model
    return facts
