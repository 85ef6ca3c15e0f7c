"""The expected entity ratio: a penalty on how many tokens are expected to be in entities.

Where only some entities are annotated, and nothing says what is none, the likelihood is highest if
everything is an entity. With rho_hat the share of all N tokens that are expected to have a label of
entities, in sequences without any gold label too, the loss has a term more,

    strength / 2 * N * max(0, |rho_hat - rho| - margin)^2

(Effland & Collins 2021, who do not square: at their kink, where minima lie, there is no gradient to
be certain by). Its gradient is strength * excess times the covariance of features with the number
of such labels, which is how expectations change as all scores of these labels grow: a Hessian
product along scores of tokens instead of weights (see `kernels.tangents`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels.layout import TokensBy, Vectors
from .hessian import HessianProduct, without_starts
from .lattice import Floats, Longs, Mask
from .working import WorkingLoss
from .workspace import Contents, Workspace


@dataclass(frozen=True, eq=False)
class EntityRatio:
    """The term, see above.

    labels: [Y] bool, those of entities; rho: the share that is aimed at, from 0 to 1; margin: how
    far it may be missed, >= 0; strength: > 0, in nats: an entity token costs strength * excess.
    """

    labels: Mask
    rho: float
    margin: float
    strength: float

    @property
    def identity(self) -> str:
        """What tells it from others."""
        return repr((self.labels.tolist(), self.rho, self.margin, self.strength))

    def evaluate(self, expected: float, n_tokens: float) -> tuple[float, float]:
        """The term, and its derivative by the expected number of entity tokens."""
        difference = expected / n_tokens - self.rho
        excess = max(0.0, abs(difference) - self.margin)
        slope = math.copysign(self.strength * excess, difference)
        return 0.5 * self.strength * n_tokens * excess * excess, slope


class RatioLoss(WorkingLoss):
    """The chain loss with the expected entity ratio, as a function of working weights.

    workspace: of one shard, with all sequences; coordinates, n_unigram, origin: see `WorkingLoss`.
    Residuals that are left in the workspace are those of the whole loss.
    """

    def __init__(
        self,
        workspace: Workspace,
        coordinates: Longs,
        n_unigram: int,
        ratio: EntityRatio,
        origin: Floats | None,
    ) -> None:
        super().__init__(workspace, coordinates, n_unigram, False, origin)
        self._ratio, lattice = ratio, workspace.lattice
        self._scores = np.zeros(workspace.padded)
        self._scores[: workspace.n_labels] = ratio.labels
        # Constrained copies come last.
        self._n_own = int(lattice.offsets[lattice.n_examples])
        labels, weight = lattice.labels[: self._n_own], lattice.token_weight[: self._n_own]
        self._n_tokens = float(weight.sum())
        self._n_gold = float(weight[(labels >= 0) & ratio.labels[labels]].sum())
        self._slope = 0.0

    @property
    def is_bounded(self) -> bool:
        """See `WorkingLoss`."""
        return self._slope == 0.0

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The loss and its gradient; see `WorkingLoss.value_and_grad`."""
        self._slope = 0.0
        value, gradient = super().value_and_grad(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return value, gradient
        n_labels, space = self.space.n_labels, self.space
        residual = space.residual[: self._n_own, :n_labels].sum(axis=0, dtype=np.float64)
        expected = float(residual[self._ratio.labels].sum()) + self._n_gold
        term, self._slope = self._ratio.evaluate(expected, self._n_tokens)
        if self._slope != 0.0:
            gradient += self._slope * self._covariance(theta)
        return value + term, gradient

    def _covariance(self, theta: Floats) -> Floats:
        """Covariance [K] of features and entity labels; leaves residuals of the whole loss."""
        space, product = self.space, self.derived(HessianProduct)
        residual = space.residual.copy()
        product.prepare(theta, evaluated=True)
        covariance = product.product(np.zeros(len(theta)), self._scores)
        space.residual *= self._slope
        space.residual += residual
        space.contents = Contents(self, theta.copy())
        return covariance

    def pair_terms(self, i: int, tokens: TokensBy) -> Iterator[tuple[TokensBy, Vectors, bool]]:
        """See `WorkingLoss.pair_terms`; besides, how the products change, times the slope."""
        yield from super().pair_terms(i, tokens)
        if self._slope != 0.0:
            vectors, product = self.vectors(i), self.derived(HessianProduct)
            forward, backward = (self._slope * change for change in product.changes)
            # Before the first token nothing changes.
            yield without_starts(tokens), vectors._replace(alpha=forward), False
            yield tokens, vectors._replace(backward=backward), False
