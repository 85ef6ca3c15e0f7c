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
from numpy.typing import NDArray

from ..corpus.csr import Csr, concatenated_ranges
from ..corpus.encoded import EncodedCorpus
from ..corpus.numbering import find_ascending
from ..errors import Errors, SparseCRFError
from ..kernels.values import value_supports
from ..parallel import Workers
from ..penalty import ElasticNet
from .lattice import Floats, Lattice, Longs, Mask, build_lattice, set_numbers, set_table
from .screening import PairScreening, screen_unigrams
from .weights import screen_values
from .working import WorkingLoss
from .workspace import LIMITS, Limits, Workspace

# From this share of its weights on, a feature block is cheaper if full: it is added as a vector.
_WORTH_ALL = 0.25
# Tokens whose observed weights are collected at once.
_CHUNK = 1 << 16


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

    def with_prior(self, coordinates: Longs) -> Longs:
        """Return the union of coordinates [n] int64 and the coordinates of the prior, ascending."""
        if self.prior is None:
            return coordinates
        return distinct(np.concatenate((coordinates, self.prior[0])))

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
        also: Longs | None = None,
        limits: Limits = LIMITS,
        prior: tuple[Longs, Floats] | None = None,
    ) -> None:
        self._permits, self.prior = permits, prior
        self.n_labels = n_labels
        self.n_unigram = len(corpus.unigram_keys) * n_labels
        self._lattice = build_lattice(corpus, n_labels, valid)
        if self._lattice.n_tokens == 0:
            raise SparseCRFError(Errors.SC305)
        # The arrays of the workspace take no memory before they are written.
        self.space = Workspace(self._lattice, n_labels, workers, precision, limits)
        self._pairs = PairScreening(self.space, self.n_unigram)
        self.n_potential = corpus.n_potential(n_labels)
        if observed_only:
            observed = self.observed_coordinates()
            if also is not None:
                observed = distinct(np.concatenate((observed, also)))
            self.candidates = self.with_prior(observed)
            self.n_potential = len(self.candidates)

    @property
    def n_examples(self) -> int:
        """Number of sequences with gold labels."""
        return self._lattice.n_examples

    def restrict(self, coordinates: Longs, stochastic: bool = False) -> WorkingLoss:
        """Return the loss restricted to a working set; all other weights are zero.

        coordinates: [K] int64, ascending and distinct; stochastic: whether the solver
        processes one sequence at a time.
        """
        origin = self.origin_at(coordinates)
        return WorkingLoss(self.space, coordinates, self.n_unigram, stochastic, origin)

    def forget(self) -> None:
        """Free the observed coordinates of the warm start, and the vectors of the last point."""
        vars(self).pop("_observed", None)
        self.space.free("alpha", "backward")

    def observed_coordinates(self) -> Longs:
        """Return the observed coordinates: features with gold labels (or pairs) of their tokens.

        A real-valued feature counts where its value is not 0.
        """
        return self._observed

    @cached_property
    def _observed(self) -> Longs:
        # Cached: the memory estimate and the warm start use the same coordinates.
        merged = self.space.limits.merged
        unigram = observed_unigrams(self._lattice, self.n_labels, merged)
        values = observed_values(self._lattice, self.n_labels)
        if len(values):
            unigram = distinct(np.concatenate((unigram, values)))
        bigram = observed_bigrams(self._lattice, self.n_labels, merged)
        return np.concatenate((unigram, self.n_unigram + bigram))

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
        unigram = _completed(observed[:split], n)
        bigram = _completed(observed[split:] - self.n_unigram, pairs)
        return np.concatenate((unigram, self.n_unigram + bigram))

    @property
    def is_convex(self) -> bool:
        """True if the loss is convex: all gold labels are known."""
        return bool((self._lattice.clamped < 0).all())

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
        found.append(screen_values(self.space, threshold))
        found += self._pairs.screen(working, theta, threshold)
        return largest([self._permitted(*each) for each in found], threshold, limit)

    def _permitted(self, coordinates: Longs, gradients: Floats) -> tuple[Longs, Floats]:
        """Keep the coordinates that may have weights, and their gradients."""
        if self.candidates is not None:
            kept = find_ascending(self.candidates, coordinates) >= 0
            coordinates, gradients = coordinates[kept], gradients[kept]
        if self._permits is not None:
            kept = self._permits(coordinates)
            coordinates, gradients = coordinates[kept], gradients[kept]
        return coordinates, gradients


def _completed(coordinates: Longs, width: int) -> Longs:
    """Complete the feature blocks that have a share _WORTH_ALL or more of their `width` weights."""
    features, counts = np.unique(coordinates // width, return_counts=True)
    full = features[counts >= _WORTH_ALL * width]
    added = (full[:, None] * width + np.arange(width)).ravel()
    return distinct(np.concatenate((coordinates, added)))


def largest(found: list[tuple[Longs, Floats]], threshold: float, limit: int) -> Violators:
    """Return the `limit` results of largest magnitude."""
    coordinates = np.concatenate([each[0] for each in found])
    gradients = np.concatenate([each[1] for each in found])
    squared_excess = ElasticNet(threshold, 0.0).squared_excess(gradients)
    if len(coordinates) > limit:
        order = np.lexsort((coordinates, -np.abs(gradients)))[:limit]
        coordinates, gradients = coordinates[order], gradients[order]
    order = np.argsort(coordinates)
    return Violators(coordinates[order], gradients[order], squared_excess)


def observed_unigrams(lattice: Lattice, n_labels: int, merged: int) -> Longs:
    """Return coordinates feature * Y + y of features and gold labels of their tokens, ascending.

    A token with several possible labels counts for each of these labels. A token with a missing
    label counts for none. merged: see `Limits`.
    """
    members = _members(set_table(lattice.sets, n_labels))
    features = lattice.token_features()

    def seen(first: int, last: int) -> Longs:
        """Return the keys of (feature, label set) of tokens first:last."""
        numbers = set_numbers(lattice.gold[first:last], n_labels)
        indptr = features.indptr[first : last + 1]
        keys = features.indices[indptr[0] : indptr[-1]].astype(np.int64) * len(members)
        keys += np.repeat(numbers, np.diff(indptr))
        return keys

    feature, number = np.divmod(_distinct_over(lattice, seen, merged), len(members))
    feature, number = feature[number > 0], number[number > 0]
    row, label = _expanded(number, members)
    return distinct(feature[row] * n_labels + label)


def observed_values(lattice: Lattice, n_labels: int) -> Longs:
    """Return coordinates feature * Y + y of real values that are not 0 at a token with label y.

    Ascending; labels as in `observed_unigrams`.
    """
    features = lattice.value_features
    if not len(features):
        return np.empty(0, np.int64)
    table = set_table(lattice.sets, n_labels)
    found = np.zeros((len(table), len(features)), np.bool_)
    value_supports(lattice.values, lattice.value_rows, set_numbers(lattice.gold, n_labels), found)
    # Set 0, a missing label, counts for no label.
    seen = found[1:].T.astype(np.float32) @ table[1:].astype(np.float32) > 0.0
    value, label = np.nonzero(seen)
    return features[value] * n_labels + label


def observed_bigrams(lattice: Lattice, n_labels: int, merged: int) -> Longs:
    """Return coordinates (feature * P + y') * Y + y of features and observed pairs, ascending.

    A pair consists of two successive tokens without missing labels, or of the start label and the
    first token. merged: see `Limits`.
    """
    table = set_table(lattice.sets, n_labels)
    members = _members(table, start=n_labels)

    def seen(first: int, last: int) -> Longs:
        """Return the keys of (context, previous label set, label set) of tokens first:last."""
        numbers = set_numbers(lattice.gold[max(first - 1, 0) : last], n_labels)
        # The set before token 0 is irrelevant: token 0 begins a sequence.
        before, numbers = np.append(0, numbers)[:-1][-(last - first) :], numbers[-(last - first) :]
        before = np.where(lattice.begins[first:last], len(table), before)
        known = (numbers > 0) & (before > 0)
        keys = lattice.context[first:last][known].astype(np.int64) * len(members)
        pairs: Longs = (keys + before[known]) * len(members) + numbers[known]
        return pairs

    rest, number = np.divmod(_distinct_over(lattice, seen, merged), len(members))
    context, before = np.divmod(rest, len(members))
    row, label = _expanded(number, members)
    context, before = context[row], before[row]
    row, previous = _expanded(before, members)
    context, pair = context[row], previous * n_labels + label[row]
    features = lattice.ctx_features.take(context).indices.astype(np.int64)
    pair = np.repeat(pair, np.diff(lattice.ctx_features.indptr)[context])
    return distinct(features * n_labels * lattice.n_previous + pair)


def _members(table: Mask, start: int | None = None) -> Csr:
    """Return the labels of each set of a table [R, Y]; with `start`, append the set {start}."""
    labels = np.nonzero(table)[1]
    sizes = table.sum(axis=1)
    if start is not None:
        labels, sizes = np.append(labels, start), np.append(sizes, 1)
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Csr(indptr, labels.astype(np.int32))


def _expanded(numbers: Longs, members: Csr) -> tuple[Longs, Longs]:
    """Expand sets: return the index in `numbers` [n] and the label, for each label of each set."""
    lengths = np.diff(members.indptr)[numbers]
    entries = concatenated_ranges(members.indptr[:-1][numbers], lengths)
    row = np.repeat(np.arange(len(numbers)), lengths)
    return row, members.indices[entries].astype(np.int64)


def _distinct_over(lattice: Lattice, keys: Callable[[int, int], Longs], merged: int) -> Longs:
    """Return the distinct keys of all tokens, ascending; keys(first, last): keys of a range."""
    found: list[Longs] = []
    for first in range(0, lattice.n_tokens, _CHUNK):
        found.append(distinct(keys(first, min(first + _CHUNK, lattice.n_tokens))))
        # Merge rarely: each key is merged a few times only. Memory grows with the distinct keys.
        if sum(map(len, found[1:])) > max(len(found[0]), merged):
            found = [distinct(np.concatenate(found))]
    return found[0] if len(found) == 1 else distinct(np.concatenate(found))


def distinct(coordinates: Longs) -> Longs:
    """Return distinct coordinates, ascending; faster than `np.unique`, which uses a hash table."""
    # A stable sort merges sorted runs.
    ordered = np.sort(coordinates, kind="stable")
    first: NDArray[np.bool_] = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
