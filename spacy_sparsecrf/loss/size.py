"""Size of a problem, an estimate of the memory for training, and the memory that is available."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .chain import ChainLoss
from .pairs import bytes_of_pairs
from .weights import FeatureBlocks
from .workspace import Workspace

# Bytes for each feature of a token: features by token (temporary), tokens by feature, and blocks
# by token.
_PER_OCCURRENCE = 12
_PER_TOKEN = 80
_PER_FEATURE = 64
# Largest working set of a sparse solver with all pairs, as a share of the observed weights.
_WORKING_SHARE = 0.3
# Vectors of float64 of a batch solver and its loss, without its history, which is float32.
_N_VECTORS = 16


@dataclass(frozen=True)
class Size:
    """The size of a problem.

    n_features: features; n_potential: potential weights; n_observed: weights of features with the
    gold labels or pairs of their tokens; n_bytes: estimated peak memory of training, without the
    corpus. n_observed and n_bytes are None if workers have the corpus.
    """

    n_features: int
    n_potential: int
    n_observed: int | None
    n_bytes: int | None

    def __str__(self) -> str:
        """Return a description."""
        observed = "" if self.n_observed is None else f" and {self.n_observed} observed"
        counts = f"{self.n_features} features, {self.n_potential} potential{observed} weights"
        if self.n_bytes is None:
            return counts
        return f"{counts}; training takes about {as_text(self.n_bytes)} more memory"


def total(sizes: Sequence[Size]) -> Size:
    """Return the total size of problems that are in memory at the same time."""
    return Size(*map(sum, zip(*map(astuple, sizes), strict=True)))


def check_fits(size: Size, available: int | None, n_labels: int, l1: float) -> None:
    """Check that a problem fits in memory; the error message suggests changes.

    available: bytes, or None if unknown.
    RAISES: SparseCRFError.
    """
    if available is None or size.n_bytes is None or size.n_bytes <= available:
        return
    needs = {"needed": as_text(size.n_bytes), "available": as_text(available)}
    values = {**vars(size), **needs, "n_labels": n_labels}
    raise SparseCRFError((Errors.SC321 if l1 else Errors.SC320).format(**values))


def as_text(n_bytes: int) -> str:
    """Format a number of bytes."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def measure(loss: ChainLoss, l1: float, history: int = 0) -> Size:
    """Estimate the size of a problem, before its large arrays take memory.

    loss: not yet evaluated; l1: if 0, the working set is complete; history: pairs of vectors that
    the solver stores.
    """
    space, lattice = loss.space, loss.space.lattice
    observed = loss.observed_coordinates()
    n_working = _WORKING_SHARE * len(observed) if l1 > 0.0 else loss.n_potential
    n_bytes = (
        space.residual.nbytes
        + 2 * space.alpha.nbytes
        + _PER_OCCURRENCE * len(lattice.ctx_features.indices)
        + _bytes_of_tokens(space)
        # The warm start has a few vectors of all observed weights, but frees them first.
        + 8.0 * max((_N_VECTORS + history) * n_working, 8 * len(observed))
    )
    if l1 > 0.0:
        pairs = observed[observed >= loss.n_unigram] - loss.n_unigram
        shape = space.n_labels, lattice.n_previous, space.padded, len(lattice.feature_contexts)
        n_bytes += bytes_of_pairs(space, FeatureBlocks(pairs, *shape))
    n_features = lattice.n_features + len(lattice.feature_contexts)
    return Size(n_features, loss.n_potential, len(observed), int(n_bytes))


def _bytes_of_tokens(space: Workspace) -> int:
    """Return the bytes of tokens and unigram features."""
    lattice = space.lattice
    of_features = _PER_FEATURE * lattice.n_features
    n_occurrences = int(space.feature_counts.sum())
    return of_features + _PER_OCCURRENCE * n_occurrences + _PER_TOKEN * lattice.n_tokens


_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def available_memory(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int | None:
    """Return the bytes available without swapping or reaching a container limit.

    proc, cgroups: file systems of Linux. RETURNS: None if unknown.
    """
    left: list[int | None] = []
    if "MemAvailable:" in (of_machine := _fields(proc / "meminfo")):
        left.append(of_machine["MemAvailable:"] * 1024)
    # Control groups of the process, of either version.
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
    known = [n for n in left if n is not None]
    return max(0, min(known)) if known else None


def _left(group: Path, limit_name: str, usage_name: str) -> int | None:
    """Return the available memory of a group; inactive file pages count as free."""
    limit, usage = (_number(group / name) for name in (limit_name, usage_name))
    if limit is None or usage is None:
        return None
    return limit - usage + _fields(group / "memory.stat").get("inactive_file", 0)


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """Return the lines "name number" of a file as a dict."""
    rows = (line.split() for line in _lines(path))
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
