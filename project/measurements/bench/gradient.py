"""Loss and gradient, compared with iterations of CRFsuite.

A peer's gradient is an iteration of its quasi-Newton method. Some iterations contain more than one
gradient, because of the line search; hence medians.
"""

import importlib.util
from collections.abc import Callable
from functools import partial

from measure.data import Problem
from measure.processes import Cost, alternate, median_cost

from . import peers
from .ours import chain_loss, encoded, gradient, random_weights, trained
from .record import OURS, Options

DENSE, OBSERVED, WORKING = "all weights", "observed pairs", "working set"
# float32 arrays; sums over tokens stay in float64.
SINGLE = f"{OURS}, float32"
DENSE_DATA = "conll2000", "nettalk-3grm"
DATA = (*DENSE_DATA, "ud-en-ewt")
_EVALUATIONS = 5
Side = Callable[[], Cost]


def ours(problem: Problem, kind: str, precision: str = "float64") -> Side:
    """Return a function that evaluates loss and gradient repeatedly, and returns the median cost.

    precision: of all kinds except the working set, which uses float64.
    """
    if kind == WORKING:
        working, theta = trained(problem)
    else:
        loss = chain_loss(problem, precision)
        every = loss.coordinates("all") if kind == DENSE else loss.coordinates("observed")
        working, theta = loss.restrict(every), random_weights(len(every))
    # The first evaluation compiles, and allocates memory.
    gradient(working, theta)
    return lambda: median_cost([gradient(working, theta) for _ in range(_EVALUATIONS)])


def sides_of(name: str, options: Options, n_iterations: int) -> dict[str, dict[str, Side]]:
    """Return the tools that evaluate the same weights, by kind of weights."""
    problem, sides = encoded(name, options.data, options.quick), dict[str, dict[str, Side]]()
    if name in DENSE_DATA:
        sides[DENSE] = {OURS: ours(problem, DENSE), SINGLE: ours(problem, DENSE, "float32")}
    # CRFsuite has plain transitions only.
    if len(problem.corpus.bigram_keys) == 1:
        sides[OBSERVED] = {OURS: ours(problem, OBSERVED)}
        if importlib.util.find_spec("pycrfsuite") is not None:
            run = partial(peers.crfsuite, name, options.data, options.quick, n_iterations)
            sides[OBSERVED][peers.CRFSUITE] = run
    return {**sides, WORKING: {OURS: ours(problem, WORKING)}}


def measure(options: Options) -> None:
    """Measure gradients on one thread."""
    repeats, n_iterations = options.times(3), 4 if options.quick else 8
    record = options.record("gradient", repeats=repeats, **{"peer iterations": n_iterations})
    for name in options.names or DATA:
        for what, sides in sides_of(name, options, n_iterations).items():
            record.compare(name, what, alternate(repeats, sides))
