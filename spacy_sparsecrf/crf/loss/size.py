"""Size of a problem, and an estimate of the memory for training."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass

import numpy as np

from ...errors import Errors, SparseCRFError
from ..corpus.coordinates import Coordinates
from ..corpus.numbering import Longs
from ..memory import as_text
from .context_layout import BYTES_PER_ENTRY
from .workspace import Workspace

# Bytes for each feature of a token: features by token (temporary), tokens by feature, and blocks
# by token.
_PER_OCCURRENCE, _PER_TOKEN, _PER_FEATURE = 12, 80, 64
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


def measure(
    space: Workspace,
    coding: Coordinates,
    observed: Longs,
    *,
    l1: float,
    history: int,
    n_potential: int,
) -> Size:
    """Estimate the size of a problem, before its large arrays take memory.

    space: not yet written to; coding: what coordinates stand for; observed: observed coordinates
    [n] int64, ascending; l1, history, n_potential: see `Loss.size`.
    """
    lattice = space.lattice
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
