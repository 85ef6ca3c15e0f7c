"""The chain loss with a memory of each sequence: of its last gradient, or of its distribution."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import Contexts, Factors, Grouped, Groups, OwnRows, Pairs, Potentials
from ..solvers.oeg.dual import ChainSpace, Moves
from ..solvers.oeg.kernels import DualArrays, ascend, begin_chains
from ..solvers.sag.kernels import (
    Average,
    GradientExchange,
    Progress,
    rows_of_sequences,
    sag_pass,
    scatter_all,
)
from ..solvers.sag.sag_updates import Rules, Steps, set_leaves
from .examples import new_visit
from .lattice import Floats, Lattice, Longs
from .working import WorkingLoss

Numbers = NDArray[Any]

# Of rounding errors in log Z and in inner products, in units of the precision.
_ROUNDING = 100.0


class StoredGradients:
    """What SAG stores of each sequence's last gradient, and passes that use it.

    A gradient is not stored, but what makes it up whatever the weights (Schmidt 2015, section
    4.2): residuals of the sequence's labels, a row [Yp] for each of N tokens, and of its pairs, a
    matrix [Y, Yp] for each of G *groups*, tokens of the sequence with the same bigram tests. That
    is b Yp (N + G Y) bytes, b = 8 or 4 by the workspace's precision, Yp = Y rounded up to a
    multiple of 8, whatever the number of weights. With bigram tests that are on everywhere, G is
    the number of sequences: the paper's "mixed" storage. Where each token has bigram tests of its
    own, G is nearly N: that of marginals. Not stored with a state: three numbers for each weight,
    and a list of each sequence's rows, at most 4 bytes for each test of a token.

    working: the loss on the weights to learn, [K], laid out for a stochastic solver.
    """

    def __init__(self, working: WorkingLoss) -> None:
        lattice, self._n_labels = working.space.lattice, working.space.n_labels
        self.n_sequences = lattice.n_examples
        self._offsets = lattice.offsets[: self.n_sequences + 1]
        groups = self._group(lattice)
        # What kernels take of the corpus and the weights.
        self._grouped = Grouped(working.tables, groups, self._rows_of_sequences(working))
        self._most_groups = int(np.diff(groups.seq_ptr).max(initial=0))
        self._make_workspaces(working)

    def _group(self, lattice: Lattice) -> Groups:
        """Number the groups, those of a sequence together; list their tokens."""
        n_tokens = int(self._offsets[-1])
        sequence = np.repeat(np.arange(self.n_sequences), np.diff(self._offsets))
        context = lattice.context[:n_tokens].astype(np.int64)
        paired = ~lattice.begins[:n_tokens] & (np.diff(lattice.ctx_tests.indptr)[context] > 0)
        tokens = np.flatnonzero(paired)
        n_contexts = max(1, len(lattice.ctx_tests))
        keys, group = np.unique(
            sequence[tokens] * n_contexts + context[tokens], return_inverse=True
        )
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(len(keys) + 1)).astype(np.int64)
        places = (tokens - self._offsets[sequence[tokens]])[order].astype(np.int32)
        first = np.arange(self.n_sequences + 1) * n_contexts
        seq_ptr = np.searchsorted(keys, first).astype(np.int64)
        return Groups(seq_ptr, bounds, places, (keys % n_contexts).astype(np.int32))

    def _rows_of_sequences(self, working: WorkingLoss) -> OwnRows:
        """The rows that each sequence has."""
        weight_ptr = np.concatenate((working.unigram.ptr, working.split + working.bigram.ptr[1:]))
        marks, touched = (np.empty(len(weight_ptr) - 1, dtype=np.int64) for _ in range(2))
        ptr, rows = np.zeros(self.n_sequences + 1, np.int64), np.empty(0, np.int32)
        for _ in range(2):
            members = np.arange(self.n_sequences)
            rows_of_sequences(working.tables, members, marks, touched, ptr, rows)
            # Counted the first time, filled the second.
            rows = rows if len(rows) else np.empty(ptr[-1], np.int32)
        return OwnRows(ptr, rows, weight_ptr)

    def _make_workspaces(self, working: WorkingLoss) -> None:
        space, n = working.space, len(working.coordinates)
        pairs = np.zeros((self._most_groups, space.n_labels, space.padded))
        vectors = np.zeros(n), np.zeros(n), np.zeros(n)
        self._exchange = GradientExchange(*vectors, pairs, new_visit(working))

    def empty(self, working: WorkingLoss) -> tuple[Numbers, Numbers]:
        """No residuals: nodes [tokens, Yp] and pairs [groups, Y, Yp], the same for all weights."""
        space = working.space
        nodes = np.zeros((int(self._offsets[-1]), space.padded), space.dtype)
        shape = (len(self._grouped.groups.context), self._n_labels, space.padded)
        return nodes, np.zeros(shape, space.dtype)

    def gradient(self, working: WorkingLoss, nodes: Numbers, pairs: Numbers) -> Floats:
        """The sum [K] of the stored gradients; nodes, pairs: see `empty`."""
        total = np.zeros(len(working.coordinates))
        scatter_all(self._grouped, Factors(nodes, pairs), total)
        return total

    def run(self, draws: Floats, rules: Rules, average: Average) -> int:
        """Step over sequences.

        draws: [steps, 2] float64, uniform in [0, 1); average: in and out.
        RETURNS: the number of evaluations in line searches.
        """
        n_leaves = 1 << max(1, self.n_sequences - 1).bit_length()
        sums, tops = np.zeros(2 * n_leaves), np.zeros(2 * n_leaves)
        set_leaves(sums, tops, average.curvatures)
        reached = np.zeros(len(self._grouped.own_rows.weight_ptr) - 1, np.int64)
        steps = Steps(reached, np.zeros(len(draws) + 1), np.zeros(len(draws) + 1))
        progress = Progress(sums, tops, np.zeros(self.n_sequences, np.int64), steps)
        return int(sag_pass(draws, rules, self._grouped, average, progress, self._exchange))


@dataclass
class DualPoint:
    """A distribution of label sequences for each sequence, in factored form.

    node_theta [tokens, Yp], pair_theta [groups, Y, Yp]: log-potentials of each sequence's own;
    nodes, pairs: residuals under them, shaped alike (see `StoredGradients`); log_z: [n] of them;
    steps: [n], step size of each.
    """

    node_theta: NDArray[Any]
    pair_theta: NDArray[Any]
    nodes: NDArray[Any]
    pairs: NDArray[Any]
    log_z: Floats
    steps: Floats

    @property
    def arrays(self) -> DualArrays:
        """As the kernels take them."""
        theta = Factors(self.node_theta, self.pair_theta)
        return DualArrays(theta, Factors(self.nodes, self.pairs), self.log_z, self.steps)


def _own_potentials(mask: Floats, n_matrices: int) -> Potentials:
    """Potentials of a sequence's groups, after the mask [Y, Yp]; their start rows are 1."""
    n_labels, padded = mask.shape
    psi, nothing = np.zeros((n_matrices, n_labels + 1, padded)), np.zeros(0)
    psi[0, :n_labels] = mask
    psi[:, n_labels, :n_labels] = 1.0
    rewritten, stamp = np.zeros(n_matrices, np.bool_), np.zeros(0, np.int64)
    return Potentials(psi, np.zeros(n_matrices), nothing, nothing, rewritten, stamp)


def _own_contexts(n: int, is_free: bool) -> Contexts:
    """A context for each of n matrices; is_free: whether the first, the mask, is of ones."""
    constant, none = np.zeros(n, np.bool_), np.zeros(n + 1, np.int64)
    constant[0] = is_free
    labels, places = np.zeros(0, np.uint16), np.zeros(0, np.int32)
    matrices = np.arange(n, dtype=np.int32)
    return Contexts(matrices, constant, none, none[:n], labels, labels, places)


class Dual(StoredGradients):
    """Points of the dual, and ascents from them.

        D = sum_i c_i H(alpha_i) - |sum_i c_i (phi(x_i, y_i) - E_i[phi])|^2 / (2 l2)

    alpha_i is a distribution of the label sequences of x_i, H its entropy, c_i the weight of i
    (Collins et al. 2008, section 2). Stored are, in 2 b Yp (N + G Y) bytes (see `StoredGradients`,
    twice), log-potentials that make alpha_i up, and residuals, which are its marginals.
    """

    def _make_workspaces(self, working: WorkingLoss) -> None:
        space, most = working.space, self._most_groups
        visit, legal = new_visit(working), space.lattice.legal
        n_labels, padded = space.n_labels, space.padded
        mask = np.zeros((n_labels, padded))
        mask[:, :n_labels] = 1.0 if legal is None else legal[:n_labels, :n_labels]
        potentials, longest = _own_potentials(mask, most + 1), len(visit.tokens)
        contexts = _own_contexts(most + 1, legal is None)
        # No sequence has a constrained copy.
        pairs = Pairs(n_labels, contexts, potentials)
        visit = visit._replace(pairs=pairs, copy=visit.vectors)

        def factors() -> Factors:
            return Factors(np.zeros((longest, padded)), np.zeros((most, n_labels, padded)))

        self._moves = Moves(np.zeros(len(working.coordinates)), factors(), factors(), factors())
        self._chain = ChainSpace(mask, np.zeros(longest, np.int32), visit)

    def start(
        self, working: WorkingLoss, theta: Floats, gold: float, step: float
    ) -> tuple[DualPoint, float]:
        """The distributions that weights theta [K] give, and the sum of their entropies.

        gold: what is added to the log-potential of each gold label; step: first step size.
        """
        point = DualPoint(
            *(self.empty(working) + self.empty(working)),
            np.zeros(self.n_sequences),
            np.full(self.n_sequences, step),
        )
        tokens = np.arange(len(point.nodes))
        point.node_theta[tokens, working.space.lattice.labels[: len(tokens)]] = gold
        workspaces = self._moves, self._chain
        return point, float(begin_chains(self._grouped, theta, point.arrays, *workspaces))

    def weights(self, working: WorkingLoss, l2: float, point: DualPoint) -> Floats:
        """The weights of a point, (1 / l2) sum_i c_i (phi(x_i, y_i) - E_i[phi]), [K]."""
        return self.gradient(working, point.nodes, point.pairs) / -l2

    def ascend(
        self, order: Longs, grow: float, l2: float, theta: Floats, point: DualPoint
    ) -> tuple[float, int]:
        """Ascend over sequences; see `oeg.ascend`.

        order: [steps] int64, of the sequences; theta: [K], the point's weights, in and out.
        RETURNS: by how much D has grown, and the number of evaluations.
        """
        small = (_ROUNDING * np.finfo(point.nodes.dtype).eps) ** (2.0 / 3.0)
        rule, point_of = (grow, float(small), l2), (self._grouped, theta, point.arrays)
        gain, n = ascend(order, *rule, *point_of, self._moves, self._chain)
        return float(gain), int(n)
