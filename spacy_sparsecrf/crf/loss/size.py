"""Size of a problem, an estimate of the memory for training, and the memory that is available."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import Errors, SparseCRFError
from .pair_potentials import BYTES_PER_ENTRY

if TYPE_CHECKING:
    from .chain_loss import ChainLoss

# Bytes for each feature of a token: features by token (temporary), tokens by feature, and blocks
# by token.
_PER_OCCURRENCE, _PER_TOKEN, _PER_FEATURE = 12, 80, 64
# Bytes for each pair of labels in prediction: scores, with and without the mask, and masks; and
# bytes that are not worth a check.
_PER_PAIR, _ALWAYS_FREE = 32, 1 << 26
# Memory of label pairs, in sizes of a file of labels and their weights.
_TIMES_FILE = 1000
# Largest working set of a sparse solver with all pairs, as a share of the observed weights.
_WORKING_SHARE = 0.3
# Vectors of float64 of a batch solver and its loss, without its history, which is float32.
_N_VECTORS = 16
# Limits of a process, and the lines of its status that have the usage.
_USAGES = {"Max address space": "VmSize:", "Max data size": "VmData:"}
# The limit and usage of a control group, of either version: folder of the groups, and files.
_GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


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
    if len(sizes) == 1:
        return sizes[0]
    return Size(*map(sum, zip(*map(astuple, sizes), strict=True)))


def check_fits(size: Size, available: int | None, n_labels: int, l1: float) -> None:
    """Check that a problem fits in memory; the error message suggests changes.

    available: bytes, or None if unknown.
    RAISES: SparseCRFError.
    """
    if available is None or size.n_bytes is None or size.n_bytes <= available:
        return
    needs = {"needed": as_text(size.n_bytes), "available": as_text(available)}
    values = {**asdict(size), **needs, "n_labels": n_labels}
    raise SparseCRFError((Errors.SC321 if l1 else Errors.SC320).format(**values))


def check_labels_fit(n_labels: int, name: str, n_bytes: int | None = None) -> None:
    """Check that matrices of label pairs fit in memory.

    name: of what has the labels; n_bytes: size of the file of a model that may be crafted.
    RAISES: SparseCRFError.
    """
    needed = _PER_PAIR * n_labels**2
    if needed <= _ALWAYS_FREE:
        return
    limits = [(available_memory(), "")]
    if n_bytes is not None:
        limits.append((_TIMES_FILE * n_bytes, f", {_TIMES_FILE} times its size"))
    for available, that in limits:
        if available is not None and needed > available:
            values = {"needed": as_text(needed), "available": as_text(available), "that": that}
            raise SparseCRFError(Errors.SC222.format(name=name, n=n_labels, **values))


def as_text(n_bytes: int) -> str:
    """Format a number of bytes."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def measure(loss: "ChainLoss", l1: float, history: int = 0, n_potential: int | None = None) -> Size:
    """Estimate the size of a problem, before its large arrays take memory.

    loss: not yet evaluated; l1, history, n_potential: see `Loss.size`.
    """
    n_potential = loss.n_potential if n_potential is None else n_potential
    space, lattice, coding = loss.space, loss.space.lattice, loss.coding
    observed = loss.coordinates("observed")
    tables = lattice.feature_sites, lattice.token_bundles, lattice.ctx_features
    n_occurrences = sum(len(table.indices) for table in tables)
    n_working = _WORKING_SHARE * len(observed) if l1 > 0.0 else n_potential
    n_bytes = (
        space.dtype.itemsize
        * space.padded
        * (lattice.n_tokens + 2 * lattice.n_bundles + 2 * len(space.scales))
        + _PER_OCCURRENCE * n_occurrences
        + _PER_TOKEN * lattice.n_tokens
        + _PER_FEATURE * lattice.n_features
        # The warm start has a few vectors of all observed weights, but frees them first.
        + 8.0 * max((_N_VECTORS + history) * n_working, 8 * len(observed))
    )
    if l1 > 0.0:
        # Pair potentials and their gradient: a matrix per context, or sparse corrections.
        features = lattice.feature_contexts.indptr
        feature, _ = coding.locate(observed[coding.split(observed) :])
        per_feature = feature - coding.n_unigram
        n_weights = int(np.bincount(per_feature, minlength=len(features) - 1) @ np.diff(features))
        matrix = 3 * 8 * (space.n_labels + 1) * space.padded
        n_contexts = len(lattice.ctx_features.indptr) - 1
        n_bytes += min(matrix * n_contexts, matrix + int(BYTES_PER_ENTRY) * n_weights)
    n_features = lattice.n_features + len(lattice.feature_contexts.indptr) - 1
    return Size(n_features, n_potential=n_potential, n_observed=len(observed), n_bytes=int(n_bytes))


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes available without swapping, or reaching a limit of the process or a group.

    root: folder of the file systems of Linux. RETURNS: None if unknown.
    """
    left = [1024 * n for n in _numbers(root / "proc/meminfo", "MemAvailable:")]
    for line in _lines(root / "proc/self/limits"):
        usage = _USAGES.get(line[:18].strip(), "")
        if usage and (soft := line.split()[3]).isdecimal():
            left += [int(soft) - 1024 * n for n in _numbers(root / "proc/self/status", usage)]
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for kind in {"", "memory"} & set(controllers.split(",")):
            folder, limit, usage = _GROUPS[kind]
            innermost = root / folder / path.lstrip("/")
            for group in (*innermost.parents, innermost):
                # Inactive pages of files count as free.
                inactive = sum(_numbers(group / "memory.stat", "inactive_file"))
                used = _numbers(group / usage)
                left += [most - used[0] + inactive for most in _numbers(group / limit) if used]
    return max(0, min(left)) if left else None


def _numbers(path: Path, name: str = "") -> list[int]:
    """Return the number after a name that begins a line, or the number of the first line."""
    for line in _lines(path):
        if line.startswith(name):
            words = line.split()[bool(name) :][:1]
            return [int(word) for word in words if word.isdecimal()]
    return []


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
