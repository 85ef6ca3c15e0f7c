"""The expected entity ratio: a penalty on the expected share of tokens in entities.

If only some entities are annotated, and no token is annotated as outside, the likelihood is highest
if everything is an entity. Let rho_hat be the share of all N tokens that are expected to have an
entity label, including sequences without any gold label. The loss has an additional term

    strength / 2 * N * max(0, |rho_hat - rho| - margin)^2

(Effland & Collins 2021, without the square: minima then lie at a kink, where the gradient does not
certify optimality). Its gradient is strength * excess times the covariance of features with the
number of entity labels: the derivative of expectations as all scores of these labels grow. This is
a Hessian product along scores of tokens instead of weights (see `kernels.tangents`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels.layout import TokensBy, Vectors
from ..parallel import dot
from .hessian import HessianProduct, without_starts
from .lattice import Floats, Longs, Mask
from .working import WorkingLoss
from .workspace import Contents, Workspace


@dataclass(frozen=True, eq=False)
class EntityRatio:
    """The additional term of the loss; see the module.

    labels: [Y] bool, entity labels; rho: target share, from 0 to 1; margin: tolerated deviation,
    >= 0; strength: > 0, in nats: an entity token costs strength * excess.
    """

    labels: Mask
    rho: float
    margin: float
    strength: float

    @property
    def identity(self) -> str:
        """A string that identifies the term."""
        return repr((self.labels.tolist(), self.rho, self.margin, self.strength))

    def evaluate(self, expected: float, n_tokens: float) -> tuple[float, float]:
        """Return the term, and its derivative in the expected number of entity tokens."""
        difference = expected / n_tokens - self.rho
        excess = max(0.0, abs(difference) - self.margin)
        slope = math.copysign(self.strength * excess, difference)
        return 0.5 * self.strength * n_tokens * excess * excess, slope


class RatioLoss(WorkingLoss):
    """The chain loss with the expected entity ratio, on a working set of weights.

    workspace: of one shard, with all sequences; coordinates, n_unigram, origin: see `WorkingLoss`.
    The residuals in the workspace are residuals of the whole loss.
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
        # Clamped lattices come last.
        self._n_own = int(lattice.offsets[lattice.n_examples])
        labels, weight = lattice.labels[: self._n_own], lattice.token_weight[: self._n_own]
        self._n_tokens = math.fsum(weight)
        self._n_gold = math.fsum(weight[(labels >= 0) & ratio.labels[labels]])
        self._slope = 0.0

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient; see `WorkingLoss.value_and_grad`."""
        self._slope, self.is_bounded = 0.0, True
        value, gradient = super().value_and_grad(theta)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return value, gradient
        n_labels, space = self.space.n_labels, self.space
        residual = space.residual[: self._n_own, :n_labels].sum(axis=0, dtype=np.float64)
        expected = dot(residual, self._scores[:n_labels]) + self._n_gold
        term, self._slope = self._ratio.evaluate(expected, self._n_tokens)
        self.is_bounded = self._slope == 0.0
        if not self.is_bounded:
            gradient += self._slope * self._covariance(theta)
        return value + term, gradient

    def _covariance(self, theta: Floats) -> Floats:
        """Return the covariance [K] of features and entity labels; update the residuals."""
        space, product = self.space, self.derived(HessianProduct)
        residual = space.residual.copy()
        product.prepare(theta, evaluated=True)
        covariance = product.product(np.zeros(len(theta)), self._scores)
        space.residual *= self._slope
        space.residual += residual
        space.contents = Contents(self, theta.copy())
        return covariance

    def pair_terms(self, i: int, tokens: TokensBy) -> Iterator[tuple[TokensBy, Vectors, bool]]:
        """Extend `WorkingLoss.pair_terms` by the changes of the products, times the slope."""
        yield from super().pair_terms(i, tokens)
        if self._slope != 0.0:
            vectors, product = self.vectors(i), self.derived(HessianProduct)
            forward, backward = (self._slope * change for change in product.changes)
            # Nothing changes before the first token.
            yield without_starts(tokens), vectors._replace(alpha=forward), False
            yield tokens, vectors._replace(backward=backward), False
