"""The linear-chain CRF's negative log-likelihood, on any working set of its weights.

    l(theta) = sum_i w_i (log Z(x_i) - sum_k theta_k F_k(x_i, y_i))        (Lavergne 2010, eq. 3)

A weight is identified by its *coordinate*, an int64: feature * Y + y for a unigram weight mu[o, y];
after all of these, (feature * P + y') * Y + y for a bigram weight lam[o, y', y], where P = Y + 1
with a start label (y' = Y) and Y without. No array is as long as the number of potential weights.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..corpus.encoded import EncodedCorpus
from ..corpus.numbering import Array, find_ascending
from ..errors import Errors, SparseCRFError
from ..parallel import Workers, dot
from ..penalty import ElasticNet
from .lattice import Floats, Longs, Mask, build_lattice
from .observed import completed, distinct, observed_bigrams, observed_unigrams, observed_values
from .screening import PairScreening, screen_unigrams
from .values import screen_values
from .working import WorkingLoss
from .workspace import LIMITS, Limits, Workspace

NO_COORDINATES = np.empty(0, np.int64)


def places_of(coordinates: Longs, n_unigram: int, widths: tuple[int, int]) -> tuple[Longs, Longs]:
    """Return the feature (bigram after unigram features) and the position in its block: [n] each.

    coordinates: [n] int64, as above; n_unigram: number of unigram features; widths: see
    `EncodedCorpus.widths`.
    """
    base = n_unigram * widths[0]
    single = np.divmod(coordinates, widths[0])
    pair = np.divmod(coordinates - base, widths[1])
    is_pair = coordinates >= base
    return np.where(is_pair, n_unigram + pair[0], single[0]), np.where(is_pair, pair[1], single[1])


def permits(limited: Longs, n_unigram: int, widths: tuple[int, int], coordinates: Longs) -> Mask:
    """Return which coordinates [n] may have weights: [n] bool.

    limited: [m] int64, ascending, feature * Y + y: features listed there have weights for these
    labels y only, with any previous label; n_unigram, widths: see `places_of`.
    """
    n = widths[0]
    feature, place = places_of(coordinates, n_unigram, widths)
    bounds = np.searchsorted(limited, feature * n)
    # A sentinel after the last one.
    is_whole: Mask = np.append(limited, -1)[bounds] // n != feature
    return is_whole | (find_ascending(limited, feature * n + place % n) >= 0)


class Violators(NamedTuple):
    """Weights whose gradient exceeds a threshold in magnitude.

    coordinates: [n] int64, ascending; gradients: [n] float64; squared_excess: sum of the squared
    excesses over the threshold, including violators dropped by a limit.
    """

    coordinates: Longs
    gradients: Floats
    squared_excess: float


class FullLoss:
    """Base class of full problems: the weights that may be non-zero, and a prior.

    n_potential: number of potential weights; candidates: [n] int64, ascending, the only coordinates
    that may have weights, None = all; prior: coordinates [n], ascending, and non-zero weights [n],
    which are added to the weights of solvers, or None; every working set must then contain these
    coordinates.
    """

    n_potential: int
    candidates: Longs | None = None
    prior: tuple[Longs, Floats] | None = None

    def forget(self) -> None:
        """Forget the last point."""

    def rest(self) -> None:
        """Free the vectors and residuals of tokens; the next evaluation writes them again."""

    def with_prior(self, coordinates: Longs) -> Longs:
        """Return the union of coordinates [n] int64 and the coordinates of the prior, ascending."""
        if self.prior is None:
            return coordinates
        return distinct(np.concatenate((coordinates, self.prior[0])))

    def first_weights(
        self, start: Callable[..., tuple[Longs, Floats]], penalty: ElasticNet
    ) -> tuple[Longs, Floats]:
        """Return the coordinates and weights of a warm start."""
        return start(self, penalty)

    def all_coordinates(self) -> Longs:
        """Return all potential coordinates, for problems without l1, whose solution is dense."""
        if self.candidates is not None:
            return self.candidates
        return np.arange(self.n_potential, dtype=np.int64)

    def origin_at(self, coordinates: Longs) -> Floats:
        """Return the weights of the prior at a working set, [K], or [0] without a prior."""
        if self.prior is None:
            return np.empty(0)
        origin = np.zeros(len(coordinates))
        origin[np.searchsorted(coordinates, self.prior[0])] = self.prior[1]
        return origin


class ChainLoss(FullLoss):
    """The full problem: restricts the loss to working sets, and screens all potential weights.

    corpus: encoded sequences; n_labels: Y; workers: threads; precision: "float64", or "float32",
    which halves the memory of potentials, forward and backward vectors and marginals; sums over
    tokens, weights and the objective are always float64; observed_only: whether features have
    weights only for gold labels (or gold label pairs) with which they occur (see
    `observed_coordinates`); valid: valid transitions (see `build_lattice`): log Z is over valid
    sequences only, and gold labels must be valid; permits: function that returns which of the
    coordinates [n] screening may find, [n] bool, None = all; also: coordinates [n] that count as
    observed for `observed_only`; limits: change results by rounding only; prior: see `FullLoss`.
    RAISES: SparseCRFError if no token has a gold label.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        n_labels: int,
        workers: Workers,
        precision: str = "float64",
        observed_only: bool = False,
        valid: Mask | None = None,
        permits: Callable[[Longs], Mask] | None = None,
        also: Longs = NO_COORDINATES,
        limits: Limits = LIMITS,
        prior: tuple[Longs, Floats] | None = None,
    ) -> None:
        self.prior, self.n_labels, self._observed = prior, n_labels, NO_COORDINATES
        # What restricts the coordinates that screening may find.
        self._admits = [] if permits is None else [permits]
        self.n_unigram = len(corpus.unigram_keys) * n_labels
        self._lattice = build_lattice(corpus, n_labels, valid, limits.shared)
        if self._lattice.n_tokens == 0:
            raise SparseCRFError(Errors.SC305)
        self.is_convex = bool((self._lattice.clamped < 0).all())
        self.space = Workspace(self._lattice, n_labels, workers, precision, limits)
        self.n_potential = corpus.n_potential(n_labels)
        if observed_only:
            observed = distinct(np.concatenate((self.observed_coordinates(), also)))
            self.candidates = candidates = self.with_prior(observed)
            self._admits.append(lambda found: find_ascending(candidates, found) >= 0)
            self.n_potential = len(candidates)

    @property
    def arrays(self) -> list[Array]:
        """Arrays that identify the corpus, except for the names of its features."""
        own = self._lattice
        tables = own.feature_sites, own.token_bundles, own.ctx_features
        arrays = [array for table in tables for array in table]
        return [own.offsets, own.weights, own.gold, own.sets, own.context, own.values, *arrays]

    def restrict(self, coordinates: Longs, stochastic: bool = False) -> WorkingLoss:
        """Return the loss restricted to a working set; all other weights are zero.

        coordinates: [K] int64, ascending and distinct; stochastic: whether the solver
        processes one sequence at a time.
        """
        origin = self.origin_at(coordinates)
        return WorkingLoss(self.space, coordinates, self.n_unigram, stochastic, origin)

    def forget(self) -> None:
        """Forget the last point, and free observed coordinates and vectors; residuals remain."""
        self._observed = NO_COORDINATES
        self._free("vectors")

    def rest(self) -> None:
        """Free the vectors and residuals of tokens; see `FullLoss.rest`."""
        self._free("vectors", "residual")

    def _free(self, *names: str) -> None:
        """Forget the last point, and free arrays: memory that is not written to is not resident."""
        self.space.contents = None
        for name in names:
            old = getattr(self.space, name)
            setattr(self.space, name, np.zeros(old.shape, old.dtype))

    def observed_coordinates(self) -> Longs:
        """Return the observed coordinates: features with gold labels (or pairs) of their tokens.

        A real-valued feature counts where its value is not 0.
        """
        # Kept: the memory estimate and the warm start use the same coordinates.
        if not len(self._observed):
            unigram = observed_unigrams(self._lattice, self.n_labels)
            if len(self._lattice.value_features):
                values = observed_values(self._lattice, self.n_labels)
                unigram = distinct(np.concatenate((unigram, values)))
            bigram = observed_bigrams(self._lattice, self.n_labels)
            self._observed = np.concatenate((unigram, self.n_unigram + bigram))
        return self._observed

    def descent_coordinates(self, known: Longs | None = None) -> Longs:
        """Return the working set of stochastic descent: observed coordinates and full blocks.

        A feature observed with many labels gets weights for all labels, as adding a full block is
        faster. known: [n] int64, coordinates that also count as observed; default: none.
        """
        if self.candidates is not None:
            return self.candidates
        observed = self.observed_coordinates()
        if known is not None:
            observed = distinct(np.concatenate((observed, known)))
        observed = self.with_prior(observed)
        n, pairs = self.n_labels, self.n_labels * self._lattice.n_previous
        split = int(np.searchsorted(observed, self.n_unigram))
        unigram = completed(observed[:split], n)
        bigram = completed(observed[split:] - self.n_unigram, pairs)
        return np.concatenate((unigram, self.n_unigram + bigram))

    @cached_property
    def _pairs(self) -> PairScreening:
        return PairScreening(self.space, self.n_unigram)

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """Find the potential weights whose loss gradient exceeds a threshold in magnitude.

        working, theta: point of the gradient; limit: maximum number of results; the largest in
        magnitude are kept (ties: the lower coordinate).
        """
        working.marginals(theta)
        found: list[tuple[Longs, Floats]] = [(np.empty(0, np.int64), np.empty(0))]
        found += screen_unigrams(self.space, threshold)
        if working.values:
            found.append(screen_values(self.space, threshold))
        found += self._pairs.screen(working, theta, threshold)
        coordinates, gradients = map(np.concatenate, zip(*found, strict=True))
        for admits in self._admits:
            kept = admits(coordinates)
            coordinates, gradients = coordinates[kept], gradients[kept]
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
