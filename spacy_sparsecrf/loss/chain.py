"""The linear-chain CRF's negative log-likelihood, on any working set of its weights.

    l(theta) = sum_i w_i (log Z(x_i) - sum_k theta_k F_k(x_i, y_i))        (Lavergne 2010, eq. 3)

A weight is named by its *coordinate*, an int64: test * Y + y for a unigram weight mu[o, y], then,
after all of those, (test * P + y') * Y + y for a bigram weight lam[o, y', y], where P = Y + 1 with
a start label (y' = Y) and Y without. No array is as long as the number of potential weights.
"""

import numpy as np
from numpy.typing import NDArray

from ..corpus import EncodedCorpus
from ..errors import Errors, SparseCRFError
from ..kernels.screening import screen_bigrams, screen_unigrams
from ..parallel import Chunks, Workers, cut
from .lattice import Csr, build_lattice
from .working import Floats, Longs, WorkingLoss, Workspace

# Potential weights whose gradients one screening call may write: 16 MB a thread.
_SCREEN_BLOCK = 1 << 20
_MIN_BLOCKS = 64


class ChainLoss:
    """The full problem: makes working losses, and screens all potential weights.

    corpus: encoded sequences; n_labels: Y; workers: threads to use.
    RAISES: SparseCRFError where no token has a gold label.
    """

    def __init__(self, corpus: EncodedCorpus, n_labels: int, workers: Workers) -> None:
        self.n_labels = n_labels
        self.n_unigram = len(corpus.unigram_keys) * n_labels
        self.n_potential = corpus.n_potential(n_labels)
        self._lattice = build_lattice(corpus, n_labels)
        if self._lattice.n_tokens == 0:
            raise SparseCRFError(Errors.SC305)
        self._inner, self._starts = self._lattice.tokens_by_context(
            self._lattice.context, len(self._lattice.ctx_tests)
        )
        self._workspace = Workspace(self._lattice, n_labels, workers)

    def restrict(self, coordinates: Longs) -> WorkingLoss:
        """The loss as a function of some weights, all others being zero.

        coordinates: [K] int64, ascending and distinct.
        """
        return WorkingLoss(self._workspace, coordinates, self.n_unigram)

    def all_coordinates(self) -> Longs:
        """Every potential coordinate: for problems without l1, whose solution is dense."""
        return np.arange(self.n_potential, dtype=np.int64)

    def observed_coordinates(self) -> Longs:
        """The coordinates of all pairs of a test with a gold label, or gold label pair."""
        lattice, n = self._lattice, self.n_labels
        lengths = np.diff(lattice.tests.indptr)
        label = np.repeat(lattice.labels, lengths)
        unigram = lattice.tests.indices[label >= 0].astype(np.int64) * n + label[label >= 0]
        previous = np.where(lattice.begins, n, np.roll(lattice.labels, 1))
        pair = previous.astype(np.int64) * n + lattice.labels
        known = (lattice.labels >= 0) & (previous >= 0)
        seen = np.unique(np.stack((lattice.context[known], pair[known])), axis=1)
        lengths = np.diff(lattice.ctx_tests.indptr)[seen[0]]
        tests = lattice.ctx_tests.take(seen[0]).indices.astype(np.int64)
        bigram = tests * n * lattice.n_previous + np.repeat(seen[1], lengths)
        return np.concatenate((np.unique(unigram), self.n_unigram + np.unique(bigram)))

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> tuple[Longs, Floats]:
        """Find the potential weights whose loss gradient exceeds a threshold in magnitude.

        working, theta: where the gradient is taken; limit: how many to return at most, the
        largest in magnitude first to be kept (ties: the lower coordinate).
        RETURNS: coordinates [n] int64 ascending, and gradients [n] float64.
        """
        working.prepare_screening(theta)
        contexts = _sorted_by(self._lattice.test_contexts, working.active_context)
        parts: list[tuple[Longs, Floats]] = [(np.empty(0, np.int64), np.empty(0))]
        parts += self._workspace.workers.map(
            lambda first, last: self._screen_unigrams(threshold, first, last),
            _blocks(self._lattice.test_tokens, self.n_labels),
        )
        parts += self._workspace.workers.map(
            lambda first, last: self._screen_bigrams(working, contexts, threshold, first, last),
            _blocks(contexts, self.n_labels * self._lattice.n_previous),
        )
        return _largest(parts, limit)

    def _screen_unigrams(self, threshold: float, first: int, last: int) -> tuple[Longs, Floats]:
        """Screen the unigram weights of tests first:last."""
        coordinates, gradients = _buffers((last - first) * self.n_labels)
        found = screen_unigrams(
            first,
            last,
            self.n_labels,
            self._lattice.test_tokens.indptr,
            self._lattice.test_tokens.indices,
            self._workspace.residual,
            threshold,
            coordinates,
            gradients,
        )
        return coordinates[:found].copy(), gradients[:found].copy()

    def _screen_bigrams(
        self, working: WorkingLoss, contexts: Csr, threshold: float, first: int, last: int
    ) -> tuple[Longs, Floats]:
        """Screen the bigram weights of tests first:last, whose contexts are given."""
        lattice = self._lattice
        coordinates, gradients = _buffers((last - first) * self.n_labels * lattice.n_previous)
        found = screen_bigrams(
            first,
            last,
            self.n_labels,
            lattice.n_previous,
            contexts.indptr,
            contexts.indices,
            working.active_context,
            self._inner.indptr,
            self._inner.indices,
            self._starts.indptr,
            self._starts.indices,
            lattice.labels,
            lattice.token_weight,
            self._workspace.alpha,
            self._workspace.backward,
            working.psi,
            threshold,
            coordinates,
            gradients,
        )
        return self.n_unigram + coordinates[:found], gradients[:found].copy()


def _blocks(columns: Csr, width: int) -> Chunks:
    """Cut the tests into runs of about equal work whose potential weights fit a buffer."""
    sizes = np.diff(columns.indptr)
    # The mean in each test's cost keeps runs of rare tests from growing beyond twice a block.
    cost = sizes + len(columns.indices) // max(1, len(columns))
    return cut(cost, max(_MIN_BLOCKS, -(-len(columns) * width // _SCREEN_BLOCK)))


def _buffers(n: int) -> tuple[Longs, Floats]:
    return np.empty(n, dtype=np.int64), np.empty(n, dtype=np.float64)


def _sorted_by(table: Csr, key: NDArray[np.int32]) -> Csr:
    """Order the entries of each row of a ragged table by a key of the entry."""
    row = np.repeat(np.arange(len(table)), np.diff(table.indptr))
    return Csr(table.indptr, table.indices[np.lexsort((key[table.indices], row))])


def _largest(parts: list[tuple[Longs, Floats]], limit: int) -> tuple[Longs, Floats]:
    """The `limit` entries of largest magnitude, in ascending order of coordinate."""
    coordinates = np.concatenate([part[0] for part in parts])
    gradients = np.concatenate([part[1] for part in parts])
    if len(coordinates) > limit:
        order = np.lexsort((coordinates, -np.abs(gradients)))[:limit]
        coordinates, gradients = coordinates[order], gradients[order]
    order = np.argsort(coordinates)
    return coordinates[order], gradients[order]
