"""No kernel is compiled twice for types that differ by accident."""

from itertools import combinations
from pathlib import Path

import pytest

from .compiled_cases import AllCompiled, Call, Signatures, compile_all

# What is compiled twice, and the arguments whose types differ; whoever mends one strikes it out.
KNOWN: dict[str, dict[str, list[str]]] = {
    "float64": {},
    "float32": {
        "exp.exp_shifted": ["shift"]  # a scalar of the width of its row, or of another
    },
}


def accidents(first: Call, second: Call, *, widths: bool) -> set[int]:
    """The arguments in whose types two calls of a kernel differ for no reason.

    widths: whether there may be floats of both widths; then all arguments that differ have the one
    in one call and the other in the other.
    """
    pairs = list(zip(first, second, strict=True))
    found = {i for i, ((a, _), (b, _)) in enumerate(pairs) if a != b}
    differing = {i: (a, b) for i, ((_, a), (_, b)) in enumerate(pairs) if a != b}
    mixed = any(
        len({w for width in side for w in width.split()}) > 1
        for side in zip(*differing.values(), strict=True)
    )
    return found | set(differing) if mixed or not widths else found


def differing(compiled: Signatures, *, widths: bool) -> dict[str, list[str]]:
    """The arguments of kernels for whose sake they were compiled twice by accident."""
    found = {}
    for name, (arguments, calls) in compiled.items():
        places = [accidents(*pair, widths=widths) for pair in combinations(calls, 2)]
        if any(places):
            found[name] = sorted({arguments[i] for i in set().union(*places)})
    return found


def check(compiled: Signatures, precision: str) -> None:
    assert sum(bool(calls) for _, calls in compiled.values()) > 30
    assert differing(compiled, widths=precision == "float32") == KNOWN[precision]


def test_no_kernel_is_compiled_twice_by_accident(everything_compiled: AllCompiled) -> None:
    check(everything_compiled.signatures, "float64")


@pytest.mark.slow
def test_no_kernel_of_single_precision_is_compiled_twice_by_accident(tmp_path: Path) -> None:
    # How fast the code is, is nothing.
    check(compile_all("float32", tmp_path, NUMBA_OPT="0"), "float32")
