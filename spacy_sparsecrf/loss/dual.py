"""The dual of the penalised likelihood of chains, a sequence at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.dual_chain import ChainSpace, DualArrays, Moves
from ..kernels.dual_start import begin_chains
from ..kernels.oeg import ascend
from .memory import SequenceMemory
from .tables import new_vectors
from .working import Floats, WorkingLoss

# Of rounding errors in log Z and in inner products, in units of the precision.
_ROUNDING = 100.0


@dataclass
class DualPoint:
    """A distribution of label sequences for each sequence, in factored form.

    node_theta [tokens, Yp], pair_theta [groups, Y, Yp]: log-potentials of each sequence's own;
    nodes, pairs: residuals under them, shaped alike (see `SequenceMemory`); log_z: [n] of them;
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
        pairs = self.node_theta, self.pair_theta, self.nodes, self.pairs
        return DualArrays(*pairs, self.log_z, self.steps)


class Dual(SequenceMemory):
    """Points of the dual, and ascents from them.

        D = sum_i c_i H(alpha_i) - |sum_i c_i (phi(x_i, y_i) - E_i[phi])|^2 / (2 l2)

    alpha_i is a distribution of the label sequences of x_i, H its entropy, c_i the weight of i
    (Collins et al. 2008, section 2). Stored are, in 2 b Yp (N + G Y) bytes (see `SequenceMemory`,
    twice), log-potentials that make alpha_i up, and residuals, which are its marginals.
    """

    def _make_workspaces(self, working: WorkingLoss) -> tuple[Any, ...]:
        """What the kernels take from `moves` on."""
        space, legal = working.space, working.space.lattice.legal
        n_labels, padded = space.n_labels, space.padded
        vectors = new_vectors(working)
        longest = len(vectors.walk)
        most = int(np.diff(self._seq_ptr).max(initial=0))
        mask = np.zeros((n_labels, padded))
        mask[:, :n_labels] = 1.0 if legal is None else legal[:n_labels, :n_labels]
        psi = np.zeros((most + 1, n_labels + 1, padded))
        psi[0, :n_labels] = mask
        psi[:, n_labels, :n_labels] = 1.0
        constant = np.zeros(most + 1, dtype=np.bool_)
        constant[0] = legal is None
        nodes = [np.zeros((longest, padded)) for _ in range(3)]
        pairs = [np.zeros((most, n_labels, padded)) for _ in range(3)]
        moves = (array for both in zip(nodes, pairs, strict=True) for array in both)
        chain = ChainSpace(
            mask,
            constant,
            np.zeros(max(longest, most) + 2, dtype=np.int64),
            np.empty(0, dtype=np.int32),
            np.empty(0, dtype=np.uint32),
            np.empty(0, dtype=np.uint16),
            np.empty((0, padded)),
            psi,
            np.zeros(most + 1),
            np.zeros(longest, dtype=np.int32),
            np.arange(most + 1, dtype=np.int32),
            np.zeros(most + 1, dtype=np.bool_),
            np.zeros((n_labels, padded)),
        )
        return Moves(np.zeros(len(working.coordinates)), *moves), chain, vectors

    def _arguments(self, theta: Floats, point: DualPoint) -> tuple[Any, ...]:
        """What the kernels take from chains on."""
        return (*self._tables, theta, point.arrays, *self._workspaces)

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
        return point, float(begin_chains(*self._arguments(theta, point)))

    def weights(self, working: WorkingLoss, l2: float, point: DualPoint) -> Floats:
        """The weights of a point, (1 / l2) sum_i c_i (phi(x_i, y_i) - E_i[phi]), [K]."""
        return self.gradient(working, point.nodes, point.pairs) / -l2

    def ascend(
        self,
        order: NDArray[np.int64],
        grow: float,
        l2: float,
        theta: Floats,
        point: DualPoint,
    ) -> tuple[float, int]:
        """Ascend over sequences; see `oeg.ascend`.

        order: [steps] int64, of the sequences; theta: [K], the point's weights, in and out.
        RETURNS: by how much D has grown, and the number of evaluations.
        """
        small = (_ROUNDING * np.finfo(point.nodes.dtype).eps) ** (2.0 / 3.0)
        arguments = order, grow, float(small), l2, *self._arguments(theta, point)
        gain, n = ascend(*arguments)
        return float(gain), int(n)
