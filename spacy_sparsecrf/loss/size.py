"""How large a problem is, and about how much memory it takes to train on it.

How much memory this process may still use, where the system tells.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .chain import ChainLoss
from .pairs import bytes_of_pairs
from .weights import FeatureBlocks
from .workspace import Workspace

# Bytes for each test of a token: tests by token and tokens by test, rows, and lists made of them.
_PER_OCCURRENCE = 32
_PER_TOKEN = 80
# Bytes for each sequence, and each test, where the rest is in files.
_PER_SEQUENCE = 64
_PER_TEST = 64
# Weights of the working set that a sparse solver ends with, for each that is observed.
_WORKING_SHARE = 0.4
# Vectors of float64 that a batch solver and its loss hold, those of its history besides.
_N_VECTORS = 16


@dataclass(frozen=True)
class Size:
    """The size of a problem.

    n_tests, n_potential, n_observed: tests, weights, and weights of a test and a gold label or
    label pair that occur, None where nobody has counted them; n_bytes: about what training takes at
    its peak, besides the corpus.
    """

    n_tests: int
    n_potential: int
    n_observed: int | None
    n_bytes: int

    def __str__(self) -> str:
        """All of it in words."""
        observed = "" if self.n_observed is None else f" and {self.n_observed} observed"
        return (
            f"{self.n_tests} tests, {self.n_potential} potential{observed} weights; "
            f"training takes about {as_text(self.n_bytes)} more memory"
        )


def total(sizes: Sequence[Size]) -> Size:
    """The size of problems all of whose arrays stay."""
    return Size(*map(sum, zip(*map(astuple, sizes), strict=True)))


def check_fits(size: Size, available: int | None, n_labels: int, l1: float) -> None:
    """Refuse a problem that cannot be held in memory, and tell what to change.

    available: bytes, or None where it is not known.
    RAISES: SparseCRFError.
    """
    if available is None or size.n_bytes <= available:
        return
    values = {
        "n_tests": size.n_tests,
        "n_labels": n_labels,
        "n_potential": size.n_potential,
        "n_observed": size.n_observed,
        "needed": as_text(size.n_bytes),
        "available": as_text(available),
    }
    if l1 == 0.0:
        raise SparseCRFError(Errors.SC320.format(**values))
    raise SparseCRFError(Errors.SC321.format(**values))


def as_text(n_bytes: int) -> str:
    """A number of bytes, to read."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def measure(loss: ChainLoss, l1: float, history: int = 0) -> Size:
    """Count, and estimate, before anything large is filled.

    loss: whose arrays have not been used; l1: without it all weights work; history: pairs of
    vectors that the solver keeps.
    """
    space, lattice = loss.space, loss.space.lattice
    observed = loss.observed_coordinates()
    n_working = _WORKING_SHARE * len(observed) if l1 > 0.0 else loss.n_potential
    n_bytes = (
        space.residual.nbytes
        + 2 * space.alpha.nbytes
        + _PER_OCCURRENCE * len(lattice.ctx_tests.indices)
        + _bytes_of_tokens(space)
        + 8.0 * (_N_VECTORS + 2 * history) * n_working
        + 8.0 * 8 * len(observed)
    )
    if l1 > 0.0:
        pairs = observed[observed >= loss.n_unigram] - loss.n_unigram
        shape = space.n_labels, lattice.n_previous, space.padded, len(lattice.test_contexts)
        n_bytes += bytes_of_pairs(space, FeatureBlocks(pairs, *shape))
    n_tests = lattice.n_tests + len(lattice.test_contexts)
    return Size(n_tests, loss.n_potential, len(observed), int(n_bytes))


def _bytes_of_tokens(space: Workspace) -> int:
    """What tokens and their unigram tests take: little of it where the corpus is in files."""
    lattice = space.lattice
    if lattice.store.on_disk:
        sums = 8 * min(space.limits.held_sums, lattice.n_tests * space.padded)
        return _PER_SEQUENCE * len(lattice.weights) + _PER_TEST * lattice.n_tests + sums
    return _PER_OCCURRENCE * len(lattice.tests.indices) + _PER_TOKEN * lattice.n_tokens


_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def available_memory(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int | None:
    """Bytes that may still be used without swapping, or a limit of a container being hit.

    proc, cgroups: where the system tells. RETURNS: None where it does not.
    """
    found = [_of_machine(proc), *_of_groups(proc, cgroups)]
    known = [n for n in found if n is not None]
    return max(0, min(known)) if known else None


def _of_machine(proc: Path) -> int | None:
    """What the machine has left."""
    values = _fields(proc / "meminfo")
    return values["MemAvailable:"] * 1024 if "MemAvailable:" in values else None


def _of_groups(proc: Path, cgroups: Path) -> list[int | None]:
    """What control groups leave: the process's own and those around it, of either version."""
    left = []
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = cgroups, ("memory.max", "memory.current")
        if controllers:
            root, names = cgroups / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        group = root / path.lstrip("/")
        around = [parent for parent in group.parents if parent.is_relative_to(root)]
        left += [_left(directory, *names) for directory in (group, *around)]
    return left


def _left(group: Path, limit_name: str, usage_name: str) -> int | None:
    """What the limit of a group leaves; pages of files that nobody reads do not count."""
    limit, usage = (_number(group / name) for name in (limit_name, usage_name))
    if limit is None or usage is None:
        return None
    return limit - usage + _fields(group / "memory.stat").get("inactive_file", 0)


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """The lines "name number" of a file."""
    rows = (line.split() for line in _lines(path))
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
