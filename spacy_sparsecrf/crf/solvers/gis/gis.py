"""GIS: generalised iterative scaling, all weights at once, for per-position models.

Minimises F(theta) = l(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 (Darroch & Ratcliff 1972; Goodman
2002, figure 1) by a separable bound on F; without penalty

    theta_i := theta_i + log(O_i / E_i) / f#                            (Goodman 2002, equation 2)

with observed and expected counts O_i and E_i, and f# = max_{t,y} sum_i f_i(x_t, y) over the working
weights; with penalties see `kernels.scaled_weight`. F never rises. Stops as all solvers do (see
`base`).
"""

from dataclasses import dataclass

import numpy as np

from ....registry import crf_solvers
from ...loss.feature_blocks import by_site
from ...loss.working import ChainWorkingLoss
from ...penalty import ElasticNet
from ..solver import SolverState, StepReport, evaluate
from .gis_kernels import largest_sum, scale_weights
from .scgis import IterativeScaling


@crf_solvers("spacy_sparsecrf.GIS.v1")
@dataclass(kw_only=True, eq=False)
class GIS(IterativeScaling):
    """Generalised iterative scaling of per-position models; see the module for the update.

    Settings: see `BatchSolver`.
    """

    def step(self, loss: ChainWorkingLoss, penalty: ElasticNet, state: SolverState) -> StepReport:
        """Do one iteration."""
        observed = loss.observed
        expected = state.gradient - penalty.l2 * state.theta + observed
        theta = np.empty_like(state.theta)
        scale_weights(
            state.theta,
            observed=observed,
            expected=expected,
            slowing=loss.derived(_slowing),
            l1=penalty.l1,
            l2=penalty.l2,
            scaled=theta,
        )
        state.theta = theta
        state.value, state.gradient = evaluate(loss, penalty, theta)
        return self.report(penalty, state)


def _slowing(loss: ChainWorkingLoss) -> float:
    """Return f# of the working weights, 1 if there are none."""
    space, rows = loss.space, loss.unigram
    tokens = space.lattice.by_token(by_site(space, rows.features))
    # Leave out the table, whose weights are not 1.
    unigrams = loss.tables.unigrams._replace(
        bundle_ptr=np.zeros_like(tokens.indptr), site_ptr=tokens.indptr, site_blocks=tokens.indices
    )
    most = largest_sum(space.n_labels, unigrams, np.ones(loss.split), np.empty(space.padded))
    return max(float(most), 1.0)
