"""The dual problem of OEG: a distribution for each sequence, and ascents of the dual."""

from dataclasses import dataclass

import numpy as np

from ...corpus.numbering import Floats, Longs
from ...kernels.layout import Contexts, Factors, Pairs, Potentials
from ...loss.examples import ChainExampleLoss, new_workspace
from ...loss.gradient_memory import FactorStorage, Numbers
from ...penalty import ElasticNet
from .dual import ChainSpace, Moves
from .oeg_kernels import DualArrays, ascend, begin_chains, sum_entropies

# Rounding errors of log Z and of inner products, in units of the precision.
_ROUNDING = 100.0
# First step size, at most 1: a step of 1 leads to the distribution at the weights.
FIRST_STEP = 0.5


@dataclass
class DualPoint:
    """A distribution of label sequences for each sequence, in factored form.

    node_theta [tokens, Yp], pair_theta [groups, Y, Yp]: log-potentials of the sequences; nodes,
    pairs: their residuals, in the same shapes (see `FactorStorage`); log_z: [n], log Z of each
    sequence; steps: [n], step size of each sequence.
    """

    node_theta: Numbers
    pair_theta: Numbers
    nodes: Numbers
    pairs: Numbers
    log_z: Floats
    steps: Floats

    @property
    def arrays(self) -> DualArrays:
        """The point as an argument of kernels."""
        theta = Factors(self.node_theta, self.pair_theta)
        return DualArrays(theta, Factors(self.nodes, self.pairs), self.log_z, self.steps)


def _own_potentials(mask: Floats, n_matrices: int) -> Potentials:
    """Allocate potentials: the mask [Y, Yp] first, then those of groups; start rows are 1."""
    n_labels, padded = mask.shape
    psi = np.zeros((n_matrices, n_labels + 1, padded))
    psi[0, :n_labels] = mask
    psi[:, n_labels, :n_labels] = 1.0
    return Potentials(
        psi=psi,
        shift=np.zeros(n_matrices),
        value=np.zeros(0),
        change=np.zeros(0),
        rewritten=np.zeros(n_matrices, np.bool_),
        stamp=np.zeros(0, np.int64),
    )


def _own_contexts(n: int, is_free: bool) -> Contexts:
    """Return a context for each of n matrices; is_free: whether the first, the mask, is all 1."""
    constant = np.zeros(n, np.bool_)
    constant[0] = is_free
    return Contexts(
        matrix_of=np.arange(n, dtype=np.int32),
        constant=constant,
        corr_ptr=np.zeros(n + 1, np.int64),
        corr_start=np.zeros(n, np.int64),
        corr_previous=np.zeros(0, np.uint16),
        corr_label=np.zeros(0, np.uint16),
        corr_place=np.zeros(0, np.int32),
    )


class DualProblem(FactorStorage):
    """Points of the dual, and ascents from them.

        D = sum_i c_i H(alpha_i) - |sum_i c_i (phi(x_i, y_i) - E_i[phi])|^2 / (2 l2)

    alpha_i is a distribution of the label sequences of x_i, H its entropy, c_i the weight of i
    (Collins et al. 2008, section 2). The log-potentials of alpha_i and the residuals of its
    marginals are stored in 2 b Yp (N + G Y) bytes (twice `FactorStorage`).
    """

    def __init__(self, working: ChainExampleLoss) -> None:
        super().__init__(working)
        space, most = working.space, self._most_groups
        work, valid = new_workspace(working), space.lattice.valid
        n_labels, padded = space.n_labels, space.padded
        mask = np.zeros((n_labels, padded))
        mask[:, :n_labels] = 1.0 if valid is None else valid[:n_labels, :n_labels]
        potentials, longest = _own_potentials(mask, most + 1), len(work.tokens)
        contexts = _own_contexts(most + 1, valid is None)
        # No sequence has a clamped lattice.
        pairs = Pairs(n_labels, contexts, potentials)
        work = work._replace(pairs=pairs, clamped=work.vectors)

        def factors() -> Factors:
            return Factors(np.zeros((longest, padded)), np.zeros((most, n_labels, padded)))

        self._moves = Moves(np.zeros(len(working.coordinates)), factors(), factors(), factors())
        self._chain = ChainSpace(mask, np.zeros(longest, np.int32), work)

    def start(self, working: ChainExampleLoss, theta: Floats, gold: float, l2: float) -> DualPoint:
        """Return the distributions at weights theta [K].

        gold: added to the log-potential of each gold label if theta is zero, or log(c_i / l2) if
        that is larger. The weights of the point, about (c_i / l2) exp(-gold), are then at most
        about 1; from larger ones a step leads to distributions without entropy, and no gain shows.
        """
        node_theta, pair_theta = self.empty(working)
        nodes, pairs = self.empty(working)
        point = DualPoint(
            node_theta=node_theta,
            pair_theta=pair_theta,
            nodes=nodes,
            pairs=pairs,
            log_z=np.zeros(self.n_sequences),
            steps=np.full(self.n_sequences, FIRST_STEP),
        )
        if not theta.any():
            relative_weights = self._grouped.tables.sequences.weights / l2
            lifts = np.maximum(gold, np.log(np.maximum(relative_weights, 1.0)))
            labels = working.space.lattice.labels[: len(point.nodes)]
            lifts_of_tokens = np.repeat(lifts, np.diff(self._offsets))
            point.node_theta[np.arange(len(labels)), labels] = lifts_of_tokens
        begin_chains(self._grouped, theta, point.arrays, moves=self._moves, space=self._chain)
        return point

    def bound(self, penalty: ElasticNet, theta: Floats, point: DualPoint) -> float:
        """Return D at a point and its weights theta [K], a lower bound of the minimum.

        The sum of all gains would drift: rounding hides gains of a sequence whose weight is large.
        """
        return float(sum_entropies(self._grouped, point.arrays)) - penalty.value(theta)

    def weights(self, working: ChainExampleLoss, l2: float, point: DualPoint) -> Floats:
        """Return the weights of a point, (1 / l2) sum_i c_i (phi(x_i, y_i) - E_i[phi]), [K]."""
        return self.gradient(working, point.nodes, point.pairs) / -l2

    def ascend(self, order: Longs, l2: float, theta: Floats, point: DualPoint) -> int:
        """Ascend over sequences; see `oeg.ascend`.

        order: [steps] int64, of the sequences; theta: [K], the point's weights, in and out.
        RETURNS: the number of evaluations.
        """
        small = (_ROUNDING * np.finfo(point.nodes.dtype).eps) ** (2.0 / 3.0)
        n = ascend(
            order,
            small=float(small),
            l2=l2,
            grouped=self._grouped,
            theta=theta,
            point=point.arrays,
            moves=self._moves,
            space=self._chain,
        )
        return int(n)
