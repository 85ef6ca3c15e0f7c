"""The linear-chain CRF's negative log-likelihood, on any working set of its weights.

    l(theta) = sum_i w_i (log Z(x_i) - sum_k theta_k F_k(x_i, y_i))        (Lavergne 2010, eq. 3)

Weights are identified by coordinates, see `corpus.coordinates`.
"""

from functools import cached_property

import numpy as np

from ...errors import Errors, SparseCRFError
from ..corpus.coordinates import NO_COORDINATES, Coordinates, distinct
from ..corpus.encoded import EncodedCorpus
from ..corpus.numbering import Array, Floats, Longs, Mask
from ..parallel import Workers, dot
from .examples import ChainExampleLoss
from .hessian_products import CurvedChainLoss
from .lattice import build_lattice
from .observed import completed, observed_bigrams, observed_unigrams, observed_values
from .protocols import Loss, Violators, Which, WorkingLoss
from .size import Size, measure
from .value_weights import screen_values
from .violators import PairScreening, screen_unigrams
from .working import ChainWorkingLoss
from .workspace import LIMITS, Limits, Workspace


class ChainLoss(Loss):
    """The full problem: restricts the loss to working sets, and screens all potential weights.

    corpus: encoded sequences; n_labels: Y; workers: threads; precision: "float64", or "float32",
    which halves the memory of potentials, forward and backward vectors and marginals; sums over
    tokens, weights and the objective are always float64; valid: valid transitions (see
    `build_lattice`): log Z is over valid sequences only, and gold labels must be valid; limits:
    change results by rounding only.
    RAISES: SparseCRFError if no token has a gold label.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        n_labels: int,
        workers: Workers,
        *,
        precision: str = "float64",
        valid: Mask | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.coding = Coordinates.of(corpus, n_labels)
        self.n_sequences = corpus.n_sequences
        self._observed = NO_COORDINATES
        self._lattice = build_lattice(corpus, n_labels, valid, limits.shared)
        if self._lattice.n_tokens == 0:
            raise SparseCRFError(Errors.SC305)
        self.is_convex = bool((self._lattice.clamped < 0).all())
        self.space = Workspace(
            self._lattice, n_labels, workers=workers, precision=precision, limits=limits
        )
        self.n_potential = corpus.n_potential(n_labels)

    @property
    def arrays(self) -> list[Array]:
        """Arrays that identify the corpus, except for the names of its features."""
        lattice = self._lattice
        tables = lattice.feature_sites, lattice.token_bundles, lattice.ctx_features
        arrays: list[Array] = [lattice.offsets, lattice.weights, lattice.gold, lattice.sets]
        arrays += [lattice.context, lattice.values]
        return arrays + [array for table in tables for array in table]

    def restrict(self, coordinates: Longs) -> CurvedChainLoss:
        """Return the loss on a working set; see `Loss.restrict`."""
        return CurvedChainLoss(self.space, coordinates, self.coding)

    def by_example(self, coordinates: Longs, origin: Floats | None = None) -> ChainExampleLoss:
        """Return the loss on a working set, to visit single sequences; see `Loss.by_example`."""
        return ChainExampleLoss(self.space, coordinates, self.coding, origin)

    def forget(self) -> None:
        """Forget the last point, and free observed coordinates and vectors; residuals remain."""
        self._observed = NO_COORDINATES
        self._free("vectors")

    def rest(self) -> None:
        """Free the vectors and residuals of tokens; see `Loss.rest`."""
        self._free("vectors", "residual")

    def _free(self, *names: str) -> None:
        """Forget the last point, and free arrays: memory that is not written to is not resident."""
        self.space.contents = None
        for name in names:
            old = getattr(self.space, name)
            setattr(self.space, name, np.zeros(old.shape, old.dtype))

    def close(self) -> None:
        """End the threads."""
        self.space.workers.close()

    def size(self, l1: float, history: int = 0, n_potential: int | None = None) -> Size:
        """Estimate the size of the problem; see `Loss.size`."""
        return measure(
            self.space,
            self.coding,
            self.coordinates("observed"),
            l1=l1,
            history=history,
            n_potential=self.n_potential if n_potential is None else n_potential,
        )

    def coordinates(self, which: Which, known: Longs = NO_COORDINATES) -> Longs:
        """Return coordinates; see `Loss.coordinates`.

        A real-valued feature is observed where its value is not 0. In the working set of stochastic
        descent, a feature observed with many labels has weights for all labels, as adding a full
        block is faster.
        """
        if which == "all":
            return np.arange(self.n_potential, dtype=np.int64)
        observed = self._observed_here()
        if len(known):
            observed = distinct(np.concatenate((observed, known)))
        return completed(observed, self.coding) if which == "descent" else observed

    def _observed_here(self) -> Longs:
        # Kept: the memory estimate and the warm start use the same coordinates.
        if not len(self._observed):
            unigrams = observed_unigrams(self._lattice, self.coding)
            if len(self._lattice.value_features):
                values = observed_values(self._lattice, self.coding)
                unigrams = distinct(np.concatenate((unigrams, values)))
            self._observed = np.append(unigrams, observed_bigrams(self._lattice, self.coding))
        return self._observed

    @cached_property
    def _pairs(self) -> PairScreening:
        return PairScreening(self.space, self.coding)

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """Find the potential weights whose loss gradient exceeds a threshold; see `Loss.screen`."""
        assert isinstance(working, ChainWorkingLoss)
        working.marginals(theta)
        violators = [(NO_COORDINATES, np.empty(0)), *screen_unigrams(self.space, threshold)]
        if working.values:
            violators.append(screen_values(self.space, self.coding, threshold))
        violators += self._pairs.screen(working, theta, threshold)
        coordinates, gradients = map(np.concatenate, zip(*violators, strict=True))
        return largest(coordinates, gradients, threshold, limit)


def largest(coordinates: Longs, gradients: Floats, threshold: float, limit: int) -> Violators:
    """Return the `limit` weights of largest gradients, of those that exceed a threshold."""
    excess = np.abs(gradients) - threshold
    squared_excess = dot(excess, excess)
    if len(coordinates) > limit:
        order = np.lexsort((coordinates, -np.abs(gradients)))[:limit]
        coordinates, gradients = coordinates[order], gradients[order]
    order = np.argsort(coordinates)
    return Violators(coordinates[order], gradients[order], squared_excess)
